"""Distributions of starts and parameters, each as a map from the uniform distribution on a unit cube.

Random points of the cube give the samples of a certificate. The search for the worst case searches in the cube.
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

TAIL = float(norm.cdf(-3.0))  # the search is limited to three standard deviations of a Gaussian


class Part(Protocol):
    """Distribution of d quantities as a function of k independent uniform numbers."""

    @property
    def search(self) -> Array:
        """Bounds (k, 2) of the uniform numbers in the search for the worst case."""

    def __call__(self, z: Array) -> Array:
        """Quantities (N, d) for the uniform numbers z (N, k)."""


@dataclass(frozen=True)
class Uniform:
    """Independent uniform quantities between lower and upper, (d,) each. A quantity with equal bounds is constant."""

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
    """Independent Gaussian quantities with mean and standard deviation (d,). With a deviation of 0 they are
    constant."""

    mean: Array
    deviation: Array

    @cached_property
    def _spread(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.deviation > 0.0)

    @property
    def search(self) -> Array:
        """Three standard deviations on both sides."""
        return np.tile([TAIL, 1.0 - TAIL], (len(self._spread), 1))

    def __call__(self, z: Array) -> Array:
        """mean + deviation * quantile(z)."""
        values = np.tile(self.mean, (len(z), 1))
        values[:, self._spread] += self.deviation[self._spread] * norm.ppf(z)
        return values


@dataclass(frozen=True)
class InEllipsoid:
    """Quantities uniform in the ellipsoid centre + factor b with |b| <= 1, factor (d, r), then clipped to their bounds.

    The direction of b is the direction of r Gaussian numbers, and its length the r-th root of a uniform number.
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
        """Bounds (k, 2) of all uniform numbers in the search; the numbers of the starts come first."""
        return np.concatenate([part.search.reshape(-1, 2) for part in (self.starts, self.parameters)])

    def sample(self, size: int, seed: int) -> Array:
        """Random points (size, k) of the open unit cube."""
        smallest = np.finfo(float).tiny  # the quantile of 0 is infinite
        return np.random.default_rng(seed).uniform(smallest, 1.0, (size, len(self.search)))

    def __call__(self, problem: Problem, z: Array) -> tuple[Tensor, Tensor]:
        """Starts (N, n) in the state domain and parameters (N, p) for points z (N, k) of the cube, float32."""
        first = len(self.starts.search)
        x = torch.from_numpy(np.ascontiguousarray(self.starts(z[:, :first]), np.float32))
        theta = torch.from_numpy(np.ascontiguousarray(self.parameters(z[:, first:]), np.float32))
        return problem.confine(x), theta
