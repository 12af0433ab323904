"""Simulate windows with their exact sensitivities: the derivatives of the Runge-Kutta method's own states.

The sensitivity S = dx/d(start, theta) obeys dS/dt = (df/dx) S + (0, df/dtheta) with f = a(x, theta) + B(x, theta) u.
The same method with the same steps on both gives the derivative of the discrete states, not of the exact ones, up to
rounding (E. Hairer, S. Norsett, G. Wanner, Solving Ordinary Differential Equations I, section I.14).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

FINER = 2  # steps beside those that `modelgen build` found to be enough


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
    driven: inputs for whose factors the derivatives are wanted.

    A motion that does not stay finite is returned as it is, with infinite or NaN entries.
    """
    N, n, p = *starts.shape, len(theta)
    pushes = np.zeros((n, 0)) if pushes is None else pushes
    longest = windows.longest or safe_step(robot)
    others = p + pushes.shape[1] + len(driven)
    x, S = starts, np.concatenate([np.tile(np.eye(n), (N, 1, 1)), np.zeros((N, n, others))], axis=2)
    pushed = np.broadcast_to(pushes, (N, *pushes.shape))
    states, sensitivities = [x], [S]
    with np.errstate(over="ignore", invalid="ignore"):
        for steps, u in zip(windows.steps, windows.inputs, strict=True):
            parts = max(1, math.ceil(steps.max() / longest - 1e-9))
            h = steps / parts
            for _ in range(parts):
                x, S = _step(robot, x, S, u, theta, h, pushed, driven)
            states.append(x)
            sensitivities.append(S)
    derivatives = np.stack(sensitivities)
    parts = np.split(derivatives, np.cumsum([n, p, pushes.shape[1]]), axis=3)
    return Motion(np.stack(states), *parts)


def safe_step(robot: CompiledRobot) -> float:
    """s: a step that resolves every motion within the limits."""
    task = robot.metadata.task
    return 1.0 / (task.control_rate * task.integration_steps * FINER)


def _step(
    robot: CompiledRobot,
    x: Array,
    S: Array,
    u: Array,
    theta: Array,
    h: Array,
    pushed: Array,
    driven: Sequence[int],
) -> tuple[Array, Array]:
    """One step of h (N,) seconds on states (N, n) and sensitivities (N, n, n + p + l + g)."""
    n, hx, hS = x.shape[1], h[:, None], h[:, None, None]

    def slope(x: Array, S: Array) -> tuple[Array, Array]:
        a, B, da_dx, dB_dx, da_dtheta, dB_dtheta = robot.jacobians(np.ascontiguousarray(x), theta)
        for index in range(u.shape[1]):  # few: a loop takes a third of the time of an einsum
            each = u[:, index, None, None]
            da_dx, da_dtheta = da_dx + dB_dx[:, :, index] * each, da_dtheta + dB_dtheta[:, :, index] * each
        dS = da_dx @ S
        by_gain = (B * u[:, None])[..., list(driven)]
        dS[..., n:] += np.concatenate([da_dtheta, pushed, by_gain], axis=2)
        return a + (B @ u[..., None])[..., 0], dS

    k1, s1 = slope(x, S)
    k2, s2 = slope(x + hx / 2 * k1, S + hS / 2 * s1)
    k3, s3 = slope(x + hx / 2 * k2, S + hS / 2 * s2)
    k4, s4 = slope(x + hx * k3, S + hS * s3)
    return x + hx / 6 * (k1 + 2 * k2 + 2 * k3 + k4), S + hS / 6 * (s1 + 2 * s2 + 2 * s3 + s4)
