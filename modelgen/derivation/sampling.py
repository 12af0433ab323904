"""States and parameters drawn over the whole domain of a robot, for checks and proofs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modelgen.statement.robot import Robot

Array = NDArray[np.float64]

SAMPLES = 400


def samples(robot: Robot, count: int = SAMPLES, seed: int = 0) -> tuple[Array, Array]:
    """States (count, n) and parameters (count, p), uniform over the domain.

    Of the first three eighths of the rows, the first has states at their limits, the second both states and parameters,
    the third parameters. Raises ModelError for a coordinate without a rate_limit.
    """
    random = np.random.default_rng(seed)
    limits = np.array([joint.limit for joint in robot.joints] + [speed.limit for speed in robot.velocities])
    bounds = np.array([parameter.bounds for parameter in robot.parameters if not parameter.fixed]).reshape(-1, 2)
    x = random.uniform(-limits, limits, (count, len(limits)))
    theta = random.uniform(bounds[:, 0], bounds[:, 1], (count, len(bounds)))
    edge = count // 4
    x[:edge] = limits * random.choice((-1, 1), (edge, len(limits)))
    theta[edge // 2 : edge + edge // 2] = bounds[np.arange(len(bounds)), random.integers(0, 2, (edge, len(bounds)))]
    return x, theta
