"""Power series whose coefficients are balls, numbers of a set that are linear in symbols, and tiles of a domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.proof.balls import FUNCTIONS, ROUNDING, SMALLEST, Array, Balls, Mask, reciprocal

LEVELS = 4  # of tiles
TOGETHER = 256  # tiles that are made at once
BEYOND = 1e-6  # of a tile, by which it is wider than its place, so that boxes at its edge are in it


@dataclass(frozen=True)
class Powers:
    """Products of powers of some variables, and which of them a product of two gives."""

    exponents: tuple[tuple[int, ...], ...]

    @classmethod
    def up_to(cls, variables: int, order: int) -> Powers:
        """All with a sum of exponents of at most `order`, the lower ones first."""
        every = [e for e in product(range(order + 1), repeat=variables) if sum(e) <= order]
        return cls(tuple(sorted(every, key=lambda e: (sum(e), *(-k for k in e)))))

    @cache  # noqa: B019
    def in_time(self, order: int) -> Powers:
        """These, each times the powers of time up to `order`, which is another variable, the last one."""
        return Powers(tuple((*e, k) for k in range(order + 1) for e in self.exponents))

    @cached_property
    def order(self) -> int:
        return max(sum(e) for e in self.exponents)

    @cached_property
    def products(self) -> list[list[tuple[int, int, int]]]:
        """(i, j, k) where power i times power j is power k: all, then those where i has order k or more and j one."""
        place, orders = {e: k for k, e in enumerate(self.exponents)}, [sum(e) for e in self.exponents]
        pairs = product(enumerate(self.exponents), repeat=2)
        sums = [(i, j, tuple(a + b for a, b in zip(p, q, strict=True))) for (i, p), (j, q) in pairs]
        every = [(i, j, place[e]) for i, j, e in sums if e in place]
        some = [[(i, j, k) for i, j, k in every if orders[i] >= least and orders[j]] for least in range(1, self.order)]
        return [every, *some]


class Jet:
    """A power series of some variables: coefficients (k, ..), one for each of `powers`."""

    __slots__ = ("powers", "terms")

    def __init__(self, powers: Powers, terms: Balls) -> None:
        self.powers, self.terms = powers, terms

    @classmethod
    def start(cls, powers: Powers, value: Balls, variable: int | None = None) -> Jet:
        """A constant, or the variable of this number at a value."""
        zero = np.zeros((len(powers.exponents) - 1, *value.middle.shape))
        terms = Balls(np.concatenate([value.middle[None], zero]), np.concatenate([value.radius[None], zero]))
        if variable is not None:
            unit = tuple(int(i == variable) for i in range(len(powers.exponents[0])))
            if unit in powers.exponents:
                terms.middle[powers.exponents.index(unit)] = 1.0
        return cls(powers, terms)

    @property
    def value(self) -> Balls:
        return self.terms[0]

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.powers, self.terms + other.terms)

    def __neg__(self) -> Jet:
        return Jet(self.powers, -self.terms)

    def __sub__(self, other: Jet) -> Jet:
        return Jet(self.powers, self.terms - other.terms)

    def __mul__(self, other: Jet) -> Jet:
        return self.times(other, 0)

    def times(self, other: Jet, least: int) -> Jet:
        """The product; for least > 0, of series that begin with terms of this order and of order 1."""
        a, b = self.terms, other.terms
        shape = np.broadcast_shapes(a.middle.shape, b.middle.shape)
        middle, radius = np.zeros(shape), np.zeros(shape)
        size, loose, largest = np.abs(a.middle), b.radius + ROUNDING * np.abs(b.middle), b.size
        for i, j, k in self.powers.products[least]:
            middle[k] += a.middle[i] * b.middle[j]
            radius[k] += size[i] * loose[j] + a.radius[i] * largest[j]
        return Jet(self.powers, Balls(middle, radius * (1 + ROUNDING) + SMALLEST))

    def __truediv__(self, other: Jet) -> Jet:
        one = Balls.of(np.ones_like(other.value.middle))
        return self * other.through(reciprocal([other.value, one], self.powers.order))

    def function(self, kind: str) -> Jet:
        """sin, cos, ... of the series."""
        return self.through(FUNCTIONS[kind](self.value, self.powers.order))

    def through(self, coefficients: list[Balls]) -> Jet:
        """A function with this power series at the value."""
        middle, radius = self.terms.middle.copy(), self.terms.radius.copy()
        middle[0] = radius[0] = 0.0
        moved = power = Jet(self.powers, Balls(middle, radius))
        total = Jet.start(self.powers, coefficients[0])
        for k, value in enumerate(coefficients[1:], 1):
            total = total + Jet(self.powers, power.terms * value)
            power = power.times(moved, k) if k < self.powers.order else power
        return total

    def narrowed(self, bend: list[Array]) -> Jet:
        """The series, over sets in the second half of the first axis, whose middles are those in its first half.

        bend: half widths of the sets by each variable; empty where there are points only. A coefficient over a set
        differs from that at its middle by at most the next higher ones over the set times the half widths.
        """
        if not bend:
            return self
        half, place = len(bend[0]), {e: k for k, e in enumerate(self.powers.exponents)}
        middle, radius = self.terms.middle.copy(), self.terms.radius.copy()
        shape = (half, *(1,) * (middle.ndim - 2))
        for k in reversed(range(len(self.powers.exponents))):
            e = self.powers.exponents[k]
            if sum(e) == self.powers.order:
                continue
            wide = radius[k, :half] + ROUNDING * np.abs(middle[k, :half])
            for i, width in enumerate(bend):
                higher = place[tuple(value + (i == j) for j, value in enumerate(e))]
                steep = (e[i] + 1) * (np.abs(middle[higher, half:]) + radius[higher, half:])
                wide = wide + steep * width.reshape(shape) * (1 + ROUNDING)
            better = wide < radius[k, half:]
            middle[k, half:] = np.where(better, middle[k, :half], middle[k, half:])
            radius[k, half:] = np.where(better, wide, radius[k, half:])
        return Jet(self.powers, Balls(middle, radius))

    def chosen(self, other: Jet, larger: bool) -> Jet:
        """The larger or smaller of two series; both slopes and any higher terms where it is not known which."""
        a, b = (self, other) if larger else (other, self)
        first, second = a.value.low >= b.value.high, a.value.high <= b.value.low
        one, two = np.broadcast_arrays(self.terms.middle, other.terms.middle)
        ends = [np.broadcast_to(t, one.shape) for s in (self, other) for t in (s.terms.low, s.terms.high)]
        hull = Balls.between(np.minimum(ends[0], ends[2]), np.maximum(ends[1], ends[3]))
        best = np.maximum if larger else np.minimum
        value = Balls.between(best(ends[0][0], ends[2][0]), best(ends[1][0], ends[3][0]))
        hull.middle[0], hull.radius[0] = value.middle, value.radius
        wide = [np.broadcast_to(s.terms.radius, one.shape) for s in (self, other)]
        if self.powers.order > 1:
            hull.radius[1:] = np.inf
        middle = np.where(first, one, np.where(second, two, hull.middle))
        return Jet(self.powers, Balls(middle, np.where(first, wide[0], np.where(second, wide[1], hull.radius))))


@dataclass(frozen=True)
class Sloped:
    """N numbers of N sets: middle + slopes' t up to `rest`, with symbols |t_k| <= 1 that all numbers of a set share."""

    middle: Array  # (N,)
    slopes: Array  # (d, N)
    rest: Array  # (N,)

    @property
    def bend(self) -> Array:
        """Largest distances (N,) from the middle."""
        size: Array = (np.abs(self.slopes).sum(0) + self.rest) * (1 + ROUNDING)
        return size

    @property
    def range(self) -> Balls:
        """All values (N,)."""
        return Balls(self.middle, self.bend)

    def rows(self, at: Any) -> Sloped:
        """Some of the sets."""
        return Sloped(self.middle[at], self.slopes[:, at], self.rest[at])

    def opened(self, place: int, count: int) -> Sloped:
        """The same numbers with `count` symbols more, of which one takes up the rest."""
        more = np.zeros((count, len(self.middle)))
        more[place] = self.rest
        return Sloped(self.middle, np.concatenate([self.slopes, more]), np.zeros_like(self.rest))

    def __mul__(self, other: Sloped) -> Sloped:
        centre = Balls.of(self.middle) * Balls.of(other.middle)
        return sloped(centre, [(self.range, other), (Balls.of(other.middle), self)])


