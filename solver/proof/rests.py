"""Numbers of second order whose rests are symbols of their own, so that a network does not multiply them by its sizes.

A rest says nothing of its sign. Layer by layer, the rests of all neurons would count by the absolute values of the
weights. As noise symbols (Stolfi and de Figueiredo, 1997) they pass through the product of the matrices instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.proof.affine import UNIT, rounding, upward
from solver.proof.quadratic import Derivatives, Quadratic

_number = itertools.count()  # of a block of noise symbols
NOTHING = 1e-200  # a smaller rest is no symbol


@dataclass(frozen=True)
class Noisy:
    """Numbers (N, k) of second order in the symbols of a set, and linear in noise symbols.

    known: the part of second order, whose rest belongs to no symbol yet. noise: coefficients (m, N, k) of blocks of
    symbols by number.
    """

    known: Quadratic
    noise: Mapping[int, Array]

    @classmethod
    def of(cls, known: Quadratic) -> Noisy:
        """Numbers without noise."""
        return cls(known, {})

    @cached_property
    def spread(self) -> Array:
        """Largest size (N, k) of the noise."""
        total = np.zeros_like(self.known.rest)
        for block in self.noise.values():
            total += upward(np.abs(block).sum(0), len(block))
        return upward(total, len(self.noise) + 1)

    @cached_property
    def whole(self) -> Quadratic:
        """The same numbers, with the noise in the rest."""
        return Quadratic(self.known.terms, self.known.rest + self.spread)

    @property
    def middle(self) -> Array:
        """Middles (N, k)."""
        return self.known.middle

    @property
    def bend(self) -> Array:
        """Largest distance (N, k) from the middle."""
        return self.whole.bend

    @property
    def opened(self) -> Noisy:
        """The same numbers, whose rests are new symbols."""
        rest = self.known.rest
        if not (rest > NOTHING).any():
            return self
        block = np.zeros((rest.shape[1], *rest.shape))
        block[range(len(block)), :, range(len(block))] = rest.T
        bare = Quadratic(self.known.terms, np.zeros_like(rest))
        return Noisy(bare, {**self.noise, next(_number): block})

    def __getitem__(self, columns: Any) -> Noisy:
        return Noisy(self.known[columns], {k: block[..., columns] for k, block in self.noise.items()})

    def __add__(self, other: Noisy) -> Noisy:
        size, noise = self.spread + other.spread, dict(self.noise)
        for k, block in other.noise.items():
            noise[k] = noise[k] + block if k in noise else block
        return Noisy(self.known + other.known, noise)._widened(rounding(size))

    def __sub__(self, other: Noisy) -> Noisy:
        return self + other.times(-1.0)

    def __mul__(self, other: Noisy) -> Noisy:
        a, b = self.middle, other.middle
        product, noise = self.whole * other.whole, {k: block * b for k, block in self.noise.items()}
        for k, block in other.noise.items():
            noise[k] = noise[k] + block * a if k in noise else block * a
        return Noisy(product, noise)._less(np.abs(a) * other.spread + np.abs(b) * self.spread)

    def through(self, value: Array, slope: Array, second: Array, third: Array | float) -> Noisy:
        """A function with these derivatives at the middle, and at most this third one in the set."""
        found = self.whole.through(value, slope, second, third)
        noise = {k: slope * block for k, block in self.noise.items()}
        return Noisy(found, noise)._less(np.abs(slope) * self.spread)

    def cubic(self, derivatives: Derivatives, third: float, fourth: float) -> Noisy:
        """A function with its value and three derivatives at the middle, and the largest third and fourth ones.

        With c the third one, c t^3 / 6 is c b^2 t / 8 up to c b^3 / 24 where |t| <= b.
        """
        (value, slope, second, c), b = derivatives, self.bend
        rest = 0.25 * np.abs(c) + 0.25 * fourth * b
        better = rest < third
        return self.through(
            value, slope + np.where(better, 0.125 * c * b * b, 0.0), second, np.where(better, rest, third)
        )

    def plus(self, values: Array | float) -> Noisy:
        """The numbers plus exact ones."""
        return Noisy(self.known.plus(values), self.noise)

    def times(self, factor: Array | float) -> Noisy:
        """The numbers times exact ones."""
        found = Noisy(self.known.times(factor), {k: block * factor for k, block in self.noise.items()})
        return found._widened(rounding(np.abs(factor) * self.spread))

    def to(self, weight: Array) -> Noisy:
        """The numbers times a matrix (k, j)."""
        size, k = np.abs(weight), len(weight)
        noise = {at: (block.reshape(-1, k) @ weight).reshape(*block.shape[:-1], -1) for at, block in self.noise.items()}
        return Noisy(self.known.to(weight), noise)._widened(rounding(self.spread @ size, k + 4))

    def _widened(self, rest: Array) -> Noisy:
        return Noisy(Quadratic(self.known.terms, self.known.rest + rest), self.noise)

    def _less(self, counted: Array) -> Noisy:
        """The numbers without what the noise symbols have already, of the rest."""
        rest = np.maximum(self.known.rest - counted * (1 - 16 * UNIT), 0.0)
        return Noisy(Quadratic(self.known.terms, rest), self.noise)
