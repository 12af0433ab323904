"""One stage of a Runge-Kutta step of a few states with their sensitivities, compiled: NumPy's calls on arrays so small
take ten times as long as the robot's kernel."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _stage(
    a: Array,
    B: Array,
    da_dx: Array,
    dB_dx: Array,
    da_dtheta: Array,
    dB_dtheta: Array,
    u: Array,
    pushes: Array,
    driven: NDArray[np.intp],
    here: Array,
    begin: Array,
    h: Array,
    weight: float,
    ahead: float,
    end: Array,
) -> Array:
    """Add h * weight * slope to `end`, in place, and return begin + h * ahead * slope, (N, n, 1 + n + p + l + g).

    A state is the first column of such an array, and its derivatives by the start, theta, pushes and gains the others.
    The slope is that at `here`. a to dB_dtheta: (N, n), (N, n, m), (N, n, n), (N, n, m, n), (N, n, p), (N, n, m, p), as
    the robot's `jacobians` there. u: (N, m); pushes: (n, l); driven: (g,) inputs; h: (N,) s.
    """
    N, n, m = B.shape
    p, others = da_dtheta.shape[2], pushes.shape[1]
    slope, following = np.empty(here.shape[1:]), np.empty_like(begin)
    for w in range(N):
        for i in range(n):
            slope[i, 0] = a[w, i]
            slope[i, 1 : 1 + n] = 0.0
            slope[i, 1 + n : 1 + n + p] = da_dtheta[w, i]
            slope[i, 1 + n + p : 1 + n + p + others] = pushes[i]
            for c in range(m):
                slope[i, 0] += B[w, i, c] * u[w, c]
                for b in range(p):
                    slope[i, 1 + n + b] += dB_dtheta[w, i, c, b] * u[w, c]
            for b in range(len(driven)):
                slope[i, 1 + n + p + others + b] = B[w, i, driven[b]] * u[w, driven[b]]
            for j in range(n):
                df_dx = da_dx[w, i, j]
                for c in range(m):
                    df_dx += dB_dx[w, i, c, j] * u[w, c]
                for b in range(1, here.shape[2]):
                    slope[i, b] += df_dx * here[w, j, b]
        for i in range(n):
            for b in range(here.shape[2]):
                end[w, i, b] += h[w] * weight * slope[i, b]
                following[w, i, b] = begin[w, i, b] + h[w] * ahead * slope[i, b]
    return following


def _compiled() -> Callable[..., Array]:
    """`_stage`, its machine code kept where a folder for it can be written: two seconds less for every command."""
    try:
        return numba.njit(cache=True)(_stage)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit()(_stage)


stage = _compiled()
