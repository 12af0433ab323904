"""Exact solution of the slider of `tests/solver/conftest.py`, a linear-quadratic task."""

from __future__ import annotations

import numpy as np
from scipy.linalg import expm


def riccati(start: np.ndarray, mass: float, damping: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Return, inputs (750, 1) and cost matrix P (2, 2) of the optimum over 750 periods without final cost.

    Dynamics and cost of a period with a held input are exact, by the matrix exponential (Van Loan 1978).
    """
    period, flow = 0.004, np.zeros((3, 3))
    flow[:2] = [[0.0, 1.0, 0.0], [0.0, -damping / mass, 1.0 / mass]]
    block = np.block([[-flow.T, np.diag([2.0, 0.3, 0.0])], [np.zeros((3, 3)), flow]])
    whole = expm(block * period)
    cost = whole[3:, 3:].T @ whole[:3, 3:]
    a, b = whole[3:5, 3:5], whole[3:5, 5:]
    cost[2, 2] += period * 0.3
    p, gains = np.zeros((2, 2)), []
    for _ in range(750):
        step = cost + np.hstack([a, b]).T @ p @ np.hstack([a, b])
        gains.append(step[2:, :2] / step[2, 2])
        p = step[:2, :2] - step[:2, 2:] @ gains[-1]
    x, inputs = start, []
    for gain in reversed(gains):
        inputs.append(-gain @ x)
        x = a @ x + b @ inputs[-1]
    return float(-start @ p @ start), np.array(inputs), p