def sloped(value: Balls, parts: Sequence[tuple[Balls, Sloped]]) -> Sloped:
    """A function of some numbers by the mean value theorem: its value at their middles, and its slopes in their set."""
    slopes, rest = np.zeros_like(parts[0][1].slopes), value.radius.copy()
    for slope, number in parts:
        slopes = slopes + slope.middle * number.slopes
        rest = rest + slope.radius * number.bend + np.abs(slope.middle) * (number.rest + ROUNDING * number.bend)
    rest = (rest + ROUNDING * (np.abs(value.middle) + np.abs(slopes).sum(0))) * (1 + ROUNDING) + SMALLEST
    return _known(value.middle, slopes, rest)


def combined(parts: Sequence[tuple[float, Sloped]], plus: Balls | float = 0.0) -> Sloped:
    """A sum of numbers, each times an exact factor, and of a number that is alike everywhere."""
    value = Balls.of(np.zeros_like(parts[0][1].middle)) + plus
    for factor, number in parts:
        value = value + Balls.of(number.middle) * factor
    return sloped(value, [(Balls.of(np.full_like(number.middle, factor)), number) for factor, number in parts])


def hull(cases: Sequence[tuple[Mask, Sloped]]) -> Sloped:
    """What holds the numbers of all cases that a mask (N,) allows; any number where none does."""
    masks, middles = np.stack([mask for mask, _ in cases]), np.stack([case.middle for _, case in cases])
    count = masks.sum(0)
    low = np.where(masks, middles, np.inf).min(0)
    high = np.where(masks, middles, -np.inf).max(0)
    middle = np.where(count > 0, 0.5 * (low + high), 0.0)
    kept = [np.where(mask, case.slopes, 0.0) for mask, case in cases]
    slopes = sum(kept[1:], kept[0]) / np.maximum(count, 1)
    rest = np.where(count > 0, 0.0, np.inf)
    for mask, case in cases:
        apart = np.abs(case.middle - middle) + np.abs(case.slopes - slopes).sum(0) + case.rest
        rest = np.where(mask, np.maximum(rest, apart + ROUNDING * (np.abs(middle) + np.abs(slopes).sum(0))), rest)
    return _known(middle, slopes, rest * (1 + ROUNDING))


