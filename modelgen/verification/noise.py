"""The rounding of a function, seen from outside: how far its entries move when the arguments move by rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNITS = 4  # in the last place


def moved(x: Array, precision: type[np.floating] = np.float64) -> Array:
    """The points with every number changed by up to `UNITS` units in the last place of `precision`."""
    random = np.random.default_rng(3)
    change = UNITS * float(np.finfo(precision).eps)
    return np.asarray(x * (1 + change * random.uniform(-1, 1, x.shape)), np.float64)


def natural_scale(values: Array) -> Array:
    """The scale of each entry of `values` (N, ...): the geometric mean of the largest values along its axes.

    For a matrix it is sqrt(row largest * column largest), at least the entry itself. It follows a change of units of
    rows and columns, so that an entry that should be zero can be judged by it. A vector has one scale for all entries.
    """
    largest = np.abs(values).max(axis=0)
    if largest.ndim < 2:
        return np.full_like(largest, largest.max(initial=0))
    result: Array = np.ones_like(largest)
    for axis in range(largest.ndim):
        others = tuple(each for each in range(largest.ndim) if each != axis)
        along = largest.max(axis=others, keepdims=True, initial=0)
        along = np.where(along > 0, along, largest.max(initial=0))  # a row of zeros has the scale of the whole
        result = result * along ** (1 / largest.ndim)
    return np.asarray(result, np.float64)


def numbers(values: Array) -> str:
    """A vector for a message."""
    return f"({', '.join(f'{value:.6g}' for value in values)})"
