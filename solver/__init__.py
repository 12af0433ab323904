"""Robust fitted value iteration on compiled robots.

Names are imported when they are first used, so that `import solver` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from solver.errors import DivergenceError, SolverError

if TYPE_CHECKING:
    from solver.fvi.presets import make_settings
    from solver.fvi.settings import Settings
    from solver.policies.load import Policy, PositionController, Value, load_controller, load_policy, load_value
    from solver.problem.parameters import Relative
    from solver.runs.train import resume, train
    from solver.studies.evaluation import Evaluation, evaluate

_MODULES = {
    "Evaluation": "solver.studies.evaluation",
    "Policy": "solver.policies.load",
    "PositionController": "solver.policies.load",
    "Relative": "solver.problem.parameters",
    "Settings": "solver.fvi.settings",
    "Value": "solver.policies.load",
    "evaluate": "solver.studies.evaluation",
    "load_controller": "solver.policies.load",
    "load_policy": "solver.policies.load",
    "load_value": "solver.policies.load",
    "make_settings": "solver.fvi.presets",
    "resume": "solver.runs.train",
    "train": "solver.runs.train",
}

__all__ = [
    "DivergenceError",
    "Evaluation",
    "Policy",
    "PositionController",
    "Relative",
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
