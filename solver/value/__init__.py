"""The value function: networks, their fast evaluation, and their fit."""
