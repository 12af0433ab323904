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

from modelgen.identification.stage import stage
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]

STAGES = ((1 / 6, 1 / 2), (1 / 3, 1 / 2), (1 / 3, 1.0), (1 / 6, 0.0))  # weight of a slope; share of h to the next one
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
    longest, inputs = windows.longest or safe_step(robot), np.array(driven, np.intp)
    others = p + pushes.shape[1] + len(inputs)
    z = np.concatenate([starts[..., None], np.tile(np.eye(n), (N, 1, 1)), np.zeros((N, n, others))], axis=2)
    found = [z]
    with np.errstate(over="ignore", invalid="ignore"):
        for steps, u in zip(windows.steps, windows.inputs, strict=True):
            parts = max(1, math.ceil(steps.max() / longest - 1e-9))
            for _ in range(parts):
                z = _step(robot, z, np.ascontiguousarray(u), theta, steps / parts, pushes, inputs)
            found.append(z)
    motion = np.stack(found)
    return Motion(motion[..., 0], *np.split(motion[..., 1:], np.cumsum([n, p, pushes.shape[1]]), axis=3))


def safe_step(robot: CompiledRobot) -> float:
    """s: a step that resolves every motion within the limits."""
    task = robot.metadata.task
    return 1.0 / (task.control_rate * task.integration_steps * FINER)


def _step(
    robot: CompiledRobot, begin: Array, u: Array, theta: Array, h: Array, pushes: Array, driven: NDArray[np.intp]
) -> Array:
    """One step of h (N,) seconds on states and sensitivities in one array, as `stage` has them."""
    here, end = begin, begin.copy()
    for weight, ahead in STAGES:
        kernel = robot.jacobians(np.ascontiguousarray(here[..., 0]), theta)
        here = stage(*kernel, u, pushes, driven, here, begin, h, weight, ahead, end)
    return end
