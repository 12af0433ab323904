"""Admissible sets of an adversary's variable xi. Each has the exact minimiser of a linear function z . xi.

An adversary minimises the Hamiltonian, which is linear in xi to first order. Its best choice is therefore the extreme
point of the set against the gradient z (paper, Theorems 1-4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from solver.errors import SolverError

SMALLEST_NORM = 1e-12  # a row with a smaller norm is shortened towards zero, because it has no direction


class AdmissibleSet(Protocol):
    """A compact, convex set of values (d,)."""

    def extreme_point(self, z: Tensor) -> Tensor:
        """Minimisers xi (N, d) of z . xi in the set, for every row of z (N, d). The centre if z is zero."""


@dataclass(frozen=True)
class Ball:
    """Euclidean ball |xi| <= radius about zero. radius: one number, or (N, 1) with one for every sample.

    scale (d,): if given, the set is an ellipsoid with semi-axes radius * scale along the components.
    """

    radius: Tensor | float
    scale: Tensor | None = None

    def extreme_point(self, z: Tensor) -> Tensor:
        """-radius z/|z| (Theorems 1-3)."""
        if self.scale is None:
            return -self.radius * unit_rows(z)
        return -self.radius * self.scale * unit_rows(z * self.scale)


@dataclass(frozen=True)
class Box:
    """Box lower <= xi <= upper, component by component. All three have the shape (d,)."""

    lower: Tensor
    upper: Tensor
    centre: Tensor

    def extreme_point(self, z: Tensor) -> Tensor:
        """Corner against the sign of z (Theorem 4)."""
        return torch.where(z > 0.0, self.lower, torch.where(z < 0.0, self.upper, self.centre))


@dataclass(frozen=True)
class Ellipsoid:
    """Ellipsoid xi = centre + factor b with |b| <= 1: (xi - centre)^T P^-1 (xi - centre) <= 1, P = factor factor^T.

    centre (d,), factor (d, k). P may be singular: the ellipsoid is then flat.
    """

    centre: Tensor
    factor: Tensor

    @staticmethod
    def from_matrix(centre: Tensor, matrix: Tensor) -> Ellipsoid:
        """Ellipsoid with a centre (d,) and P (d, d).

        Raises SolverError unless P is symmetric and positive semidefinite.
        """
        if matrix.shape != (len(centre), len(centre)):
            raise SolverError(f"the matrix of an ellipsoid in {len(centre)} dimensions has shape {tuple(matrix.shape)}")
        exact = matrix.double()
        values, vectors = torch.linalg.eigh(exact)
        scale = float(exact.abs().max())
        if not torch.allclose(exact, exact.T, rtol=0.0, atol=1e-6 * scale) or float(values.min()) < -1e-6 * scale:
            raise SolverError("the matrix of an ellipsoid is symmetric and positive semidefinite, and this one is not")
        return Ellipsoid(centre, (vectors * values.clamp_min(0.0).sqrt()).to(centre))

    def extreme_point(self, z: Tensor) -> Tensor:
        """centre - P z/sqrt(z^T P z)."""
        return self.centre - unit_rows(z @ self.factor) @ self.factor.T


def unit_rows(z: Tensor) -> Tensor:
    """z/|z| row by row, zero where z is zero."""
    unit: Tensor = z / torch.linalg.vector_norm(z, dim=1, keepdim=True).clamp_min(SMALLEST_NORM)
    return unit
