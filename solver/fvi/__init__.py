"""Robust fitted value iteration."""
