"""Interval matrices as midpoints and radii, with radii rounded upward, for batches of matrix products.

A product costs four products of floating-point matrices (Rump, "Fast and parallel interval arithmetic", BIT 39, 1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array

UNIT = 2.3e-16  # more than the relative error of one rounded operation
SINGULAR = 1e12  # a matrix of a larger condition number is not inverted
TINY = 1e-300  # more than the absolute error of an operation whose result underflows


@dataclass(frozen=True)
class Balls:
    """Numbers within `radius` of `middle`; both arrays (...) of one shape. An infinite radius means any number."""

    middle: Array
    radius: Array

    @classmethod
    def between(cls, lower: Array, upper: Array) -> Balls:
        """The numbers between two bounds (...). Bounds that are not finite give an infinite radius."""
        with np.errstate(all="ignore"):
            middle = 0.5 * (lower + upper)
            radius = np.maximum(upper - middle, middle - lower)
        known = np.isfinite(middle) & np.isfinite(radius)
        middle = np.where(known, middle, 0.0)
        return cls(middle, np.where(known, radius * (1 + 4 * UNIT) + UNIT * np.abs(middle) + TINY, np.inf))

    @classmethod
    def exact(cls, values: Array) -> Balls:
        """Numbers (...) without an error."""
        return cls(values, np.zeros_like(values))

    def __getitem__(self, index: Any) -> Balls:
        return Balls(self.middle[index], self.radius[index])

    def __add__(self, other: Balls) -> Balls:
        middle = self.middle + other.middle
        return checked(middle, (self.radius + other.radius) * (1 + 4 * UNIT) + UNIT * np.abs(middle) + TINY)

    def __sub__(self, other: Balls) -> Balls:
        return self + Balls(-other.middle, other.radius)

    def __matmul__(self, other: Balls) -> Balls:
        with np.errstate(all="ignore"):
            sizes = np.abs(self.middle), np.abs(other.middle)
            middle = self.middle @ other.middle
            radius = sizes[0] @ other.radius + self.radius @ (sizes[1] + other.radius)
            rounding = (self.middle.shape[-1] + 4) * UNIT * (sizes[0] @ sizes[1])
        return checked(middle, radius * (1 + 1e-14) + rounding + TINY)

    def times(self, factor: float) -> Balls:
        """The numbers times a positive number."""
        return self.scaled(np.array(factor))

    def scaled(self, factors: Array) -> Balls:
        """The products (...) with numbers that have no error."""
        middle = self.middle * factors
        return checked(middle, self.radius * np.abs(factors) * (1 + 4 * UNIT) + UNIT * np.abs(middle) + TINY)

    @property
    def mT(self) -> Balls:
        """The transposed matrices."""
        return Balls(np.swapaxes(self.middle, -1, -2), np.swapaxes(self.radius, -1, -2))

    @property
    def lower(self) -> Array:
        """Lower bounds (...)."""
        return self.middle - self.radius * (1 + 4 * UNIT) - UNIT * np.abs(self.middle)

    @property
    def upper(self) -> Array:
        """Upper bounds (...)."""
        return self.middle + self.radius * (1 + 4 * UNIT) + UNIT * np.abs(self.middle)

    @property
    def largest(self) -> Array:
        """Largest absolute values (...)."""
        size: Array = (np.abs(self.middle) + self.radius) * (1 + 4 * UNIT)
        return size

    def inverse(self) -> Balls:
        """The inverses of matrices (..., m, m). Radii are infinite where a matrix may be singular.

        With C = middle^-1 and E = |C (A - middle)| + |1 - C middle|, |A^-1 - C| <= (1 - E)^-1 E |C| if the norm of E
        is below one; the Neumann series bounds the first factor.
        """
        one = np.eye(self.middle.shape[-1])
        known = np.isfinite(self.radius).all((-1, -2)) & (np.linalg.cond(self.middle) < SINGULAR)
        centre = np.linalg.inv(np.where(known[..., None, None], self.middle, one))
        error = (Balls.exact(centre) @ self - Balls.exact(one)).largest
        norm = error.sum(-1).max(-1)[..., None, None]
        with np.errstate(all="ignore"):
            bound = (error @ np.abs(centre)).max(-2, keepdims=True) / (1 - norm)
        radius = np.where(norm < 0.99, np.broadcast_to(bound * (1 + 1e-12), centre.shape), np.inf)
        return checked(centre, radius)


def hull(a: Balls, b: Balls) -> Balls:
    """The smallest intervals that contain both."""
    return Balls.between(np.minimum(a.lower, b.lower), np.maximum(a.upper, b.upper))


def intersection(a: Balls, b: Balls) -> Balls:
    """The numbers in both, which are known to have one."""
    return Balls.between(np.maximum(a.lower, b.lower), np.minimum(a.upper, b.upper))


def norm(rows: Balls) -> Array:
    """Upper bounds (...) of the Euclidean norms of vectors (..., n)."""
    size: Array = np.sqrt((rows.largest**2).sum(-1)) * (1 + 1e-14)
    return size


def checked(middle: Array, radius: Array) -> Balls:
    """The balls, with an infinite radius where a number is not finite."""
    known = np.isfinite(middle) & np.isfinite(radius)
    return Balls(np.where(known, middle, 0.0), np.where(known, radius, np.inf))
