"""Symbolic robot models and their compiled dynamics: `Robot` declares a model, `load` opens a built robot."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelgen.builder import build_artifact as build
    from modelgen.builder import compile
    from modelgen.errors import ArtifactError, ModelError
    from modelgen.loader import CompiledRobot, load
    from modelgen.statement.action_costs import ActionCost, LogCos, Quadratic, Tanh
    from modelgen.statement.robot import Robot
    from modelgen.statement.tasks import smooth_barrier
    from modelgen.verification import verify_artifact as verify

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
    "verify",
]

# A name is imported at its first use, so that loading a built robot does not import SymPy.
_NAMES = {
    "ActionCost": "statement.action_costs.ActionCost",
    "ArtifactError": "errors.ArtifactError",
    "CompiledRobot": "loader.CompiledRobot",
    "LogCos": "statement.action_costs.LogCos",
    "ModelError": "errors.ModelError",
    "Quadratic": "statement.action_costs.Quadratic",
    "Robot": "statement.robot.Robot",
    "Tanh": "statement.action_costs.Tanh",
    "build": "builder.build_artifact",
    "compile": "builder.compile",
    "load": "loader.load",
    "smooth_barrier": "statement.tasks.smooth_barrier",
    "verify": "verification.verify_artifact",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("robust-value-iteration")
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _NAMES[name].rpartition(".")
    return getattr(import_module(f".{module}", __name__), attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
