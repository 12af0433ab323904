"""furuta: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [1, 2], [2, 3]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 4, 2))
    arm = x[..., 0]
    pendulum = x[..., 1]
    arm_length = theta[..., 1]
    pendulum_length = theta[..., 3]
    t1 = np.sin(arm)
    t2 = t1 * (arm_length * 0.35)
    t3 = np.cos(arm)
    t4 = t2 + arm_length * t3
    t5 = np.sin(pendulum)
    t6 = 0.35 * (t5 * (pendulum_length * t3))
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = -arm_length
    points[:, 1, 0] = 0.0
    points[:, 1, 1] = 0.0
    points[:, 2, 0] = t4
    points[:, 2, 1] = t2
    points[:, 3, 0] = t4 + t5 * (pendulum_length * t1) - t6
    points[:, 3, 1] = t2 + pendulum_length * np.cos(pendulum) - t6
    return points
