"""Derivatives by finite differences with their errors, for engines that have none of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from modelgen.engines.engine import Array

STEP = 4e-3  # the largest, relative to the largest value of a variable
FACTOR = 4  # between one step and the next
LEVELS = 6


def differences(function: Callable[[Array], Array], at: Array, steps: Array) -> tuple[Array, Array]:
    """d function / d at, (..., entries, variables), by central differences; and the estimate of its error.

    Richardson extrapolation from `LEVELS` steps, each entry from the steps at which its error is estimated smallest
    (Ridders, Accurate computation of F'(x) and F'(x)F''(x), 1982). steps: the largest step of each variable.
    """
    columns = [_column(function, at, number, float(step)) for number, step in enumerate(steps)]
    slopes, errors = (np.stack(each, axis=-1) for each in zip(*columns, strict=True))
    return slopes, errors


def _column(function: Callable[[Array], Array], at: Array, number: int, step: float) -> tuple[Array, Array]:
    slope = error = np.array(np.inf)
    before: list[Array] = []
    for level in range(LEVELS):
        ahead, behind = at.copy(), at.copy()
        ahead[..., number] += step / FACTOR**level
        behind[..., number] -= step / FACTOR**level
        width = (ahead - behind)[..., number]  # as rounded
        width = width[:, None] if width.ndim else width
        values = function(ahead), function(behind)
        rounding = np.finfo(np.float64).eps * np.maximum(*map(abs, values)) / abs(width)
        row = [(values[0] - values[1]) / width]
        for order, coarser in enumerate(before, start=1):
            row.append(row[-1] + (row[-1] - coarser) / (FACTOR ** (2 * order) - 1))
            estimate = np.maximum.reduce([abs(row[-1] - row[-2]), abs(row[-1] - coarser), rounding])
            better = estimate < error
            slope, error = np.where(better, row[-1], slope), np.where(better, estimate, error)
        before = row
    return slope, error


def by_state(acceleration: Callable[[Array, Array], Array], x: Array, u: Array) -> tuple[Array, Array]:
    """dvdot/dx (N, n_q, n) of an engine's accelerations at fixed u, and the estimate of its error."""
    return differences(lambda moved: acceleration(moved, u), x, STEP * np.abs(x).max(axis=0))
