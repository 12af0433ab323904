"""The weights of the quadratic cost that a task has near its target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from modelgen.loader import CompiledRobot

Array = NDArray[np.float64]


def weights(robot: CompiledRobot) -> tuple[Array, Array]:
    """Expand the task's cost near its target as x' Q x + u' R u: Q (n, n), R (m, m)."""
    target, scale = np.array(robot.metadata.task.target), np.asarray(robot.state_limits)
    steps = 1e-4 * scale
    ends = [np.asarray(robot.state_cost(target + sign * np.diag(steps))[1]) for sign in (1, -1)]
    curvature = (ends[0] - ends[1]) / (2 * steps[:, None]) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 4)
    values = np.where(values > 1e-9 * values.max(), values, 0.0)  # differences leave noise where there is no cost
    Q = (vectors * values) @ vectors.T / np.outer(scale, scale)
    at_rest = np.zeros((1, len(robot.input_names)))
    return Q, np.diag(np.asarray(robot.action_cost(at_rest)[2])[0] / 2)
