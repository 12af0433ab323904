"""Statistics of rollouts over a grid of parameters, with intervals.

The rollouts of all runs of a group are pooled. Its runs differ by their seeds only. Intervals are bootstrapped over the
runs, because the rollouts of one policy do not show how the next training would end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.evaluation.parameter_grid import ParameterGrid

Samples = Array  # (4, points, episodes) of one run: QUANTITIES and success

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
WORST_CASES = ("return_25", "return_50", "return_mean", "return_worst", "success_rate")  # lowest over the grid


@dataclass(frozen=True)
class Statistic:
    """A number with its interval, for every point of the grid or for the whole grid. One run gives no interval."""

    value: Any  # nested lists in the shape of the grid, or a number
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class WorstCase:
    """Lowest value of a statistic over the grid, and its parameters."""

    statistic: Statistic
    parameters: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Results of runs that differ by their seeds only, at every point of the grid."""

    label: str
    runs: tuple[str, ...]
    statistics: dict[str, Statistic]  # by the names in STATISTICS
    worst: dict[str, WorstCase]  # by the names in WORST_CASES


def summarise(label: str, runs: tuple[str, ...], samples: Sequence[Samples], grid: ParameterGrid) -> Group:
    """Statistics of a group, with bootstrap intervals over its runs."""
    pooled = np.stack(samples)
    value = statistics(pooled)
    lowest = {name: value[name].argmin() for name in WORST_CASES}

    def all_of(pooled: Array) -> Array:
        """Statistics at every point, with their lowest values as the last column."""
        points = np.stack(list(statistics(pooled).values()))
        return np.hstack([points, points.min(1, keepdims=True)])

    bounds = bootstrap(all_of, pooled)

    def nested(row: Array) -> Any:
        return row.reshape(grid.shape).tolist()

    values, worst = {}, {}
    for i, name in enumerate(STATISTICS):
        limits = () if bounds is None else tuple(bounds[:, i])
        values[name] = Statistic(nested(value[name]), *(nested(row[:-1]) for row in limits))
        if name in lowest:
            at = lowest[name]
            places = np.unravel_index(at, grid.shape)
            parameters = {axis.parameter: axis.values[k] for axis, k in zip(grid.axes, places, strict=True)}
            lowest_value = Statistic(float(value[name][at]), *(float(row[-1]) for row in limits))
            worst[name] = WorstCase(lowest_value, parameters)
    return Group(label, runs, values, {name: worst[name] for name in WORST_CASES})


def statistics(pooled: Array) -> dict[str, Array]:
    """STATISTICS (points,) of samples (runs, 4, points, episodes), by name."""
    _, kinds, points, _ = pooled.shape
    together = pooled.transpose(1, 2, 0, 3).reshape(kinds, points, -1)
    computed: dict[str, Array] = {}
    for quantity, values in zip(QUANTITIES, together[:3], strict=True):
        rows = np.percentile(values, PERCENTILES, axis=1)
        computed |= {f"{quantity}_{share}": row for share, row in zip(PERCENTILES, rows, strict=True)}
    returns, success = together[0], together[3]
    computed |= {"return_mean": returns.mean(1), "return_worst": returns.min(1), "success_rate": success.mean(1)}
    return computed


def bootstrap(function: Callable[[Array], Array], pooled: Array) -> Array | None:
    """Percentile interval (2, ...) of `function` over runs that are resampled with replacement; None for one run.

    Equal resamples are computed once.
    """
    runs = len(pooled)
    if runs < 2:
        return None
    drawn = np.sort(np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs)), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    resampled = np.stack([function(pooled[picked]) for picked in different])
    bounds: Array = np.percentile(resampled[which.ravel()], CONFIDENCE, axis=0)
    return bounds
