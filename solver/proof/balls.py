"""Balls of many numbers at once, and the power series of functions at them.

A ball is an interval [middle - radius, middle + radius] that surely holds the exact number, in float64. Every operation
adds ROUNDING of the size of its result, which is hundreds of times its rounding error, so that no argument depends on
how a library rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDING = 1e-13  # a sum or function has an error below 1e-15 of its terms, a product of 100 terms one below 3e-14
SMALLEST = 1e-290


@dataclass(frozen=True)
class Balls:
    """Intervals of any shape. An infinite radius means any number."""

    middle: Array
    radius: Array

    @classmethod
    def of(cls, value: Array | float) -> Balls:
        """Exact numbers."""
        middle = np.asarray(value, np.float64)
        return cls(middle, np.zeros_like(middle))

    @classmethod
    def between(cls, low: Array, high: Array) -> Balls:
        """The interval of two ends."""
        middle = 0.5 * (low + high)
        size = np.maximum(np.abs(low), np.abs(high))
        return cls(middle, 0.5 * (high - low) + ROUNDING * size)

    @property
    def low(self) -> Array:
        ends: Array = self.middle - self.radius - ROUNDING * self.size
        return ends

    @property
    def high(self) -> Array:
        ends: Array = self.middle + self.radius + ROUNDING * self.size
        return ends

    @property
    def size(self) -> Array:
        """Largest absolute values."""
        largest: Array = (np.abs(self.middle) + self.radius) * (1 + ROUNDING)
        return largest

    def __getitem__(self, at: Any) -> Balls:
        return Balls(self.middle[at], self.radius[at])

    def __add__(self, other: Balls | Array | float) -> Balls:
        other = _balls(other)
        middle = self.middle + other.middle
        return Balls(middle, (self.radius + other.radius) * (1 + ROUNDING) + ROUNDING * np.abs(middle) + SMALLEST)

    def __neg__(self) -> Balls:
        return Balls(-self.middle, self.radius)

    def __sub__(self, other: Balls | Array | float) -> Balls:
        return self + -_balls(other)

    def __mul__(self, other: Balls | Array | float) -> Balls:
        other = _balls(other)
        a, b, middle = np.abs(self.middle), np.abs(other.middle), self.middle * other.middle
        wide = a * other.radius + self.radius * (b + other.radius)
        return Balls(middle, wide * (1 + ROUNDING) + ROUNDING * np.abs(middle) + SMALLEST)

    def __truediv__(self, other: Balls | Array | float) -> Balls:
        return self * _balls(other).inverse()

    def inverse(self) -> Balls:
        """1 over the numbers; any number where one may be 0."""
        a = np.abs(self.middle)
        wide = self.radius / (a * (a - self.radius))
        found = 1.0 / self.middle
        return Balls(found, np.where(a > self.radius, wide * (1 + ROUNDING) + ROUNDING * np.abs(found), np.inf))

    def to(self, matrix: Array) -> Balls:
        """The last axis times an exact matrix."""
        size = np.abs(matrix)
        wide = (self.radius + ROUNDING * np.abs(self.middle)) @ size
        return Balls(self.middle @ matrix, wide * (1 + ROUNDING) + SMALLEST)

    def within(self, low: Array | float, high: Array | float) -> Balls:
        """The part between two numbers, of which one is surely there."""
        return Balls.between(np.clip(self.low, low, high), np.clip(self.high, low, high))

    def monotone(self, function: Callable[[Array], Array]) -> Balls:
        """An increasing function of the numbers."""
        return Balls.between(function(self.low), function(self.high)) + Balls(np.zeros(()), np.full((), ROUNDING))

    def sine(self, ahead: float = 0.0) -> Balls:
        """Sines of the numbers + ahead, a multiple of a quarter turn."""
        s, c = (np.cos(self.middle), -np.sin(self.middle)) if ahead else (np.sin(self.middle), np.cos(self.middle))
        wide = np.minimum(np.abs(c) * self.radius + 0.5 * self.radius**2, 2.0)
        return Balls(s, wide * (1 + ROUNDING) + ROUNDING)


def _balls(value: Balls | Array | float) -> Balls:
    return value if isinstance(value, Balls) else Balls.of(value)


def stacked(parts: Sequence[Balls]) -> Balls:
    """Balls of one shape on a new first axis."""
    shape = np.broadcast_shapes(*(part.middle.shape for part in parts))
    return Balls(
        *(np.stack([np.broadcast_to(getattr(p, name), shape) for p in parts]) for name in ("middle", "radius"))
    )


def _sine(a: Balls, order: int) -> list[Balls]:
    s, c = a.sine(), a.sine(1.0)
    return _factorial([(s, c, -s, -c)[k % 4] for k in range(order + 1)])


def _cosine(a: Balls, order: int) -> list[Balls]:
    s, c = a.sine(), a.sine(1.0)
    return _factorial([(c, -s, -c, s)[k % 4] for k in range(order + 1)])


def _exponential(a: Balls, order: int) -> list[Balls]:
    return _factorial([a.monotone(np.exp)] * (order + 1))


def _factorial(values: list[Balls]) -> list[Balls]:
    return [value * (1 / float(np.prod(range(1, k + 1)))) for k, value in enumerate(values)]


def _tanh(a: Balls, order: int) -> list[Balls]:
    t = a.monotone(np.tanh).within(-1.0, 1.0)
    found = [t]
    for k in range(order):  # t' = 1 - t^2
        square = sum((found[i] * found[k - i] for i in range(1, k + 1)), found[0] * found[k])
        found.append((-square + (1.0 if k == 0 else 0.0)) * (1 / (k + 1)))
    return found


def _integral(value: Balls, slope: list[Balls]) -> list[Balls]:
    return [value, *(part * (1 / (k + 1)) for k, part in enumerate(slope))]


def reciprocal(terms: list[Balls], order: int) -> list[Balls]:
    """Power series of 1 over the power series of up to three terms."""
    first, found = terms[0].inverse(), [terms[0].inverse()]
    for k in range(1, order + 1):
        known = [found[k - i] * terms[i] for i in range(1, min(k, len(terms) - 1) + 1)]
        found.append(-(sum(known[1:], known[0]) * first))
    return found


def _arctangent(a: Balls, order: int) -> list[Balls]:
    terms = [a * a + 1.0, a * 2.0, Balls.of(np.ones_like(a.middle))]
    bounded = Balls.between(np.maximum(terms[0].low, 1.0), terms[0].high)
    return _integral(a.monotone(np.arctan), reciprocal([bounded, *terms[1:]], order - 1) if order else [])


def _logarithm(a: Balls, order: int) -> list[Balls]:
    value = a.monotone(lambda x: np.log(np.where(x > 0, x, np.nan)))
    return _integral(value, reciprocal([a, Balls.of(np.ones_like(a.middle))], order - 1) if order else [])


def _root(a: Balls, order: int) -> list[Balls]:
    root = a.monotone(lambda x: np.sqrt(np.where(x >= 0, x, np.nan)))
    found, half = [root], (root * 2.0).inverse() if order else root
    for k in range(1, order + 1):
        rest = Balls.of(np.ones_like(a.middle) if k == 1 else np.zeros_like(a.middle))
        rest = rest - sum((found[i] * found[k - i] for i in range(1, k)), Balls.of(np.zeros_like(a.middle)))
        found.append(rest * half)
    return found


#: Coefficients of the power series of a function at a ball, up to an order.
FUNCTIONS: dict[str, Callable[[Balls, int], list[Balls]]] = {
    "sin": _sine,
    "cos": _cosine,
    "exp": _exponential,
    "tanh": _tanh,
    "atan": _arctangent,
    "log": _logarithm,
    "sqrt": _root,
}
