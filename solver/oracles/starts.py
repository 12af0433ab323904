"""A few starts that represent a task's Gaussian start distribution. They are the same in every call."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm, qmc

from modelgen.arrays import Array
from modelgen.metadata import Metadata
from solver.errors import SolverError

INSIDE = 0.99  # of a limit that clips: starts lie within it, so that a motion can start there
DESIGNS = 256  # random designs, of which the most even one is used
MOST = 100  # starts


def design(metadata: Metadata, count: int) -> Array:
    """At most `count` starts (N, n): quantiles of the Gaussian, or only its mean if it has no spread.

    All states have the same quantiles in different orders, of least discrepancy among DESIGNS. The quantiles are scaled
    to variance 1, so that a quadratic function has nearly its mean over the distribution.

    Raises SolverError for a mean beyond a limit, and for a count out of range.
    """
    if not 1 <= count <= MOST:
        raise SolverError(f"--starts is {count}; give a number from 1 to {MOST}")
    mean, deviation = np.array(metadata.task.start_mean), np.array(metadata.task.start_deviation)
    require_within(metadata, mean, "the mean start")
    limits = np.array([state.limit for state in metadata.states])
    spread = np.flatnonzero(deviation > 0.0)
    if count == 1 or not len(spread):
        return mean[None]
    starts = np.tile(mean, (count, 1))
    starts[:, spread] += deviation[spread] * _normal(count, len(spread))
    for i in spread:
        if not metadata.states[i].continuous:
            starts[:, i] = np.clip(starts[:, i], -INSIDE * limits[i], INSIDE * limits[i])
    return starts


def require_within(metadata: Metadata, start: Array, what: str) -> None:
    """Raises SolverError if a start (n,) lies beyond the limit of a state that does not wrap."""
    for value, state in zip(start, metadata.states, strict=True):
        if not state.continuous and abs(value) > state.limit:
            raise SolverError(
                f"{what} has {state.name} {value:g}, beyond its limit of {state.limit:g} {state.unit}. Widen the limit "
                "in the model file, or change the start."
            )


def _normal(count: int, dimensions: int) -> Array:
    """Standard normal samples (count, dimensions). All columns have the same quantiles."""
    rng, strata = np.random.default_rng(0), (np.arange(count) + 0.5) / count
    designs = [np.column_stack([rng.permutation(strata) for _ in range(dimensions)]) for _ in range(DESIGNS)]
    samples: Array = norm.ppf(min(designs, key=qmc.discrepancy))
    samples /= samples.std(axis=0)
    return samples
