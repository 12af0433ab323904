"""A kinematic tree as numbers: what an engine builds its mechanism from. Needs no SymPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from modelgen.engines.engine import Array


@dataclass(frozen=True)
class Movement:
    """One coordinate: a turn about an axis of the body's frame, or a slide along it."""

    coordinate: str
    kind: Literal["revolute", "prismatic"]
    axis: Array  # (3,), of length one


@dataclass(frozen=True)
class Body:
    """One link at given parameters, in its own frame."""

    name: str
    parent: int | None  # None: the ground
    position: Array  # (3,) m, in the parent's frame
    rotation: Array  # (3, 3), to the parent's frame, all coordinates at zero
    movements: tuple[Movement, ...]
    mass: float  # kg
    centre: Array  # (3,) m
    inertia: Array  # (3, 3) kg m^2, about the centre


@dataclass(frozen=True)
class Tree:
    """The mechanism; parents stand before children."""

    name: str
    coordinates: tuple[str, ...]
    bodies: tuple[Body, ...]
    gravity: float  # m/s^2, along -z
    armature: Array  # (n_q,), rotor inertias
