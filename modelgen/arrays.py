"""Type of the NumPy arrays in signatures, for `modelgen` and `solver`, and an integration step on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def on_sphere(x: Array, quaternions: Sequence[slice]) -> None:
    """Scale the quaternions in the states x (N, n) to length one, in place."""
    for entries in quaternions:
        x[:, entries] /= np.linalg.norm(x[:, entries], axis=1, keepdims=True)


def runge_kutta_step(rate: Callable[[Array, float], Array], x: Array, time: float, step: float) -> Array:
    """States (N, n) after one step of the classical Runge-Kutta method of fourth order, for xdot = rate(x, time)."""
    first = rate(x, time)
    second = rate(x + step / 2 * first, time + step / 2)
    third = rate(x + step / 2 * second, time + step / 2)
    fourth = rate(x + step * third, time + step)
    return x + step / 6 * (first + 2 * second + 2 * third + fourth)
