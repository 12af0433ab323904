"""cart_double_pendulum: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 2], [6, 7], [7, 8]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 9, 2))
    cart = x[..., 0]
    lower = x[..., 1]
    upper = x[..., 2]
    lower_length = theta[..., 2]
    upper_length = theta[..., 4]
    t1 = cart + 0.1
    t2 = cart - 0.1
    t3 = cart + lower_length * np.sin(lower)
    t4 = lower_length * np.cos(lower)
    t5 = lower + upper
    points[:, 0, 0] = -1.2
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = 1.2
    points[:, 1, 1] = 0.0
    points[:, 2, 0] = t1
    points[:, 2, 1] = 0.05
    points[:, 3, 0] = t1
    points[:, 3, 1] = -0.05
    points[:, 4, 0] = t2
    points[:, 4, 1] = -0.05
    points[:, 5, 0] = t2
    points[:, 5, 1] = 0.05
    points[:, 6, 0] = cart
    points[:, 6, 1] = 0.0
    points[:, 7, 0] = t3
    points[:, 7, 1] = t4
    points[:, 8, 0] = t3 + upper_length * np.sin(t5)
    points[:, 8, 1] = t4 + upper_length * np.cos(t5)
    return points
