"""Taylor models of many boxes, power series of them in time, and dual numbers of these.

A Taylor model is a polynomial of second order in symbols |t_k| <= 1, and a rest that holds all else (Makino and Berz,
2003): here for many boxes at once, in float64. Every operation adds ROUNDING of the size of its result to the rest,
hundreds of times its rounding error (`solver.proof.balls`). No code of the search is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from solver.proof.balls import FUNCTIONS, ROUNDING, SMALLEST, Array, Balls, Mask, reciprocal


@cache
def pairs(symbols: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask]:
    """Symbols i <= j of each term of second order, and whether (p, 1) they are two."""
    first, second = np.triu_indices(symbols)
    return first, second, np.asarray(first != second)[:, None]


@dataclass(frozen=True)
class Model:
    """N numbers of N boxes. terms (1 + k + k (k + 1)/2, N): middles, slopes, and coefficients of t_i t_j, i <= j.

    A number on which no symbol acts has one row of terms.
    """

    terms: Array
    rest: Array  # (N,)

    @classmethod
    def of(cls, middle: Array, radius: Array | float = 0.0) -> Model:
        """Numbers (N,) without symbols."""
        return cls(
            np.asarray(middle, np.float64)[None], np.broadcast_to(np.asarray(radius, np.float64), np.shape(middle))
        )

    @classmethod
    def linear(cls, middle: Array, slopes: Sequence[Array], radius: Array | float = 0.0) -> Model:
        """Numbers (N,) with slopes (N,) by all symbols."""
        k = len(slopes)
        terms = np.zeros((1 + k + k * (k + 1) // 2, len(middle)))
        terms[0] = middle
        if k:
            terms[1 : 1 + k] = slopes
        return cls(terms, np.broadcast_to(np.asarray(radius, np.float64), middle.shape))

    @property
    def symbols(self) -> int:
        return int((2.0 * len(self.terms)) ** 0.5) - 1 if len(self.terms) > 1 else 0

    @property
    def slopes(self) -> Array:
        """Slopes (k, N) by the symbols."""
        return np.asarray(self.terms[1 : 1 + self.symbols])

    @cached_property
    def sizes(self) -> tuple[Array, Array]:
        """Sums (N,) of the sizes of the terms of first and of second order."""
        return np.abs(self.slopes).sum(0), np.abs(self.terms[1 + self.symbols :]).sum(0)

    @cached_property
    def bend(self) -> Array:
        """Largest distances (N,) from the middle."""
        first, second = self.sizes
        found: Array = (first + second + self.rest) * (1 + ROUNDING)
        return found

    @property
    def range(self) -> Balls:
        """All values (N,)."""
        return Balls(self.terms[0], self.bend)

    def _made(self, terms: Array, rest: Array, size: Array) -> Model:
        return Model(terms, rest * (1 + ROUNDING) + ROUNDING * size + SMALLEST)

    def __add__(self, other: Model) -> Model:
        small, large = sorted((self.terms, other.terms), key=len)
        terms = large.copy()
        terms[: len(small)] += small
        size = np.abs(self.terms[0]) + np.abs(other.terms[0]) + self.bend + other.bend
        return self._made(terms, self.rest + other.rest, size)

    def __neg__(self) -> Model:
        return Model(-self.terms, self.rest)

    def __sub__(self, other: Model) -> Model:
        return self + -other

    def times(self, factor: Array | float) -> Model:
        """The numbers times exact ones."""
        size = np.abs(factor) * (np.abs(self.terms[0]) + self.bend)
        return self._made(self.terms * factor, self.rest * np.abs(factor), size)

    def within(self, share: Balls) -> Model:
        """The numbers times numbers of which only the range is known, alike for all boxes."""
        wide = share.radius * (np.abs(self.terms[0]) + self.bend)
        scaled = self.times(share.middle)
        return Model(scaled.terms, scaled.rest + wide * (1 + ROUNDING))

    def __mul__(self, other: Model) -> Model:
        a, b = self.terms, other.terms
        if len(a) < len(b):
            return other * self
        (a1, a2), (b1, b2), a0, b0 = self.sizes, other.sizes, np.abs(a[0]), np.abs(b[0])
        rest = (a0 + a1 + a2) * other.rest + (b0 + b1 + b2 + other.rest) * self.rest + a1 * b2 + a2 * (b1 + b2)
        terms = b[0] * a
        if len(b) > 1:
            k = self.symbols
            i, j, apart = pairs(k)
            terms[1:] += a[0] * b[1:]
            terms[1 + k :] += a[1 + i] * b[1 + j] + apart * (a[1 + j] * b[1 + i])
        size = (a0 + a1 + a2 + self.rest) * (b0 + b1 + b2 + other.rest)
        return self._made(terms, rest, size)

    def __truediv__(self, other: Model) -> Model:
        return self * other.through(inverse)

    def through(self, coefficients: Callable[[Balls, int], list[Balls]]) -> Model:
        """A function by its power series at the middles, and by its third coefficient over the range."""
        c, bend = self.terms[0], self.bend
        at, third = coefficients(Balls.of(c), 2), coefficients(self.range, 3)[3].size
        terms = self.terms.copy()
        terms[0] = 0.0
        h = Model(terms, self.rest)
        total = h.times(at[1].middle) + (h * h).times(at[2].middle) + Model.of(at[0].middle, at[0].radius)
        wide = at[1].radius * bend + at[2].radius * bend**2 + third * bend**3
        return Model(total.terms, total.rest + wide * (1 + ROUNDING))

    def rows(self, at: Any) -> Model:
        """Some of the numbers."""
        return Model(self.terms[:, at], self.rest[at])

    def contains(self, other: Model) -> Mask:
        """Whether (N,) the numbers hold those of another model for all values of the symbols."""
        small, large = sorted((self.terms, other.terms), key=len)
        apart = large.copy()
        apart[: len(small)] -= small
        found: Mask = np.abs(apart).sum(0) * (1 + ROUNDING) + other.rest <= self.rest
        return found


def most(number: Model) -> Array:
    """Largest values (N,): those of a t + q t^2 for each symbol, and the sizes of all other terms."""
    k = number.symbols
    first, second = np.triu_indices(k)
    a, terms = np.abs(number.slopes), number.terms[1 + k :]
    q = terms[first == second]
    bent = np.where(a < -2 * q, a * a / np.maximum(-4 * q, SMALLEST), a + q)
    size = np.abs(number.terms[0]) + number.bend
    return np.asarray(
        number.terms[0] + bent.sum(0) + np.abs(terms[first != second]).sum(0) + number.rest + 1e-13 * size
    )


def bent_by(number: Model) -> Array:
    """Sizes (k, N) of the terms of second order with each symbol."""
    k = number.symbols
    (first, second), terms = np.triu_indices(k), np.abs(number.terms[1 + k :])
    return np.stack([terms[(first == j) | (second == j)].sum(0) for j in range(k)])


def influences(number: Model) -> Array:
    """How much (k, N) each symbol moves a number; the rest grows with the terms of second order."""
    bent = bent_by(number)
    share = bent / np.maximum(bent.sum(0), SMALLEST)
    return np.asarray(np.nan_to_num(np.abs(number.slopes) + bent + share * number.rest))


def inverse(a: Balls, order: int) -> list[Balls]:
    """Coefficients of the power series of 1 over numbers, up to an order."""
    return reciprocal([a, Balls.of(np.ones_like(a.middle))], order)


class Series:
    """A power series in time up to some order; a coefficient that is None is zero."""

    __slots__ = ("terms",)

    def __init__(self, terms: list[Model | None]) -> None:
        self.terms = terms

    def __add__(self, other: Series) -> Series:
        return Series([_sum(a, b) for a, b in zip(self.terms, other.terms, strict=True)])

    def __neg__(self) -> Series:
        return Series([None if a is None else -a for a in self.terms])

    def __sub__(self, other: Series) -> Series:
        return self + -other

    def times(self, factor: float) -> Series:
        return Series([None if a is None else a.times(factor) for a in self.terms])

    def __mul__(self, other: Series) -> Series:
        return Series([_convolved(self.terms, other.terms, k) for k in range(len(self.terms))])

    def __truediv__(self, other: Series) -> Series:
        return self * other.inverse()

    @property
    def first(self) -> Model:
        """The number at the beginning."""
        assert self.terms[0] is not None
        return self.terms[0]

    def inverse(self) -> Series:
        """1 over the series."""
        first = self.first.through(inverse)
        found: list[Model | None] = [first]
        for k in range(1, len(self.terms)):
            rest = _convolved(self.terms[1:], found, k - 1)
            found.append(None if rest is None else -(rest * first))
        return Series(found)

    def function(self, kind: str) -> tuple[Series, Series]:
        """A function of the series, and its derivative there."""
        one, last = Series([Model.of(np.ones_like(self.first.rest)), *[None] * (len(self.terms) - 1)]), len(self.terms)
        value: list[Model | None] = [self.first.through(FUNCTIONS["sin" if kind == "cos" else kind])]
        if kind in ("sin", "cos"):
            other: list[Model | None] = [self.first.through(FUNCTIONS["cos"])]
            for k in range(1, last):
                value.append(_integrated(self.terms, other, k))
                slope = _integrated(self.terms, value, k)
                other.append(None if slope is None else -slope)
            sine, cosine = Series(value), Series(other)
            return (sine, cosine) if kind == "sin" else (cosine, -sine)
        if kind in ("log", "atan"):
            slope_of = (self if kind == "log" else self * self + one).inverse()
            value += [_integrated(self.terms, slope_of.terms, k) for k in range(1, last)]
            return Series(value), slope_of
        for k in range(1, last):
            value.append(_integrated(self.terms, _slope(kind, Series(value), one).terms, k))
        return Series(value), _slope(kind, Series(value), one)


def _slope(kind: str, value: Series, one: Series) -> Series:
    """Derivative of exp, tanh or sqrt by its value, as far as that is known."""
    known = Series(one.terms[: len(value.terms)])
    if kind == "exp":
        return value
    return known - value * value if kind == "tanh" else value.times(2.0).inverse()


def _sum(a: Model | None, b: Model | None) -> Model | None:
    return b if a is None else a if b is None else a + b


def _convolved(a: Sequence[Model | None], b: Sequence[Model | None], k: int) -> Model | None:
    """Coefficient k of a product."""
    total: Model | None = None
    for i in range(k + 1):
        if i < len(a) and k - i < len(b) and (one := a[i]) is not None and (other := b[k - i]) is not None:
            total = _sum(total, one * other)
    return total


def _integrated(a: Sequence[Model | None], slope: Sequence[Model | None], k: int) -> Model | None:
    """Coefficient k of a function with this slope along the series a: 1/k sum_i i a_i slope_(k - i)."""
    faster = [None if one is None else one.times(i + 1) for i, one in enumerate(a[1:])]
    found = _convolved(faster, slope, k - 1)
    return None if found is None else found.times(1.0 / k)


Number = TypeVar("Number", "Model", "Dual")


class Dual:
    """A series and its slopes along some variables; None is a slope of zero."""

    __slots__ = ("slopes", "value")

    def __init__(self, value: Series, slopes: Sequence[Series | None]) -> None:
        self.value, self.slopes = value, list(slopes)

    @classmethod
    def of(cls, value: Model, slopes: Sequence[Model | None], length: int = 1) -> Dual:
        """A number that does not move."""
        still: list[None] = [None] * (length - 1)
        return cls(Series([value, *still]), [None if s is None else Series([s, *still]) for s in slopes])

    @classmethod
    def exact(cls, value: float, count: int, slopes: int, length: int = 1) -> Dual:
        """A number that is alike in `count` boxes."""
        return cls.of(Model.of(np.full(count, float(value))), [None] * slopes, length)

    def through(self, value: Series, slope: Series) -> Dual:
        """The value of a function of this number, whose derivative is `slope`."""
        return Dual(value, [None if s is None else slope * s for s in self.slopes])

    def function(self, kind: str) -> Dual:
        """sin, cos, ... of this number."""
        return self.through(*self.value.function(kind))

    def chosen(self, other: Dual, larger: bool) -> Dual:
        """The larger or smaller number of each box; both slopes, and no motion, where it is not known which."""
        ahead, sign = (self - other).value.first, 1.0 if larger else -1.0
        first, second = (side * ahead.terms[0] >= ahead.bend * (1 + ROUNDING) for side in (sign, -sign))
        half = Model.of(np.zeros_like(ahead.rest) + 0.25 * sign * ahead.range.size, 0.25 * ahead.range.size)
        still = Series([None] * len(self.value.terms))

        def either(a: Series | None, b: Series | None, value: bool) -> Series:
            pairs = enumerate(zip((a or still).terms, (b or still).terms, strict=True))
            return Series([_either(first, second, one, two, half if value else None, k) for k, (one, two) in pairs])

        slopes = [either(a, b, False) if a or b else None for a, b in zip(self.slopes, other.slopes, strict=True)]
        return Dual(either(self.value, other.value, True), slopes)

    def each(self, function: Callable[..., Series | None], *others: Dual) -> Dual:
        """A linear function of some numbers: of their values, and of their slopes along each variable."""
        value, *slopes = map(function, *([number.value, *number.slopes] for number in (self, *others)))
        assert value is not None
        return Dual(value, slopes)

    def __add__(self, other: Dual) -> Dual:
        return self.each(_plus, other)

    def __neg__(self) -> Dual:
        return self.each(lambda series: series and -series)

    def __sub__(self, other: Dual) -> Dual:
        return self + -other

    def times(self, factor: float) -> Dual:
        """The number times an exact one."""
        return self.each(lambda series: series and series.times(factor))

    def __mul__(self, other: Dual) -> Dual:
        pairs = zip(self.slopes, other.slopes, strict=True)
        slopes = [_plus(a and a * other.value, b and b * self.value) for a, b in pairs]
        return Dual(self.value * other.value, slopes)

    def __truediv__(self, other: Dual) -> Dual:
        inverse = other.value.inverse()
        return self * other.through(inverse, -(inverse * inverse))


def present(slope: Series | None, count: int) -> Model:
    """A slope at the beginning."""
    known = slope.terms[0] if slope else None
    return Model.of(np.zeros(count)) if known is None else known


def summed(terms: Iterable[Number]) -> Number:
    """The sum of one number or more."""
    return reduce(add, terms)


def _plus(a: Series | None, b: Series | None) -> Series | None:
    return b if a is None else a if b is None else a + b


def _either(
    first: Mask, second: Mask, a: Model | None, b: Model | None, half: Model | None, power: int
) -> Model | None:
    """a where it is `first`, b where it is `second`; else their mean plus `half`, or what holds both."""
    if a is None and b is None:
        return None
    none = Model.of(np.zeros(len(first)))
    one, other = a or none, b or none
    both, apart = one + other, one - other
    mean = both.times(0.5)
    wide = mean + half if half else Model(mean.terms, mean.rest + 0.5 * apart.range.size)
    terms = [(number + both.times(0.0)).terms for number in (one, other, wide)]  # of the same symbols
    unknown = np.where(power == 0, wide.rest, np.inf)
    return Model(
        np.where(first, terms[0], np.where(second, terms[1], terms[2])),
        np.where(first, one.rest, np.where(second, other.rest, unknown)) * (1 + ROUNDING) + SMALLEST,
    )