def _known(middle: Array, slopes: Array, rest: Array) -> Sloped:
    """The numbers, with an infinite rest where something is not finite."""
    good = np.isfinite(middle) & np.isfinite(slopes).all(0) & np.isfinite(rest)
    return Sloped(np.where(good, middle, 0.0), np.where(good, slopes, 0.0), np.where(good, rest, np.inf))


class Tiles:
    """Upper bounds (N, k) of numbers over sets, from those over tiles of a domain, which are made where first needed.

    Tiles of level 0 are `count` parts of the domain a state. One of the next level is twice as wide, and has the
    largest bounds of those in it. bounds: numbers (N, k) over tiles (n,) of N balls.
    """

    def __init__(
        self,
        bounds: Callable[[list[Balls]], Array],
        numbers: int,
        lower: Array,
        upper: Array,
        around: Mask,
        count: int,
    ) -> None:
        self.bounds, self.lower, self.width, self.around = bounds, lower, (upper - lower) / count, around
        self.margin, self.parts = np.where(around, 0, count // 4), count  # beyond the limits
        shapes = [(count + 2 * self.margin) >> k for k in range(LEVELS)]
        self.made = [np.full((*shape, numbers), np.nan) for shape in shapes]

    def __call__(self, x: list[Sloped]) -> Array:
        """Bounds over sets; infinite for a set that is too wide, or too far from the domain."""
        pairs = list(zip(x, self.lower, self.width, strict=True))
        at = np.stack([(number.middle - lower) / width for number, lower, width in pairs], 1)
        size = np.stack([number.bend / width for number, _, width in pairs], 1) - 0.1 * BEYOND
        left: Mask = np.all(np.isfinite(at + size), 1)
        found = np.full((len(at), self.made[0].shape[-1]), np.inf)
        for k in range(LEVELS):
            first, last = (np.floor(np.where(left[:, None], end, 0.0) / 2**k) for end in (at - size, at + size))
            last = np.maximum(first, last)
            within = (first * 2**k >= -self.margin) & ((last + 1) * 2**k <= self.parts + self.margin) | self.around
            rows = np.flatnonzero(left & (within & (last - first <= 1)).all(1))
            corners = product(*np.stack([first[rows], last[rows]]).astype(np.int64).T.swapaxes(1, 2))
            found[rows] = np.max([self._of(k, np.stack(corner, 1)) for corner in corners], 0)
            left[rows] = False
        return found

    def _of(self, level: int, place: NDArray[np.int64]) -> Array:
        """Bounds of the tiles (N, n) of a level."""
        made, margin = self.made[level], self.margin >> level
        place = np.where(self.around, place % (self.parts >> level), place)
        new = np.unique(place[np.isnan(made[tuple((place + margin).T)][:, 0])], axis=0)
        for part in np.array_split(new, len(new) // TOGETHER + 1) if len(new) else ():
            if level:
                sides = np.array(list(product((0, 1), repeat=part.shape[1])))
                bounds = np.max([self._of(level - 1, 2 * part + side) for side in sides], 0)
            else:
                tiles, half = zip(self.lower, self.width, part.T, strict=True), np.full(len(part), 0.5 + BEYOND)
                bounds = self.bounds([Balls(low + wide * (at + 0.5), wide * half) for low, wide, at in tiles])
            made[tuple((part + margin).T)] = np.where(np.isfinite(bounds), bounds, np.inf)
        return np.asarray(made[tuple((place + margin).T)])
