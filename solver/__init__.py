"""Robust fitted value iteration on compiled robots.

Names are imported when they are first used, so that `import solver` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from solver.errors import DivergenceError, SolverError

if TYPE_CHECKING:
    from solver.evaluation.evaluation import Evaluation, evaluate
    from solver.policy import Policy, PositionController, Value, load_controller, load_policy, load_value
    from solver.runs.train import resume, train
    from solver.training.presets import make_settings
    from solver.training.settings import Settings

_MODULES = {
    "Evaluation": "solver.evaluation.evaluation",
    "Policy": "solver.policy",
    "PositionController": "solver.policy",
    "Settings": "solver.training.settings",
    "Value": "solver.policy",
    "evaluate": "solver.evaluation.evaluation",
    "load_controller": "solver.policy",
    "load_policy": "solver.policy",
    "load_value": "solver.policy",
    "make_settings": "solver.training.presets",
    "resume": "solver.runs.train",
    "train": "solver.runs.train",
}

__all__ = [
    "DivergenceError",
    "Evaluation",
    "Policy",
    "PositionController",
    "Settings",
    "SolverError",
    "Value",
    "evaluate",
    "load_controller",
    "load_policy",
    "load_value",
    "make_settings",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
