"""Simulate windows with their exact sensitivities: the derivatives of the Runge-Kutta method's own states.

The sensitivity S = dx/d(start, theta) obeys dS/dt = (df/dx) S + (0, df/dtheta) with f = a(x, theta) + B(x, theta) u.
The same method with the same steps on both gives the derivative of the discrete states, not of the exact ones, up to
rounding (E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, section I.14).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot

STAGES = ((1 / 6, 1 / 2), (1 / 3, 1 / 2), (1 / 3, 1.0), (1 / 6, 0.0))  # weight of a slope; share of h to the next one
FINER = 2  # times as many steps as `modelgen build` finds to be enough


class Motion(NamedTuple):
    """States of N windows at K samples and their derivatives."""

    x: Array  # (K, N, n)
    dx_dstart: Array  # (K, N, n, n)
    dx_dtheta: Array  # (K, N, n, p)
    dx_dpush: Array  # (K, N, n, l), by constants that are added to xdot along `pushes`
    dx_dgain: Array  # (K, N, n, g), by factors of the inputs `driven`, at 1


def simulate(
    robot: CompiledRobot,
    windows: Windows,
    starts: Array,
    theta: Array,
    pushes: Array | None = None,
    driven: Sequence[int] = (),
) -> Motion:
    """Classical Runge-Kutta from `starts` (N, n) at theta (p,). pushes: (n, l), directions of constant disturbances.
    driven: inputs by whose factors the motion is differentiated.

    A motion that does not stay finite is returned as it is, with infinite or NaN entries.
    """
    N, n, p = *starts.shape, len(theta)
    pushes = np.zeros((n, 0)) if pushes is None else pushes
    longest, inputs = windows.longest or safe_step(robot), np.array(driven, np.intp)
    others = p + pushes.shape[1] + len(inputs)
    z = np.concatenate([starts[..., None], np.tile(np.eye(n), (N, 1, 1)), np.zeros((N, n, others))], axis=2)
    samples = [z]
    with np.errstate(over="ignore", invalid="ignore"):
        for steps, u in zip(windows.steps, windows.inputs, strict=True):
            parts = max(1, math.ceil(steps.max() / longest - 1e-9))
            for _ in range(parts):
                z = _step(robot, z, np.ascontiguousarray(u), theta, steps / parts, pushes, inputs)
            samples.append(z)
    motion = np.stack(samples)
    return Motion(motion[..., 0], *np.split(motion[..., 1:], np.cumsum([n, p, pushes.shape[1]]), axis=3))


def safe_step(robot: CompiledRobot) -> float:
    """s: a step that resolves every motion within the limits."""
    task = robot.metadata.task
    return 1.0 / (task.control_rate * task.integration_steps * FINER)


def _step(
    robot: CompiledRobot, begin: Array, u: Array, theta: Array, h: Array, pushes: Array, driven: NDArray[np.intp]
) -> Array:
    """One step of h (N,) seconds on states and sensitivities, in one array as in `stage`."""
    here, end = begin, begin.copy()
    for weight, ahead in STAGES:
        kernel = robot.jacobians(np.ascontiguousarray(here[..., 0]), theta)
        here = stage(*kernel, u, pushes, driven, here, begin, h, weight, ahead, end)
    return end


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

    The first column of such an array is the state. The others are its derivatives by the start, theta, pushes and
    gains. The slope is taken at `here`. a to dB_dtheta: (N, n), (N, n, m), (N, n, n), (N, n, m, n), (N, n, p),
    (N, n, m, p), as the robot's `jacobians` there. u: (N, m); pushes: (n, l); driven: (g,) inputs; h: (N,) s.
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
    """`_stage` as machine code, cached where a folder can be written: this saves two seconds of every command."""
    try:
        return numba.njit(cache=True)(_stage)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit()(_stage)


stage = _compiled()
