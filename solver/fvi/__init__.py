"""Robust fitted value iteration, the algorithm of the paper: `algorithm.py` is the loop, the other files its steps."""
