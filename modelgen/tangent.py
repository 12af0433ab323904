"""The tangent space of a robot's states: small errors, with three numbers for every rotation.

A quaternion q near q* has the error e = 2 sign(w) (x, y, z) of conj(q*) q = (w, x, y, z), which has the length
2 sin(angle / 2) and is the rotation vector for small angles. Its rate is the angular velocity at q*. Other states have
the error x - x*. Without rotations, the tangent space is the space of the states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from modelgen.arrays import Array
from modelgen.metadata import Metadata, Rotation

AXES = "xyz"


@dataclass(frozen=True)
class Tangent:
    """Errors e (nt,) of the states x (n,) of one robot, in the order of the states."""

    metadata: Metadata

    @cached_property
    def plain(self) -> tuple[list[int], list[int]]:
        """Indices in x, and in e, of the states that are no entry of a quaternion."""
        inside = self.metadata.turning
        states = [i for i in range(len(self.metadata.states)) if i not in inside]
        return states, [i - sum(rotation.coordinate < i for rotation in self.metadata.rotations) for i in states]

    @cached_property
    def rotations(self) -> list[tuple[Rotation, slice]]:
        """Every rotation with its three entries of e."""
        pairs = enumerate(self.metadata.rotations)
        return [(rotation, slice(rotation.coordinate - k, rotation.coordinate - k + 3)) for k, rotation in pairs]

    @property
    def size(self) -> int:
        """The number nt."""
        return len(self.metadata.states) - len(self.metadata.rotations)

    @cached_property
    def entries(self) -> list[tuple[str, str, float]]:
        """Name, unit and limit of every entry of e."""
        states = self.metadata.states
        result = [(states[i].name, states[i].unit, states[i].limit) for i in self.states]
        for rotation, places in self.rotations:
            reach = 2.0 * math.sin(rotation.limit / 2.0)
            result[places] = [(f"{rotation.name}_turn_{axis}", "rad", reach) for axis in AXES]
        return result

    @property
    def names(self) -> list[str]:
        """Names (nt,)."""
        return [name for name, _, _ in self.entries]

    @property
    def free(self) -> set[str]:
        """Names of the entries that the task leaves free."""
        task, states = self.metadata.task, self.metadata.states
        return {name for name, i in zip(self.names, self.states, strict=True) if states[i].name in task.free}

    @cached_property
    def states(self) -> list[int]:
        """Index in x of the state of every entry of e; of a quaternion's w for its turns."""
        result = [0] * self.size
        for state, place in zip(*self.plain, strict=True):
            result[place] = state
        for rotation, places in self.rotations:
            result[places] = [rotation.coordinate] * 3
        return result

    @property
    def limits(self) -> Array:
        """Limits (nt,): those of the states, and 2 sin(limit / 2) of a rotation."""
        return np.array([limit for _, _, limit in self.entries])

    def basis(self, x: Array) -> Array:
        """dx/de (..., n, nt) at x (..., n)."""
        result = np.zeros((*x.shape, self.size))
        states, errors = self.plain
        result[..., states, errors] = 1.0
        for rotation, places in self.rotations:
            result[..., rotation.quaternion, places] = kinematics(x[..., rotation.quaternion]) / 2.0
        return result

    def projection(self, x: Array) -> Array:
        """de/dx (..., nt, n) at x (..., n), the left inverse of `basis`."""
        result = self.basis(x).swapaxes(-1, -2)
        for rotation, places in self.rotations:
            result[..., places, rotation.quaternion] *= 4.0
        return result

    def moved(self, x: Array, e: Array) -> Array:
        """States (..., n) at the errors e (..., nt) from x (..., n). A rotation is moved by half a turn at most."""
        states, places = self.plain
        result = x.copy()
        result[..., states] += e[..., places]
        for rotation, turn in self.rotations:
            half = e[..., turn] / 2.0
            half = half / np.maximum(1.0, np.linalg.norm(half, axis=-1, keepdims=True))
            w = np.sqrt(np.maximum(0.0, 1.0 - (half**2).sum(axis=-1, keepdims=True)))
            q = x[..., rotation.quaternion]
            result[..., rotation.quaternion] = w * q + (kinematics(q) @ half[..., None])[..., 0]
        return result


def kinematics(q: Array) -> Array:
    """K (..., 4, 3) of quaternions (..., 4): K h is the product of q with the pure quaternion of h."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    rows = ((-x, -y, -z), (w, -z, y), (z, w, -x), (-y, x, w))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def turn_between(p: Array, q: Array) -> tuple[Array, Array]:
    """Errors e = 2 sign(w) v (..., 3) of rotations q (..., 4) from p (..., 4), where (w, v) is conj(p) q; and de by a
    small turn of q (..., 3, 3)."""
    w, v = (p * q).sum(axis=-1), (kinematics(p).swapaxes(-1, -2) @ q[..., None])[..., 0]
    sign = np.where(w < 0.0, -1.0, 1.0)[..., None]
    x, y, z = np.moveaxis(v, -1, 0)
    rows = ((w, -z, y), (z, w, -x), (-y, x, w))
    slopes = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    return 2.0 * sign * v, sign[..., None] * slopes
