"""Symbolic robot models and their compiled dynamics: `Robot` declares a model, `load` opens a built robot."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelgen.errors import ArtifactError, ModelError
    from modelgen.in_memory import build, compile
    from modelgen.loader import CompiledRobot, load
    from modelgen.statement.action_costs import ActionCost, LogCos, Quadratic, Tanh
    from modelgen.statement.robot import Robot
    from modelgen.statement.tasks import smooth_barrier

__all__ = [
    "ActionCost",
    "ArtifactError",
    "CompiledRobot",
    "LogCos",
    "ModelError",
    "Quadratic",
    "Robot",
    "Tanh",
    "build",
    "compile",
    "load",
    "smooth_barrier",
]

# A name is imported at its first use, so that loading a built robot does not import SymPy.
_MODULES = {
    "ActionCost": "statement.action_costs",
    "ArtifactError": "errors",
    "CompiledRobot": "loader",
    "LogCos": "statement.action_costs",
    "ModelError": "errors",
    "Quadratic": "statement.action_costs",
    "Robot": "statement.robot",
    "Tanh": "statement.action_costs",
    "build": "in_memory",
    "compile": "in_memory",
    "load": "loader",
    "smooth_barrier": "statement.tasks",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("robust-value-iteration")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
