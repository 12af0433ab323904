"""Robust fitted value iteration on compiled robots. Names are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from solver.errors import DivergenceError, SolverError

if TYPE_CHECKING:
    from solver.policies.load import Policy, Value, load_policy, load_value

__all__ = ["DivergenceError", "Policy", "SolverError", "Value", "load_policy", "load_value"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("solver.policies.load"), name)
