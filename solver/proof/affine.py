"""Matrices and numbers of sets that are linear or quadratic in symbols, with a bound of the rest, rounded upward.

A matrix of a set is middle + sum_k slopes_k t_k + E with |t_k| <= 1 and |E| <= rest in every entry. The symbols t_k are
those of all matrices of a cell, so that a product keeps what its factors have in common (affine arithmetic, Stolfi and
de Figueiredo, 1997). Without symbols it is an interval matrix with a midpoint and a radius.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array

Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

LIBRARY = 40  # rounded operations that stand for one function of a library and those before it
TERMS = 64  # rounded operations on sizes that give one rest, at most
UNIT = 2.3e-16  # more than twice the relative error of one rounded operation
SMALL = 1e-6  # largest error of a numerical inverse by which a set grows
SINGULAR = 1e12  # a matrix of a larger condition number is not inverted
TINY = 1e-300  # more than the absolute error of an operation whose result underflows


def rounding(size: Array, terms: int = 4) -> Array:
    """Bound of the error of at most `terms` rounded operations on numbers whose sizes sum up to `size`.

    Two of its terms UNIT cover those that rounded `size` itself, because UNIT is twice the error of one operation.
    """
    bound: Array = terms * UNIT * size + TINY
    return bound


def upward(bound: Array, terms: int = 8) -> Array:
    """At least the sum or product of numbers that are not negative, computed by at most `terms` rounded operations."""
    larger: Array = bound * (1 + terms * UNIT) + TINY
    return larger


@dataclass(frozen=True)
class Affine:
    """Matrices (..., i, j) of d symbols. An infinite rest means any number."""

    middle: Array  # (..., i, j)
    slopes: Array  # (..., d, i, j)
    rest: Array  # (..., i, j)

    @classmethod
    def exact(cls, values: Array, symbols: int = 0) -> Affine:
        """Matrices (..., i, j) without an error."""
        shape = *values.shape[:-2], symbols, *values.shape[-2:]
        return cls(values, np.zeros(shape), np.zeros_like(values))

    @property
    def symbols(self) -> int:
        """Number d of symbols."""
        return int(self.slopes.shape[-3])

    @property
    def largest(self) -> Array:
        """Largest absolute values (..., i, j)."""
        return upward(np.abs(self.middle) + self._spread, self.symbols + 4)

    @property
    def _spread(self) -> Array:
        spread: Array = np.abs(self.slopes).sum(-3) + self.rest
        return spread

    @property
    def mT(self) -> Affine:
        """The transposed matrices."""
        return Affine(*(np.swapaxes(part, -1, -2) for part in (self.middle, self.slopes, self.rest)))

    def __getitem__(self, index: Any) -> Affine:
        """Rows and columns: an index of the last two axes."""
        at = (..., *index)
        return Affine(self.middle[at], self.slopes[at], self.rest[at])

    def __add__(self, other: Affine) -> Affine:
        rest = upward(self.rest + other.rest + rounding(self.largest + other.largest, self.symbols + 4))
        return known(self.middle + other.middle, self.slopes + other.slopes, rest)

    def __sub__(self, other: Affine) -> Affine:
        return self + Affine(-other.middle, -other.slopes, other.rest)

    def __matmul__(self, other: Affine) -> Affine:
        with np.errstate(all="ignore"):
            a, b = np.abs(self.middle), np.abs(other.middle)
            slopes = self.slopes @ other.middle[..., None, :, :] + self.middle[..., None, :, :] @ other.slopes
            spread, all_of = self._spread, b + other._spread
            bent = spread - self.rest  # of the symbols alone
            rest = bent @ (other._spread - other.rest) + (a + bent) @ other.rest + self.rest @ all_of
            terms = 2 * self.middle.shape[-1] + self.symbols + 8
            rest = rest + rounding((a + spread) @ all_of, terms)
        return known(self.middle @ other.middle, slopes, upward(rest, 2 * terms))

    def times(self, factor: float) -> Affine:
        """The matrices times a number."""
        rest = upward(self.rest * abs(factor) + rounding(self.largest * abs(factor)))
        return known(self.middle * factor, self.slopes * factor, rest)

    def where(self, first: Mask, other: Affine) -> Affine:
        """The matrices where first (N,) is set, and others elsewhere."""
        pairs = zip((self.middle, self.slopes, self.rest), (other.middle, other.slopes, other.rest), strict=True)
        return Affine(*(np.where(first.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))

    def widened(self, rest: Array) -> Affine:
        """The matrices with a larger rest."""
        return known(self.middle, self.slopes, upward(self.rest + rest))

    def inverse(self) -> Affine:
        """The inverses of square matrices. Rests are infinite where a matrix may be singular.

        With C = middle^-1 and E = C A - 1, A^-1 = C - E C + (E^2 - E^3 + ...) C; the series is bounded by norms.
        """
        one = np.eye(self.middle.shape[-1])
        regular = np.isfinite(self.rest).all((-1, -2)) & (np.linalg.cond(self.middle) < SINGULAR)
        centre = np.linalg.inv(np.where(regular[..., None, None], self.middle, one))
        C = Affine.exact(centre, self.symbols)
        E = C @ self - Affine.exact(np.broadcast_to(one, centre.shape), self.symbols)
        size = E.largest
        norm = size.sum(-1).max(-1)[..., None, None]
        with np.errstate(all="ignore"):
            tail = (size @ size @ np.abs(centre)).max(-2, keepdims=True) / (1 - norm) * (1 + 1e-12)
        tail = np.where((norm < 0.99) & regular[..., None, None], np.broadcast_to(tail, centre.shape), np.inf)
        return (C - E @ C).widened(tail)


def known(middle: Array, slopes: Array, rest: Array) -> Affine:
    """The matrices, with an infinite rest where a number is not finite."""
    finite = np.isfinite(middle) & np.isfinite(rest) & np.isfinite(slopes).all(-3)
    if finite.all():
        return Affine(middle, slopes, rest)
    here = np.where(finite, middle, 0.0), np.where(finite[..., None, :, :], slopes, 0.0)
    return Affine(*here, np.where(finite, rest, np.inf))


@dataclass(frozen=True)
class Linear:
    """Numbers (N, k) that are linear in d symbols up to a rest."""

    middle: Array  # (N, k)
    slopes: Array  # (d, N, k)
    rest: Array  # (N, k)

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        size: Array = np.abs(self.slopes).sum(0) + self.rest
        return size

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", upward(self.rest, TERMS))

    def __getitem__(self, columns: Any) -> Linear:
        return Linear(self.middle[:, columns], self.slopes[:, :, columns], self.rest[:, columns])

    def rows(self, at: Any) -> Linear:
        """Some of the boxes."""
        return Linear(self.middle[at], self.slopes[:, at], self.rest[at])

    def put(self, at: Any, part: Linear) -> None:
        """Replace the numbers of some boxes."""
        self.middle[at], self.slopes[:, at], self.rest[at] = part.middle, part.slopes, part.rest

    def __add__(self, other: Linear) -> Linear:
        middle = self.middle + other.middle
        slopes = self.slopes + other.slopes
        size = np.abs(middle) + np.abs(slopes).sum(0)
        return Linear(middle, slopes, self.rest + other.rest + rounding(size, len(slopes) + 4))

    def __neg__(self) -> Linear:
        return Linear(-self.middle, -self.slopes, self.rest)

    def __sub__(self, other: Linear) -> Linear:
        return self + -other

    def __mul__(self, other: Linear) -> Linear:
        a, b, bent = np.abs(self.middle), np.abs(other.middle), self.bend
        more = other.bend
        rest = a * other.rest + b * self.rest + bent * more + rounding((a + bent) * (b + more))
        slopes = self.middle * other.slopes + other.middle * self.slopes
        return Linear(self.middle * other.middle, slopes, rest)

    def through(self, value: Array, slope: Array, curvature: Array | float) -> Linear:
        """A function with this value and slope at the middle, and at most this second derivative in the box."""
        bent = self.bend
        rest = np.abs(slope) * self.rest + 0.5 * curvature * bent * bent
        return Linear(value, slope * self.slopes, rest + rounding(np.abs(value) + np.abs(slope) * bent, LIBRARY))

    def plus(self, values: Array | float) -> Linear:
        middle = self.middle + values
        return Linear(middle, self.slopes, self.rest + rounding(np.abs(middle)))

    def times(self, factor: Array | float) -> Linear:
        rest = np.abs(factor) * self.rest + rounding(np.abs(factor) * (np.abs(self.middle) + self.bend))
        return Linear(self.middle * factor, self.slopes * factor, rest)

    def to(self, weight: Array) -> Linear:
        """The numbers times a matrix (k, j)."""
        d, count, k = self.slopes.shape
        both = np.concatenate([self.middle[None], self.slopes]).reshape(-1, k) @ weight
        both = both.reshape(d + 1, count, -1)
        wide = self.rest + rounding(np.abs(self.middle) + np.abs(self.slopes).sum(0), d + k)
        return Linear(both[0], both[1:], upward(wide @ np.abs(weight), k))

    @property
    def ends(self) -> tuple[Array, Array]:
        bent = upward(self.bend, len(self.slopes) + 4)
        bent = upward(bent + rounding(np.abs(self.middle) + bent))
        return self.middle - bent, self.middle + bent


def chosen(first: Mask, a: Linear, b: Linear) -> Linear:
    """a where first (N,) is set, else b."""
    here = first[:, None]
    return Linear(
        np.where(here, a.middle, b.middle), np.where(here, a.slopes, b.slopes), np.where(here, a.rest, b.rest)
    )


def together(parts: Sequence[Linear]) -> Linear:
    """Boxes of some numbers as one."""
    middles, slopes, rests = zip(*((part.middle, part.slopes, part.rest) for part in parts), strict=True)
    return Linear(np.concatenate(middles), np.concatenate(slopes, 1), np.concatenate(rests))


def parallelotope(x: Linear) -> Linear:
    """A set without a rest that holds x: the symbols take it up, or new ones of a box where that is smaller."""
    G = np.moveaxis(x.slopes, 0, 2)  # (N, n, d)
    n = G.shape[1]
    regular = np.abs(np.linalg.det(G)) > 1e-14 * np.prod(np.abs(G).sum(2) + 1e-300, 1)
    inverse = np.linalg.inv(np.where(regular[:, None, None], G, np.eye(n)))
    size = np.eye(n) + np.abs(G) @ np.abs(inverse)
    error = upward((np.abs(np.eye(n) - G @ inverse) + rounding(size, 2 * n)).sum(2).max(1))
    # e = G inverse (1 - E)^-1 e
    rest = x.rest + (error / (1 - np.minimum(error, 0.5)) * x.rest.max(1))[:, None]
    more = upward((np.abs(inverse) @ rest[..., None])[..., 0], n + 8)
    grown = x.slopes * upward(1 + more.T[:, :, None])
    b = upward(x.bend, len(x.slopes) + 1)
    box = np.zeros_like(x.slopes)
    box[range(n), :, range(n)] = b.T
    smaller = b.prod(1) < np.abs(np.linalg.det(G)) * (1 + more).prod(1)
    use = ~regular | (error > SMALL) | smaller
    return Linear(x.middle, np.where(use[:, None], box, grown), np.zeros_like(x.rest))
