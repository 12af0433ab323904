"""V of the networks and its slope along a direction over many sets, by polynomials and named noise.

A polynomial of second order in the symbols of a set, as `taylor.Model`, would lose too much in the layers of a network:
its rest grows by the absolute values of all weights. Here the rest of each number becomes a symbol of its own before a
linear layer. It passes through that exactly, and through a function with the slope at the middle. Only products of
noise with what is not constant, and terms of third order, are a new rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solver.proof.balls import ROUNDING, SMALLEST, Array
from solver.proof.networks import DIAGONAL, Networks
from solver.proof.taylor import Model, pairs

TOGETHER = 64  # sets at once
SMALL = 1e-9  # share of a number below which its rest stays one
#: Coefficients (N, r) of a power series, and the largest next one in a range.
Curve = tuple[list[Array], Array | float]

_names = itertools.count()


@dataclass(frozen=True)
class Noisy:
    """Numbers (N, r) of N sets: a polynomial of second order in common symbols, noise, and a rest of each.

    terms: (K, N, r) as those of a model. noise: slopes (s, N, r) by s further symbols of the set, for each name.
    """

    terms: Array
    noise: dict[int, Array]
    rest: Array

    @classmethod
    def of(cls, numbers: Sequence[Model], symbols: int) -> Noisy:
        """Numbers (N,) as columns."""
        terms = np.zeros((1 + symbols + symbols * (symbols + 1) // 2, len(numbers[0].rest), len(numbers)))
        for j, number in enumerate(numbers):
            terms[: len(number.terms), :, j] = number.terms
        return cls(terms, {}, np.stack([number.rest for number in numbers], 1))

    @property
    def symbols(self) -> int:
        return int((2.0 * len(self.terms)) ** 0.5) - 1

    @cached_property
    def sizes(self) -> tuple[Array, Array, Array]:
        """Sizes (N, r) of the terms of first order, of second order, and of noise and rest."""
        k = 1 + self.symbols
        loud = [np.abs(block).sum(0) for block in self.noise.values()]
        return np.abs(self.terms[1:k]).sum(0), np.abs(self.terms[k:]).sum(0), sum(loud, self.rest) * (1 + ROUNDING)

    @cached_property
    def bend(self) -> Array:
        """Largest distances (N, r) from the middle."""
        first, second, loud = self.sizes
        found: Array = (first + second + loud) * (1 + ROUNDING)
        return found

    @cached_property
    def size(self) -> Array:
        """Largest absolute values (N, r)."""
        found: Array = np.abs(self.terms[0]) + self.bend
        return found

    def model(self) -> Model:
        """The only column."""
        return Model(self.terms[:, :, 0], self.sizes[2][:, 0])

    def to(self, matrix: Array, constant: Array | float = 0.0) -> Noisy:
        """The numbers times a matrix (r, c), plus constants. Each rest becomes noise."""
        terms, noise = self.terms @ matrix, {name: block @ matrix for name, block in self.noise.items()}
        terms[0] += constant
        rest = ROUNDING * (self.size @ np.abs(matrix) + np.abs(constant)) + SMALLEST
        if (self.rest <= SMALL * self.size).all():
            rest = rest + self.rest @ np.abs(matrix) * (1 + ROUNDING)
        else:
            noise[next(_names)] = self.rest.T[:, :, None] * matrix[:, None, :]
        return Noisy(terms, noise, rest)

    def __add__(self, other: Noisy) -> Noisy:
        noise = dict(self.noise)
        for name, block in other.noise.items():
            noise[name] = noise[name] + block if name in noise else block
        rest = (self.rest + other.rest) * (1 + ROUNDING) + ROUNDING * (self.size + other.size)
        return Noisy(self.terms + other.terms, noise, rest)

    def __mul__(self, other: Noisy) -> Noisy:
        k, a, b, (a1, a2, a3), (b1, b2, b3) = self.symbols, self.terms, other.terms, self.sizes, other.sizes
        terms = a[0] * b
        terms[1:] += b[0] * a[1:]
        i, j, apart = pairs(k)
        terms[1 + k :] += a[1 + i] * b[1 + j] + apart[..., None] * (a[1 + j] * b[1 + i])
        noise = {name: b[0] * block for name, block in self.noise.items()}
        for name, block in other.noise.items():
            noise[name] = noise[name] + a[0] * block if name in noise else a[0] * block
        rest = np.abs(a[0]) * other.rest + np.abs(b[0]) * self.rest
        rest = rest + a1 * b2 + a2 * (b1 + b2) + (a1 + a2) * b3 + a3 * (b1 + b2 + b3)
        return Noisy(terms, noise, rest * (1 + ROUNDING) + ROUNDING * self.size * other.size)

    def through(self, curve: Curve) -> Noisy:
        """A function of the numbers, by four coefficients at the middles and the largest fifth one.

        On [-b, b], h^3 is within b^3 / 4 of 3 b^2 h / 4.
        """
        (c0, c1, c2, c3), fourth = curve
        first, b, k = self.sizes[0], self.bend, self.symbols
        slope = c1 + 0.75 * c3 * b**2
        terms = slope * self.terms
        terms[0] = c0
        i, j, apart = pairs(k)
        terms[1 + k :] += c2 * np.where(apart[..., None], 2.0, 1.0) * (self.terms[1 + i] * self.terms[1 + j])
        rest = (
            np.abs(slope) * self.rest + np.abs(c2) * (b * b - first * first) + (0.25 * np.abs(c3) + fourth * b) * b**3
        )
        rest = rest * (1 + ROUNDING) + ROUNDING * (1 + np.abs(c0)) * (1 + b) ** 3
        return Noisy(terms, {name: slope * block for name, block in self.noise.items()}, rest)


@dataclass(frozen=True)
class Tilted:
    """Numbers and, if known, their slopes along a direction."""

    value: Noisy
    slope: Noisy | None

    def to(self, matrix: Array, constant: Array | float = 0.0) -> Tilted:
        """The numbers times a matrix, plus constants."""
        return Tilted(self.value.to(matrix, constant), self.slope and self.slope.to(matrix))

    def __add__(self, other: Tilted) -> Tilted:
        return Tilted(self.value + other.value, self.slope and other.slope and self.slope + other.slope)

    def __mul__(self, other: Tilted) -> Tilted:
        tilts = self.slope and other.slope and self.slope * other.value + self.value * other.slope
        return Tilted(self.value * other.value, tilts)

    def through(self, function: Callable[[Array, Array], tuple[list[Array], Array | float, Array | float]]) -> Tilted:
        """A function of the numbers: its first five coefficients, and the largest fifth and sixth one."""
        c, fourth, fifth = function(self.value.terms[0], self.value.bend)
        value = self.value.through((c[:4], fourth))
        if self.slope is None:
            return Tilted(value, None)
        steep = self.value.through(([(k + 1) * c[k + 1] for k in range(4)], 5 * fifth))
        return Tilted(value, steep * self.slope)


def sine(ahead: float) -> Callable[[Array, Array], tuple[list[Array], float, float]]:
    """sin(a + ahead)."""

    def function(a: Array, _: Array) -> tuple[list[Array], float, float]:
        s, c = np.sin(a + ahead), np.cos(a + ahead)
        return [s, c, -s / 2, -c / 6, s / 24], 1 / 24, 1 / 120

    return function


def tanh(a: Array, bend: Array) -> tuple[list[Array], Array, Array]:
    """tanh a. With s = t^2, |t (2/3 - s)| <= 1/3 and |2/3 - 5 s + 5 s^2| <= 2/3; the fifth one is below 0.171."""
    t = np.tanh(a)
    steep = 1 - t * t
    most = 1 - np.tanh(np.maximum(np.abs(a) - bend, 0.0)) ** 2 + ROUNDING
    c = [t, steep, -t * steep, (t * t - 1 / 3) * steep, t * (2 / 3 - t * t) * steep]
    return c, np.minimum(0.171, most / 3), most * (2 / 15)


def softplus(a: Array, bend: Array) -> tuple[list[Array], Array, Array]:
    """log(1 + exp a), whose slope is (1 + tanh(a / 2)) / 2; the fourth coefficient of tanh is at most 1/3."""
    (t, *c), most, _ = tanh(a / 2, bend / 2)
    found = [np.logaddexp(0.0, a), 0.5 + 0.5 * t, *(c[j - 1] / (2 ** (j + 1) * (j + 1)) for j in (1, 2, 3))]
    return found, np.full_like(a, 1 / 192), most / 160


def shorter(a: Array, bend: Array) -> tuple[list[Array], Array, Array]:
    """1 / sqrt(a) for a >= 1."""
    c, least = [1 / np.sqrt(a)], np.maximum(a - bend, 1.0) * (1 - ROUNDING)
    for k in range(4):
        c.append(c[-1] / a * (-0.5 - k) / (k + 1))
    return c, 35 / 128 * least**-4.5, 63 / 256 * least**-5.5


class Value:
    """V of the networks."""

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        angles, others, size = networks.angles, networks.others, len(networks.at_target)
        n = len(angles) + len(others)
        places = [np.zeros((n, size)) for _ in range(3)]
        for j, i in enumerate(angles):
            places[0][i, j] = places[1][i, len(angles) + j] = 1.0
        for j, i in enumerate(others):
            places[2][i, 2 * len(angles) + j] = networks.arrays["scale"][j]
        self.places = places
        rows, columns = np.tril_indices(size)
        self.diagonal = np.diag((rows == columns).astype(float))
        self.of_row = (np.arange(size)[:, None] == rows).astype(float)
        self.to_column = (columns[:, None] == np.arange(size)).astype(float)

    def __call__(self, x: Sequence[Model], way: Sequence[Model] | None, symbols: int) -> tuple[Model, Model]:
        """V over N sets, and its slope along a direction (n,); else V again."""
        found = []
        for k in range(0, max(len(x[0].rest), 1), TOGETHER):
            at = slice(k, k + TOGETHER)
            state, *along = (Noisy.of([e.rows(at) for e in row], symbols) for row in (x, way) if row is not None)
            total = self._of(Tilted(state, along[0] if along else None))
            found.append((total.value.model(), (total.slope or total.value).model()))
        values, slopes = (
            Model(np.concatenate([m.terms for m in part], 1), np.concatenate([m.rest for m in part]))
            for part in zip(*found, strict=True)
        )
        return values, slopes

    def _of(self, x: Tilted) -> Tilted:
        """V (N, 1)."""
        arrays, start = self.networks.arrays, self.networks.at_target
        sines, cosines = (x.through(sine(ahead)) for ahead in (0.0, 0.5 * np.pi))
        z = sines.to(self.places[0]) + cosines.to(self.places[1]) + x.to(self.places[2])
        metric = arrays["metric"]
        straight = z.to(np.eye(len(start)), -start).to(metric)
        square = (straight * straight).to(np.full((len(start), 1), float(arrays["bend"])), 1.0)
        y = straight * square.through(shorter).to(np.ones((1, len(start))))
        members = [self._member(layers, z, y) for layers in self.networks.members]
        return sum(members[1:], members[0]).to(np.full((1, 1), -1.0 / len(members)))

    def _member(self, layers: list[tuple[Array, Array]], z: Tilted, y: Tilted) -> Tilted:
        """|L' y|^2 of one network."""
        h = z
        for weight, bias in layers[:-1]:
            h = h.to(weight, bias).through(tanh)
        raw = h.to(*layers[-1])
        size = len(self.diagonal)
        turned = raw.to(self.diagonal).through(softplus)
        entries = turned.to(self.diagonal, DIAGONAL * np.diag(self.diagonal)) + raw.to(np.eye(size) - self.diagonal)
        parts = (entries * y.to(self.of_row)).to(self.to_column)
        return (parts * parts).to(np.ones((len(self.to_column[0]), 1)))
