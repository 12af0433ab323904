"""Distributions of starts and parameters, each the image of the uniform distribution on a unit cube.

One map serves twice: random points of the cube are the samples of a certificate, and the search for the worst case
moves in the cube.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm
from torch import Tensor

from modelgen.arrays import Array
from solver.problem.problem import Problem

TAIL = float(norm.cdf(-3.0))  # the search stays within three standard deviations of a Gaussian


class Part(Protocol):
    """A distribution of d quantities, made of k independent uniform numbers."""

    @property
    def search(self) -> Array:
        """(k, 2) the bounds of the uniform numbers within which the worst case is looked for."""

    def __call__(self, z: Array) -> Array:
        """(N, d) the quantities for the uniform numbers z (N, k)."""


@dataclass(frozen=True)
class Uniform:
    """Independent and uniform between lower and upper, (d,) each; constant where the two are equal."""

    lower: Array
    upper: Array

    @cached_property
    def _spread(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.upper > self.lower)

    @property
    def search(self) -> Array:
        """The whole box."""
        return np.tile([0.0, 1.0], (len(self._spread), 1))

    def __call__(self, z: Array) -> Array:
        """lower + z (upper - lower)."""
        values = np.tile(self.lower, (len(z), 1))
        values[:, self._spread] += z * (self.upper - self.lower)[self._spread]
        return values


@dataclass(frozen=True)
class Gaussian:
    """Independent and Gaussian, with the mean and standard deviation (d,); constant where the deviation is 0."""

    mean: Array
    deviation: Array

    @cached_property
    def _spread(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.deviation > 0.0)

    @property
    def search(self) -> Array:
        """Within three standard deviations."""
        return np.tile([TAIL, 1.0 - TAIL], (len(self._spread), 1))

    def __call__(self, z: Array) -> Array:
        """mean + deviation * the quantile of z."""
        values = np.tile(self.mean, (len(z), 1))
        values[:, self._spread] += self.deviation[self._spread] * norm.ppf(z)
        return values


@dataclass(frozen=True)
class InEllipsoid:
    """Uniform in centre + factor b with |b| <= 1, each quantity then clipped to its bounds; factor (d, r).

    The direction of b is that of r Gaussian numbers, and its length the r-th root of a uniform one.
    """

    centre: Array
    factor: Array
    lower: Array
    upper: Array

    @property
    def search(self) -> Array:
        """All lengths, and all directions within three standard deviations of the Gaussian numbers."""
        rank = self.factor.shape[1]
        return np.array([[TAIL, 1.0 - TAIL]] * rank + [[0.0, 1.0]] * (rank > 0))

    def __call__(self, z: Array) -> Array:
        """centre + factor b."""
        rank = self.factor.shape[1]
        if rank == 0:
            return np.tile(np.clip(self.centre, self.lower, self.upper), (len(z), 1))
        draw = norm.ppf(z[:, :rank])
        length = np.linalg.norm(draw, axis=1, keepdims=True)
        b = draw / np.maximum(length, np.finfo(float).tiny) * z[:, rank:] ** (1.0 / rank)
        clipped: Array = np.clip(self.centre + b @ self.factor.T, self.lower, self.upper)
        return clipped


@dataclass(frozen=True)
class Distribution:
    """Starts and parameters, independent of each other."""

    starts: Part
    parameters: Part

    @cached_property
    def search(self) -> Array:
        """(k, 2) bounds of all uniform numbers for the search, those of the starts first."""
        return np.concatenate([part.search.reshape(-1, 2) for part in (self.starts, self.parameters)])

    def sample(self, size: int, seed: int) -> Array:
        """Draw points (size, k) of the open unit cube."""
        smallest = np.finfo(float).tiny  # a quantile of 0 is no number
        return np.random.default_rng(seed).uniform(smallest, 1.0, (size, len(self.search)))

    def __call__(self, problem: Problem, z: Array) -> tuple[Tensor, Tensor]:
        """Starts (N, n), confined to the state domain, and theta (N, p) for points z (N, k) of the cube, float32."""
        first = len(self.starts.search)
        x = torch.from_numpy(np.ascontiguousarray(self.starts(z[:, :first]), np.float32))
        theta = torch.from_numpy(np.ascontiguousarray(self.parameters(z[:, first:]), np.float32))
        return problem.confine(x), theta
