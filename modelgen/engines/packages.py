"""The packages of the other engines, which are installed only where somebody compares with them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from modelgen.errors import ModelError

PACKAGES = {"mujoco": ("MuJoCo", "mujoco"), "pinocchio": ("Pinocchio", "pin")}  # import name -> name, name for pip


def package(engine: str) -> Any:
    """Import the package of an engine. Raises ModelError, with the command that installs it, where it is missing."""
    name, distribution = PACKAGES[engine]
    try:
        return import_module(engine)
    except ImportError as error:
        raise ModelError(f"{name} is not installed. Install it with `pip install {distribution}`.") from error
