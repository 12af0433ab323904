"""Checks and warnings before a training."""
