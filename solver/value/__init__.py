"""The value function: network, evaluation and fit."""
