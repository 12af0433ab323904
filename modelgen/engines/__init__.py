"""Other engines to hold an artifact against, one file each behind `Engine` and one line in `ENGINES`.

An engine's file has two functions. `load(path, metadata) -> Engine` reads the robot's description in the engine's own
format, finds the coordinates and inputs in it by name, and refuses with a ModelError what cannot be compared.
`build(tree) -> Mechanism` makes the engine's robot from the links of a model file (`tree.Tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from modelgen.errors import ModelError
from modelgen.metadata import Metadata

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from modelgen.statement.robot import Robot

    Array = NDArray[np.float64]

#: MJCF files of the shipped robots, NAME.xml, written by hand.
ASSETS = Path(__file__).resolve().parents[2] / "models" / "assets"
ENGINES = {"mujoco": "modelgen.engines.mujoco", "pinocchio": "modelgen.engines.pinocchio"}
PACKAGES = {"mujoco": ("MuJoCo", "mujoco"), "pinocchio": ("Pinocchio", "pin")}  # in words, and for pip


class Engine(Protocol):
    """A robot in another engine, its coordinates and inputs in the order of the model file."""

    label: str  # name and version

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q) at the positions q (N, n_q)."""

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q) at the states x = (q, v) (N, 2 n_q) and inputs u (N, m)."""

    def derivative(self, x: Array, u: Array) -> Array:
        """dvdot/dx (N, n_q, 2 n_q)."""


def load(engine: str, path: Path, metadata: Metadata) -> Engine:
    """The robot as `engine` reads it from `path`; raises ModelError where the two cannot be compared."""
    return cast(Engine, import_module(ENGINES[engine]).load(path, metadata))


def builder(engine: str, robot: Robot) -> Callable[[Array], Engine]:
    """theta -> the robot in `engine`, made from its links; raises ModelError for what has no place there."""
    from modelgen.engines.tree import Description, Driven

    described, module = Description(robot), import_module(ENGINES[engine])
    return lambda theta: Driven(module.build(described.tree(theta)), described.forces(theta))


def package(engine: str) -> Any:
    """The engine's own package."""
    name, distribution = PACKAGES[engine]
    try:
        return import_module(engine)
    except ImportError as error:
        raise ModelError(
            f"{name} is not installed, so there is nothing to compare with. Install it with "
            f"`pip install {distribution}`."
        ) from error


def matched(wanted: Sequence[str], present: Sequence[str], what: str, path: Path) -> list[int]:
    """Where each wanted name stands among those of a description; both lists must hold the same names."""
    if sorted(wanted) != sorted(present):
        theirs = ", ".join(f"`{name}`" for name in present) or "none"
        ours = ", ".join(f"`{name}`" for name in wanted)
        raise ModelError(
            f"the {what}s of {path} are {theirs}; the model file has {ours}. Give every {what} the name it has in "
            "the model file (order does not matter), and remove the others."
        )
    return [present.index(name) for name in wanted]
