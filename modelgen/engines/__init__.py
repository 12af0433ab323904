"""Other engines, with which artifacts are compared: their interface, and the tree of numbers that they build from.

To add an engine, add a file and a line in `ENGINES`. The file of an engine has two functions. `load(path, metadata) ->
Engine` reads a robot in the engine's own format and finds its coordinates and inputs by name. It raises ModelError if
the robot cannot be compared. `build(tree) -> Engine` makes a mechanism from a `Tree` of numbers; its inputs are
generalized forces. Neither needs SymPy. `expressions` makes the tree from a model file, with SymPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.metadata import Metadata
from modelgen.tangent import Tangent

ENGINES = {"mujoco": "modelgen.engines.mujoco", "pinocchio": "modelgen.engines.pinocchio"}
PACKAGES = {"mujoco": ("MuJoCo", "mujoco"), "pinocchio": ("Pinocchio", "pin")}  # import name -> name, name for pip
STEP = 4e-3  # the largest step, relative to the largest value of a variable
FACTOR = 4  # between one step and the next
LEVELS = 6


class Engine(Protocol):
    """A robot in another engine, with coordinates and inputs in the order of the model file.

    Derivatives by the state are along its tangent space e (nt,), in which a rotation has three entries.
    """

    @property
    def label(self) -> str:
        """Name and version."""

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_v, n_v) at the positions q (N, n_q)."""

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_v) at the states x = (q, v) (N, n_q + n_v) and inputs u (N, m)."""

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """dvdot/de (N, n_v, 2 n_v), and the error of its finite differences (zero for an exact derivative)."""


class GeneralizedForces(Protocol):
    """Generalized forces on a mechanism, without its weight."""

    def value(self, x: Array, u: Array) -> Array:
        """The forces (N, n_v) at the states x (N, n_q + n_v) and inputs u (N, m)."""

    def slope(self, x: Array, u: Array) -> Array:
        """Their derivative by the error of the state, (N, n_v, 2 n_v)."""


@dataclass(frozen=True)
class ForcedEngine:
    """A mechanism whose inputs are generalized forces (N, n_v), driven by the forces of a robot."""

    mechanism: Engine
    forces: GeneralizedForces

    @property
    def label(self) -> str:
        return self.mechanism.label

    def mass_matrix(self, q: Array) -> Array:
        return self.mechanism.mass_matrix(q)

    def acceleration(self, x: Array, u: Array) -> Array:
        return self.mechanism.acceleration(x, self.forces.value(x, u))

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """The mechanism's at fixed forces, plus M^-1 times the slope of the forces."""
        fixed, error = self.mechanism.derivative(x, self.forces.value(x, u))
        slope = self.forces.slope(x, u)
        matrix = self.mechanism.mass_matrix(x[:, : x.shape[1] - slope.shape[1]])
        return fixed + np.asarray(np.linalg.solve(matrix, slope), np.float64), error


@dataclass(frozen=True)
class Movement:
    """A rotation about an axis of the body's frame, a translation along it, or any rotation."""

    name: str  # of the joint
    kind: Literal["revolute", "prismatic", "ball"]
    axis: Array  # (3,), of length one; unused for a ball joint
    coordinates: tuple[str, ...]  # its entries of q: one, or a quaternion (w, x, y, z)
    speeds: tuple[str, ...]  # its entries of v


@dataclass(frozen=True)
class Body:
    """One link at given parameters, in its own frame."""

    name: str
    parent: int | None  # None: the ground
    position: Array  # (3,) m, in the parent's frame
    rotation: Array  # (3, 3), to the parent's frame, with all coordinates at zero
    movements: tuple[Movement, ...]
    mass: float  # kg
    centre: Array  # (3,) m
    inertia: Array  # (3, 3) kg m^2, about the centre


@dataclass(frozen=True)
class Tree:
    """A mechanism. Parents come before children."""

    name: str
    coordinates: tuple[str, ...]  # (n_q,)
    speeds: tuple[str, ...]  # (n_v,)
    tangent: Tangent  # errors of the states
    bodies: tuple[Body, ...]
    gravity: float  # m/s^2, along -z
    armature: Array  # (n_v,), rotor inertias

    def added(self, movement: Movement) -> float:
        """The rotor inertia of a movement."""
        return float(self.armature[self.speeds.index(movement.speeds[0])])


def package(engine: str) -> Any:
    """The imported package of an engine. Raises ModelError, with the command to install it, if it is missing."""
    name, distribution = PACKAGES[engine]
    try:
        return import_module(engine)
    except ImportError as error:
        raise ModelError(f"{name} is not installed. Install it with `pip install {distribution}`.") from error


def differences(function: Callable[[Array], Array], at: Array, steps: Array) -> tuple[Array, Array]:
    """d function / d at, (..., entries, variables), by central differences, and the estimate of the error.

    Richardson extrapolation from `LEVELS` steps. Each entry uses the steps at which its estimated error is smallest
    (Ridders, Accurate computation of F'(x) and F'(x)F''(x), 1982). steps: the largest step of each variable.
    """
    columns = [_column(function, at, number, float(step)) for number, step in enumerate(steps)]
    slopes, errors = (np.stack(parts, axis=-1) for parts in zip(*columns, strict=True))
    return slopes, errors


def _column(function: Callable[[Array], Array], at: Array, number: int, step: float) -> tuple[Array, Array]:
    slope = error = np.array(np.inf)
    before: list[Array] = []
    for level in range(LEVELS):
        ahead, behind = at.copy(), at.copy()
        ahead[..., number] += step / FACTOR**level
        behind[..., number] -= step / FACTOR**level
        width = (ahead - behind)[..., number]  # as rounded
        width = width[:, None] if width.ndim else width
        values = function(ahead), function(behind)
        rounding = np.finfo(np.float64).eps * np.maximum(*map(abs, values)) / abs(width)
        row = [(values[0] - values[1]) / width]
        for order, coarser in enumerate(before, start=1):
            row.append(row[-1] + (row[-1] - coarser) / (FACTOR ** (2 * order) - 1))
            estimate = np.maximum.reduce([abs(row[-1] - row[-2]), abs(row[-1] - coarser), rounding])
            better = estimate < error
            slope, error = np.where(better, row[-1], slope), np.where(better, estimate, error)
        before = row
    return slope, error


def by_state(
    acceleration: Callable[[Array, Array], Array], x: Array, u: Array, tangent: Tangent | None = None
) -> tuple[Array, Array]:
    """dvdot/de (N, n_v, nt) of an engine's accelerations at fixed u, and the estimate of the error."""
    steps = STEP * np.abs(x).max(axis=0)
    if tangent is None or not tangent.rotations:
        return differences(lambda moved: acceleration(moved, u), x, steps)

    def at(error: Array) -> Array:
        return acceleration(tangent.moved(x, error), u)

    return differences(at, np.zeros((len(x), tangent.size)), steps[tangent.states])


def load(engine: str, path: Path, metadata: Metadata) -> Engine:
    """The robot of the file `path` in an engine. Raises ModelError if it cannot be compared."""
    return cast(Engine, import_module(ENGINES[engine]).load(path, metadata))
