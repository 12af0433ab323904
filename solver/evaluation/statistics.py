"""Statistics of rollouts over a box of parameters, with intervals.

Rollouts are pooled over the runs of a group, which differ by their seeds only. Intervals are bootstrapped over the
runs, since the rollouts of one policy say nothing about the next training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.evaluation.parameter_box import Box

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
WORST_CASES = ("return_25", "return_50", "return_mean", "return_worst", "success_rate")  # lowest over the box


@dataclass(frozen=True)
class Statistic:
    """A number with its interval, for every point of the box or for the whole box. One run gives no interval."""

    value: Any  # nested lists in the shape of the box, or a number
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class WorstCase:
    """The lowest value of a statistic over the box, and the parameters where it is found."""

    statistic: Statistic
    parameters: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Runs that differ by their seeds, on every point of the box."""

    label: str
    runs: tuple[str, ...]
    statistics: dict[str, Statistic]  # by the names in STATISTICS
    worst: dict[str, WorstCase]  # by the names in WORST_CASES


def summarise(label: str, runs: tuple[str, ...], samples: Sequence[Samples], box: Box) -> Group:
    """Compute the statistics of a group, with bootstrap intervals over its runs."""
    pooled = np.stack(samples)
    value = statistics(pooled)
    lowest = {name: value[name].argmin() for name in WORST_CASES}

    def all_of(pooled: Array) -> Array:
        """Every statistic at every point, and below them the lowest of each in another row."""
        found = np.stack(list(statistics(pooled).values()))
        return np.hstack([found, found.min(1, keepdims=True)])

    bounds = bootstrap(all_of, pooled)

    def nested(row: Array) -> Any:
        return row.reshape(box.shape).tolist()

    stated, worst = {}, {}
    for i, name in enumerate(STATISTICS):
        limits = () if bounds is None else tuple(bounds[:, i])
        stated[name] = Statistic(nested(value[name]), *(nested(each[:-1]) for each in limits))
        if name in lowest:
            at = lowest[name]
            places = np.unravel_index(at, box.shape)
            parameters = {axis.parameter: axis.values[k] for axis, k in zip(box.axes, places, strict=True)}
            worst[name] = WorstCase(
                Statistic(float(value[name][at]), *(float(each[-1]) for each in limits)), parameters
            )
    return Group(label, runs, stated, {name: worst[name] for name in WORST_CASES})


def statistics(pooled: Array) -> dict[str, Array]:
    """Compute every one of STATISTICS (points,) from samples (runs, 4, points, episodes)."""
    _, kinds, points, _ = pooled.shape
    together = pooled.transpose(1, 2, 0, 3).reshape(kinds, points, -1)
    found: dict[str, Array] = {}
    for quantity, values in zip(QUANTITIES, together[:3], strict=True):
        rows = np.percentile(values, PERCENTILES, axis=1)
        found |= {f"{quantity}_{share}": row for share, row in zip(PERCENTILES, rows, strict=True)}
    returns, success = together[0], together[3]
    found |= {"return_mean": returns.mean(1), "return_worst": returns.min(1), "success_rate": success.mean(1)}
    return found


def bootstrap(function: Callable[[Array], Array], pooled: Array) -> Array | None:
    """The percentile interval (2, ...) of function(runs resampled with replacement), or None for a single run.

    A few runs give only a few different samples; each is computed once.
    """
    runs = len(pooled)
    if runs < 2:
        return None
    drawn = np.sort(np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs)), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    found = np.stack([function(pooled[picked]) for picked in different])
    bounds: Array = np.percentile(found[which.ravel()], CONFIDENCE, axis=0)
    return bounds
