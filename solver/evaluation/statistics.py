"""Grid over one or two physical parameters, and statistics of rollouts over it with confidence intervals.

Rollouts are pooled over the runs of a group, which differ only in their seeds. The bootstrap resamples runs and not
rollouts, because the rollouts of one policy say nothing about the next training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from modelgen.arrays import Array
from solver.errors import SolverError
from solver.problem import Problem
from solver.problem.parameters import Relative, changed_parameters


@dataclass(frozen=True)
class ParameterRange:
    """Evenly spaced changes of one parameter, from `start` to `end`."""

    parameter: str
    start: float
    end: float
    points: int
    added: bool  # True: the changes are added to the nominal value; False: they multiply it


@dataclass(frozen=True)
class Axis:
    """One axis of a grid: a parameter and its changes."""

    parameter: str
    unit: str
    nominal: float
    added: bool  # see ParameterRange
    changes: tuple[float, ...]
    values: tuple[float, ...]  # of the parameter after the changes, in its unit


@dataclass(frozen=True)
class ParameterBox:
    """Grid of all combinations of the values of one or two parameters. The last parameter changes fastest."""

    axes: tuple[Axis, ...]
    theta: torch.Tensor  # (points, p) all parameters at every point

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points on every axis."""
        return tuple(len(axis.changes) for axis in self.axes)


def make_box(problem: Problem, ranges: Sequence[ParameterRange]) -> ParameterBox:
    """Grid of one or two ranges.

    Raises SolverError for another number of ranges, an unknown parameter, an empty range, and values that
    `changed_parameters` rejects.
    """
    names = [interval.parameter for interval in ranges]
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise SolverError(f"the parameters are {' '.join(names) or '(none)'}; give one, or two different ones")
    for interval in ranges:
        if interval.points < 2 or not math.isfinite(interval.start) or not interval.start < interval.end < math.inf:
            raise SolverError(
                f"{interval.points} points from {interval.start:g} to {interval.end:g} are not a range of "
                f"{interval.parameter}; give at least two points, and a start below the end"
            )
    references = [name for name in names if name in problem.robot.metadata.references]
    if references:
        raise SolverError(
            f"{references[0]} is a reference, which the policy is always told, and every rollout draws another one. "
            f"Write `solver evaluate RUN --set {references[0]}=...` for one value, or name a parameter of the robot"
        )
    spread = [np.linspace(interval.start, interval.end, interval.points).tolist() for interval in ranges]
    relative = [
        [Relative(added=change) if interval.added else Relative(factor=change) for change in changes]
        for interval, changes in zip(ranges, spread, strict=True)
    ]
    theta = torch.stack([changed_parameters(problem, dict(zip(names, row, strict=True))) for row in product(*relative)])
    axes = []
    for interval, changes in zip(ranges, spread, strict=True):
        name, added = interval.parameter, interval.added
        parameter = next(known for known in problem.robot.metadata.parameters if known.name == name)
        values = [parameter.value + change if added else parameter.value * change for change in changes]
        axes.append(Axis(name, parameter.unit, parameter.value, added, tuple(changes), tuple(values)))
    return ParameterBox(tuple(axes), theta)


Samples = Array  # (4, points, episodes) of one run: QUANTITIES, and success

RESAMPLES = 1000
CONFIDENCE = (2.5, 97.5)  # percentiles of the resampled statistics
PERCENTILES = (25, 50, 75)
QUANTITIES = ("return", "state_reward", "action_reward")
STATISTICS = (
    *(f"{quantity}_{percentile}" for quantity in QUANTITIES for percentile in PERCENTILES),
    "return_mean",
    "return_worst",  # of all rollouts
    "success_rate",
)
WORST_CASES = ("return_25", "return_50", "return_mean", "return_worst", "success_rate")  # with their lowest point


@dataclass(frozen=True)
class Statistic:
    """Value with its interval, at every point of the grid or for the whole grid. One run gives no interval."""

    value: Any  # nested lists in the shape of the grid, or a number
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class LowestStatistic:
    """Lowest value of a statistic over the grid, and the parameters at this point."""

    statistic: Statistic
    parameters: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Statistics of runs that differ only in their seeds."""

    label: str
    runs: tuple[str, ...]
    statistics: dict[str, Statistic]  # by the names in STATISTICS
    worst: dict[str, LowestStatistic]  # by the names in WORST_CASES


def summarise(label: str, runs: tuple[str, ...], samples: Sequence[Samples], box: ParameterBox) -> Group:
    """Statistics of a group, with bootstrap intervals over its runs. samples: one array for every run."""
    pooled = np.stack(samples)
    value = statistics(pooled)
    lowest = {name: value[name].argmin() for name in WORST_CASES}

    def all_of(pooled: Array) -> Array:
        """Statistics at all points, and their minima over the points, (len(STATISTICS), points + 1)."""
        values = np.stack(list(statistics(pooled).values()))
        return np.hstack([values, values.min(1, keepdims=True)])

    bounds = bootstrap(all_of, pooled)

    def nested(row: Array) -> Any:
        return row.reshape(box.shape).tolist()

    by_name, worst = {}, {}
    for i, name in enumerate(STATISTICS):
        limits = () if bounds is None else tuple(bounds[:, i])
        by_name[name] = Statistic(nested(value[name]), *(nested(limit[:-1]) for limit in limits))
        if name in lowest:
            at = lowest[name]
            places = np.unravel_index(at, box.shape)
            parameters = {axis.parameter: axis.values[k] for axis, k in zip(box.axes, places, strict=True)}
            worst[name] = LowestStatistic(
                Statistic(float(value[name][at]), *(float(limit[-1]) for limit in limits)), parameters
            )
    return Group(label, runs, by_name, {name: worst[name] for name in WORST_CASES})


def statistics(pooled: Array) -> dict[str, Array]:
    """The STATISTICS (points,) of samples (runs, 4, points, episodes), by name."""
    _, kinds, points, _ = pooled.shape
    together = pooled.transpose(1, 2, 0, 3).reshape(kinds, points, -1)
    by_name: dict[str, Array] = {}
    for quantity, values in zip(QUANTITIES, together[:3], strict=True):
        rows = np.percentile(values, PERCENTILES, axis=1)
        by_name |= {f"{quantity}_{share}": row for share, row in zip(PERCENTILES, rows, strict=True)}
    returns, success = together[0], together[3]
    by_name |= {"return_mean": returns.mean(1), "return_worst": returns.min(1), "success_rate": success.mean(1)}
    return by_name


def bootstrap(function: Callable[[Array], Array], pooled: Array) -> Array | None:
    """Percentile interval (2, ...) of function(runs resampled with replacement), or None for a single run.

    A few runs give only a few different resamples. The function is computed once for each of them.
    """
    runs = len(pooled)
    if runs < 2:
        return None
    drawn = np.sort(np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs)), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    values = np.stack([function(pooled[picked]) for picked in different])
    bounds: Array = np.percentile(values[which.ravel()], CONFIDENCE, axis=0)
    return bounds
