"""Algorithms of Stable-Baselines3 on the same dynamics, tasks and evaluation."""
