"""Where the policy arrives: a map over two states, and the largest level set {V >= c} that holds as a region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.certification.bound import failure_bound
from solver.certification.distribution import Distribution, Uniform
from solver.certification.experiment import Announce, Experiment, noises
from solver.streams import Purpose, stream
from solver.value.frozen import ValueFunction

POINTS = 31  # of the map along each state
SAMPLES = 2000  # for the level set, both halves


@dataclass(frozen=True)
class LevelSet:
    """{V >= c}: c from one half of the samples, and the bound from the other."""

    level: float
    episodes: int  # of the second half, in the set
    failures: int  # of these
    failure_bound: float
    share: float  # of the domain's volume, by the second half

    def to_json(self) -> dict[str, Any]:
        """The same in built-in types."""
        return dict(vars(self))


@dataclass(frozen=True)
class Map:
    """Outcomes over two states, the others at the target and the parameters nominal."""

    states: tuple[int, int]
    axes: tuple[Array, Array]
    arrived: NDArray[np.bool_]  # (POINTS, POINTS), the second state along the rows
    value: Array | None  # V at the same points


def arrival_map(experiment: Experiment, value: ValueFunction | None, seed: int) -> Map:
    """Roll out from a grid over the two states of the specification."""
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
    """The largest set without a failure among the first half of starts from the whole domain.

    The parameters are those of the specification. None where a failure has the highest V of its half, or where no start
    of the second half is in the set.
    """
    problem = experiment.problem
    limits = problem.state_limits.double().numpy()
    everywhere = Distribution(Uniform(-limits, limits), experiment.specification.distribution.parameters)
    x, theta = everywhere(problem, everywhere.sample(SAMPLES, stream(seed, 0, Purpose.LEVEL_SET)))
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
    """The lowest V of the starts above every failure."""
    above = height[height > height[failed].max()] if failed.any() else height
    return float(above.min()) if len(above) else None
