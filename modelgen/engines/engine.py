"""The interface of an engine: mass matrix, accelerations and their derivatives, and forces on its mechanism."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Engine(Protocol):
    """A robot in another engine, its coordinates and inputs in the order of the model file."""

    label: str  # name and version

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q) at the positions q (N, n_q)."""

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q) at the states x = (q, v) (N, 2 n_q) and inputs u (N, m)."""

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """dvdot/dx (N, n_q, 2 n_q), and the error of its differences, which is zero for the engine's own derivative."""


class Forces(Protocol):
    """Generalized forces on a mechanism, its weight excepted."""

    def value(self, x: Array, u: Array) -> Array:
        """The forces (N, n_q) at the states x (N, 2 n_q) and inputs u (N, m)."""

    def slope(self, x: Array, u: Array) -> Array:
        """Their derivative by the state, (N, n_q, 2 n_q)."""


class ForcedEngine:
    """An engine's mechanism, whose inputs are generalized forces (N, n_q), under the forces of a robot's inputs."""

    def __init__(self, mechanism: Engine, forces: Forces) -> None:
        self.label = mechanism.label
        self._mechanism = mechanism
        self._forces = forces

    def mass_matrix(self, q: Array) -> Array:
        """M (N, n_q, n_q)."""
        return self._mechanism.mass_matrix(q)

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot (N, n_q)."""
        return self._mechanism.acceleration(x, self._forces.value(x, u))

    def derivative(self, x: Array, u: Array) -> tuple[Array, Array]:
        """dvdot/dx (N, n_q, 2 n_q): the mechanism's at fixed forces, and M^-1 times the slope of the forces."""
        fixed, error = self._mechanism.derivative(x, self._forces.value(x, u))
        matrix = self._mechanism.mass_matrix(x[:, : x.shape[1] // 2])
        return fixed + np.asarray(np.linalg.solve(matrix, self._forces.slope(x, u)), np.float64), error
