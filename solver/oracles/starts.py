"""A few starts that stand for a task's Gaussian start distribution: the same ones at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, qmc

from modelgen.metadata import Metadata
from solver.errors import SolverError

Array = NDArray[np.float64]
INSIDE = 0.99  # of a limit that clips: drawn starts lie within, so that a motion can begin there
DESIGNS = 256  # among which the most even one is taken
MOST = 100


def design(metadata: Metadata, count: int) -> Array:
    """At most `count` starts (N, n): the mean alone where nothing is drawn, else quantiles of the Gaussian.

    Every state runs through the same quantiles in another order, the order being that of least discrepancy. The
    quantiles are scaled to variance 1, so that a quadratic function has its mean over the distribution where the
    states' orders are uncorrelated. Raises SolverError for a mean beyond a limit, and for a bad count.
    """
    if not 1 <= count <= MOST:
        raise SolverError(f"--starts is {count}; give at least 1 and at most {MOST}")
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
    """Raise SolverError where a start (n,) lies beyond the limit of a state that does not wrap."""
    for value, state in zip(start, metadata.states, strict=True):
        if not state.continuous and abs(value) > state.limit:
            raise SolverError(
                f"{what} has {state.name} beyond its limit of {state.limit:g} {state.unit}: no motion can begin "
                "there. Widen the limit in the model file or move the start."
            )


def _normal(count: int, dimensions: int) -> Array:
    """(count, dimensions) of a standard normal: each column holds the same quantiles."""
    rng, strata = np.random.default_rng(0), (np.arange(count) + 0.5) / count
    designs = [np.column_stack([rng.permutation(strata) for _ in range(dimensions)]) for _ in range(DESIGNS)]
    found: Array = norm.ppf(min(designs, key=qmc.discrepancy))
    found /= found.std(axis=0)
    return found
