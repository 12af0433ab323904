"""Numbers of second order in common symbols, with a bound of the rest: what a box becomes in a network.

The loops over all coefficients are compiled: they read every number once, where NumPy reads it once an operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from modelgen.arrays import Array
from solver.proof.affine import LIBRARY, TERMS, TINY, UNIT, Linear, rounding, upward


def compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    """The loop as machine code, cached where a folder can be written."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(nogil=True)(loop)


@compiled
def _sizes(terms: Array, d: int) -> Array:
    """Sums (2, N, k) of the sizes of the terms of first and of second order."""
    rows, count, k = terms.shape
    found = np.zeros((2, count, k))
    for n in range(count):
        for row in range(1, rows):
            order = 0 if row <= d else 1
            for i in range(k):
                found[order, n, i] += abs(terms[row, n, i])
    return found


@compiled
def _product(a: Array, b: Array, a_parts: Array, b_parts: Array, a_rest: Array, b_rest: Array) -> tuple[Array, Array]:
    """Terms and rest of a product."""
    rows, count, k = a.shape
    d = int(np.sqrt(2.0 * rows)) - 1
    found, rest = np.empty((rows, count, k)), np.empty((count, k))
    for n in range(count):
        for i in range(k):
            found[0, n, i] = a[0, n, i] * b[0, n, i]
            a0, a1, a2, ar = abs(a[0, n, i]), a_parts[0, n, i], a_parts[1, n, i], a_rest[n, i]
            b0, b1, b2, br = abs(b[0, n, i]), b_parts[0, n, i], b_parts[1, n, i], b_rest[n, i]
            known = a0 * br + b0 * ar + a1 * b2 + a2 * b1 + a2 * b2 + ar * br + (a1 + a2) * br + (b1 + b2) * ar
            rest[n, i] = known + (rows + 4) * UNIT * (a0 + a1 + a2 + ar) * (b0 + b1 + b2 + br) + TINY
        for row in range(1, rows):
            for i in range(k):
                found[row, n, i] = a[0, n, i] * b[row, n, i] + b[0, n, i] * a[row, n, i]
        row = d
        for j in range(1, d + 1):
            for other in range(j, d + 1):
                row += 1
                for i in range(k):
                    found[row, n, i] += a[j, n, i] * b[other, n, i]
                if other != j:
                    for i in range(k):
                        found[row, n, i] += a[other, n, i] * b[j, n, i]
    return found, rest


@compiled
def _series(
    terms: Array, parts: Array, old: Array, value: Array, slope: Array, second: Array, third: Array
) -> tuple[Array, Array]:
    """Terms and rest of value + slope t + second t^2 / 2 + ..., t the numbers less their middle."""
    rows, count, k = terms.shape
    d = int(np.sqrt(2.0 * rows)) - 1
    found, rest = np.empty((rows, count, k)), np.empty((count, k))
    for n in range(count):
        for i in range(k):
            found[0, n, i] = value[n, i]
            first, beyond = parts[0, n, i], parts[1, n, i] + old[n, i]
            bend = first + beyond
            known = abs(slope[n, i]) * old[n, i] + third[n, i] / 6 * bend**3
            known += 0.5 * abs(second[n, i]) * (2 * first * beyond + beyond**2)
            size = abs(value[n, i]) + abs(slope[n, i]) + abs(second[n, i])  # an error may be that of a larger term
            rest[n, i] = known + LIBRARY * UNIT * size * (1 + bend) ** 2 + TINY
        for row in range(1, rows):
            for i in range(k):
                found[row, n, i] = slope[n, i] * terms[row, n, i]
        row = d
        for j in range(1, d + 1):
            for other in range(j, d + 1):
                row += 1
                share = 0.5 if other == j else 1.0
                for i in range(k):
                    found[row, n, i] += share * second[n, i] * (terms[j, n, i] * terms[other, n, i])
    return found, rest


@dataclass(frozen=True)
class Quadratic:
    """Numbers (N, k) of second order in d symbols, up to a rest.

    terms: (1 + d + p, N, k), the middle, the slopes, and the coefficients of
    the p = d (d + 1)/2 products t_j t_l, j <= l.
    """

    terms: Array
    rest: Array  # (N, k)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rest", upward(self.rest, TERMS))

    @classmethod
    def of(cls, x: Linear) -> Quadratic:
        """The same numbers."""
        d = len(x.slopes)
        none = np.zeros((d * (d + 1) // 2, *x.middle.shape))
        return cls(np.concatenate([x.middle[None], x.slopes, none]), x.rest)

    @property
    def symbols(self) -> int:
        """Number d of symbols."""
        return int((2.0 * len(self.terms)) ** 0.5) - 1

    @property
    def middle(self) -> Array:
        """Middles (N, k)."""
        middle: Array = self.terms[0]
        return middle

    @property
    def linear(self) -> Linear:
        """The same numbers, with the terms of second order in the rest."""
        return Linear(self.middle, self.terms[1 : 1 + self.symbols], self.rest + self.parts[1])

    @cached_property
    def parts(self) -> Array:
        """Largest sizes (2, N, k) of the terms of first and of second order."""
        found: Array = _sizes(self.terms, self.symbols)
        return found

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        size: Array = self.parts[0] + self.parts[1] + self.rest
        return size

    @property
    def size(self) -> Array:
        """Sum (N, k) of the sizes of all terms."""
        size: Array = np.abs(self.middle) + self.parts[0] + self.parts[1]
        return size

    def __getitem__(self, columns: Any) -> Quadratic:
        return Quadratic(np.ascontiguousarray(self.terms[..., columns]), self.rest[..., columns])

    def __add__(self, other: Quadratic) -> Quadratic:
        return Quadratic(self.terms + other.terms, self.rest + other.rest + rounding(self.size + other.size))

    def __sub__(self, other: Quadratic) -> Quadratic:
        return self + other.times(-1.0)

    def __mul__(self, other: Quadratic) -> Quadratic:
        return Quadratic(*_product(self.terms, other.terms, self.parts, other.parts, self.rest, other.rest))

    def through(self, value: Array, slope: Array, second: Array, third: Array | float) -> Quadratic:
        """A function with these derivatives at the middle, and at most this third one in the box."""
        third = np.broadcast_to(third, value.shape).copy()  # one layout, one compiled loop
        return Quadratic(*_series(self.terms, self.parts, self.rest, value, slope, second, third))

    def plus(self, values: Array | float) -> Quadratic:
        """The numbers plus exact ones."""
        size = np.abs(self.middle) + np.abs(values)
        terms = self.terms.copy()
        terms[0] += values
        return Quadratic(terms, self.rest + rounding(size))

    def times(self, factor: Array | float) -> Quadratic:
        """The numbers times exact ones."""
        return Quadratic(self.terms * factor, np.abs(factor) * (self.rest + rounding(self.size)))

    def to(self, weight: Array) -> Quadratic:
        """The numbers times a matrix (k, j)."""
        rows, count, k = self.terms.shape
        whole = (self.terms.reshape(-1, k) @ weight).reshape(rows, count, -1)
        wide = self.rest + rounding(self.size, rows + k)
        return Quadratic(whole, upward(wide @ np.abs(weight), k))


def beside(parts: list[Quadratic]) -> Quadratic:
    """Numbers of the same symbols as one."""
    terms, rests = ([getattr(part, name) for part in parts] for name in ("terms", "rest"))
    return Quadratic(np.concatenate(terms, -1), np.concatenate(rests, -1))
