"""Derivatives by finite differences, for engines that have none of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from modelgen.engines.engine import Array

STEP = 1e-3  # relative to the largest value of a variable
STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))  # a first derivative, of fourth order


def differences(function: Callable[[Array], Array], at: Array, steps: Array) -> Array:
    """d function / d at, the last axis of both, by central differences: (..., entries, variables)."""
    columns = []
    for number, step in enumerate(steps):
        values = []
        for multiple, weight in STENCIL:
            moved = at.copy()
            moved[..., number] += multiple * step
            values.append(weight / step * function(moved))
        columns.append(np.sum(values, axis=0))
    return np.stack(columns, axis=-1)


def by_state(acceleration: Callable[[Array, Array], Array], x: Array, u: Array) -> Array:
    """dvdot/dx (N, n_q, n) of an engine's accelerations at fixed u."""
    return differences(lambda moved: acceleration(moved, u), x, STEP * np.abs(x).max(axis=0))
