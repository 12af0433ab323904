"""Robust fitted value iteration on compiled robots."""

from solver.errors import DivergenceError, SolverError
from solver.policies.load import Policy, Value, load_policy, load_value

__all__ = ["DivergenceError", "Policy", "SolverError", "Value", "load_policy", "load_value"]
