"""Starts from which the policy succeeds: a map over two states, and the largest level set {V >= c} without failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.certification.distribution import Distribution, Uniform
from solver.certification.experiment import Announce, Experiment, failure_bound, noises
from solver.streams import Purpose, stream
from solver.value.frozen import ValueFunction

POINTS = 31  # of the map in each state
SAMPLES = 2000  # starts for the level set


@dataclass(frozen=True)
class LevelSet:
    """Level set {V >= c}. The first half of the samples gives c, the second half the bound."""

    level: float  # c
    episodes: int  # samples of the second half in the set
    failures: int  # of these samples
    failure_bound: float
    share: float  # of the second half in the set, an estimate of its share of the domain

    def to_json(self) -> dict[str, Any]:
        """Content for `solver certify --json`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Map:
    """Outcomes of rollouts from a grid over two states. Other states start at the target; parameters are nominal."""

    states: tuple[int, int]  # their indices
    axes: tuple[Array, Array]  # (POINTS,) each
    arrived: NDArray[np.bool_]  # (POINTS, POINTS); rows belong to the second state
    value: Array | None  # (POINTS, POINTS), V at these points


def arrival_map(experiment: Experiment, value: ValueFunction | None, seed: int) -> Map:
    """Map of rollouts over the two states of the specification. value: adds V to it."""
    problem, (i, j) = experiment.problem, experiment.specification.map_states
    limits = problem.state_limits.double().numpy()
    axes = (np.linspace(-limits[i], limits[i], POINTS), np.linspace(-limits[j], limits[j], POINTS))
    horizontal, vertical = np.meshgrid(*axes)
    x = problem.target.repeat(POINTS * POINTS, 1)
    x[:, i] = torch.from_numpy(horizontal.ravel()).float()
    x[:, j] = torch.from_numpy(vertical.ravel()).float()
    theta = problem.theta.repeat(len(x), 1)
    failed = experiment.outcomes(x, theta, noises(len(x), seed, Purpose.LEVEL_SET)).failed
    heights = None if value is None else value(x)[0].double().numpy().reshape(POINTS, POINTS)
    return Map((i, j), axes, ~failed.reshape(POINTS, POINTS), heights)


def level_set(
    experiment: Experiment, value: ValueFunction, confidence: float, seed: int, announce: Announce = lambda _: None
) -> LevelSet | None:
    """Largest level set without a failure among the first half of starts from the whole domain, and its bound.

    The parameters have the distribution of the specification. The result is None if a failure has the highest V of the
    first half, or if no start of the second half is in the set.
    """
    problem = experiment.problem
    limits = problem.state_limits.double().numpy()
    domain = Distribution(Uniform(-limits, limits), experiment.specification.distribution.parameters)
    x, theta = domain(problem, domain.sample(SAMPLES, stream(seed, 0, Purpose.LEVEL_SET)))
    failed = experiment.outcomes(x, theta, noises(SAMPLES, seed, Purpose.LEVEL_SET), announce).failed
    height = value(x)[0].double().numpy()
    level = _level(height[: SAMPLES // 2], failed[: SAMPLES // 2])
    if level is None:
        return None
    inside = height[SAMPLES // 2 :] >= level
    episodes, failures = int(inside.sum()), int(failed[SAMPLES // 2 :][inside].sum())
    if episodes == 0:
        return None
    bound = failure_bound(episodes, failures, confidence)
    return LevelSet(level, episodes, failures, bound, float(inside.mean()))


def _level(height: Array, failed: NDArray[np.bool_]) -> float | None:
    """Lowest V (N,) of the starts that are above all failures, or None if there is none."""
    above = height[height > height[failed].max()] if failed.any() else height
    return float(above.min()) if len(above) else None
