"""The sample points of a verification: states, inputs, costates and parameters over the whole domain of a robot."""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import NDArray
from sympy import lambdify

from modelgen.derivation.numeric import samples
from modelgen.statement.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Samples over the whole domain, exact in single precision."""

    x: Array  # (N, n)
    u: Array  # (N, m)
    costate: Array  # (N, n)
    theta: Array  # (N, p), or (p,) for all
    w: Array  # (N, m), of optimal inputs within the limits and of saturated ones


def slopes_at_half(robot: Robot) -> Array:
    """dg/du (m,) of the action cost at half the limit: the size of w that matters."""
    assert robot.declared_task
    inputs = zip(robot.declared_task.input_costs, robot.inputs, strict=True)
    return np.array([float(mpmath.diff(lambdify([c.u], c.cost, "mpmath"), each.limit / 2)) for c, each in inputs])


def sample_points(robot: Robot, count: int, seed: int = 1) -> Points:
    """`count` points, a quarter of them at the limits; costates are scaled by the largest states."""
    random = np.random.default_rng(seed)
    x, theta = samples(robot, count, seed=seed)
    limits = np.array([each.limit for each in robot.inputs])
    scale = np.abs(x).max(axis=0)
    values = (
        x,
        random.uniform(-limits, limits, (count, len(limits))),
        random.uniform(-1, 1, x.shape) / scale,
        theta,
        random.normal(size=(count, len(limits))) * 2 * slopes_at_half(robot),
    )
    return Points(*(value.astype(np.float32).astype(np.float64) for value in values))
