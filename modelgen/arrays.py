"""Type of the NumPy arrays in signatures, and integration on them: a step, and how many a control period needs."""

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


TOLERANCE = 1e-4  # largest change of a state, as a share of its limit, when the step in a control period is halved
MOST_STEPS = 64
SHARES = (1.0, 0.1, 0.01)  # of the way from the trim to the inputs' limits, until a motion is resolved


def sufficient_steps(rates: Callable[[Array], Array], x: Array, seconds: float, limits: Array) -> tuple[int, int]:
    """The least power of two of Runge-Kutta steps in `seconds` after which no state changes by more than TOLERANCE of
    its limit if their length is halved; and the index of the worst state. 0 if MOST_STEPS are not enough.

    rates: from states (N, n) to their rates. x (N, n): the states before.
    """
    coarse, steps, worst = _after(rates, x, seconds, 1), 1, 0
    while steps <= MOST_STEPS:
        fine = _after(rates, x, seconds, 2 * steps)
        with np.errstate(all="ignore"):
            error = np.abs(fine - coarse) / limits
        if error.max() <= TOLERANCE:  # false where a state is not finite
            return steps, worst
        if np.isfinite(error).all():  # if the states diverge, keep the last comparison that was finite
            worst = int(error.max(0).argmax())
        coarse, steps = fine, 2 * steps
    return 0, worst


def _after(rates: Callable[[Array], Array], x: Array, seconds: float, steps: int) -> Array:
    """The states (N, n) after `seconds`, with constant inputs."""
    h = seconds / steps
    with np.errstate(all="ignore"):
        for _ in range(steps):
            x = runge_kutta_step(lambda at, _: rates(at), x, 0.0, h)
    return x
