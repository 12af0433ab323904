"""Symbolic robot models to compiled dynamics: `Robot` states a model, `load` opens a built one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modelgen.errors import ArtifactError, ModelError
    from modelgen.loader import load
    from modelgen.statement.robot import Robot
    from modelgen.statement.tasks import LogCos, Quadratic, Tanh, smooth_barrier

__all__ = ["ArtifactError", "LogCos", "ModelError", "Quadratic", "Robot", "Tanh", "load", "smooth_barrier"]

# Loading a built robot must not cost the import of SymPy, so every name is fetched when first used.
_MODULES = {
    "ArtifactError": "errors",
    "LogCos": "statement.tasks",
    "ModelError": "errors",
    "Quadratic": "statement.tasks",
    "Robot": "statement.robot",
    "Tanh": "statement.tasks",
    "load": "loader",
    "smooth_barrier": "statement.tasks",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
