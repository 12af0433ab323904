"""The sample points of a verification: states, inputs, costates and parameters over the whole domain of a robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.derivation.sampling import samples
from modelgen.statement.robot import Robot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Samples over the whole domain, exact in single precision."""

    x: Array  # (N, n)
    u: Array  # (N, m)
    costate: Array  # (N, n)
    theta: Array  # (N, p), or (p,) for all


def sample_points(robot: Robot, count: int) -> Points:
    """`count` points, a quarter of them at the limits; costates are scaled by the largest states."""
    random = np.random.default_rng(1)
    x, theta = samples(robot, count, seed=1)
    limits = np.array([each.limit for each in robot.inputs])
    scale = np.abs(x).max(axis=0)
    values = (
        x,
        random.uniform(-limits, limits, (count, len(limits))),
        random.uniform(-1, 1, x.shape) / scale,
        theta,
    )
    return Points(*(value.astype(np.float32).astype(np.float64) for value in values))
