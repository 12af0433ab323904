"""cartpole: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 2], [6, 7]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 8, 2))
    cart = x[..., 0]
    pole = x[..., 1]
    pole_half_length = theta[..., 2]
    t1 = cart + 0.06
    t2 = cart - 0.06
    t3 = pole_half_length * 2.0
    points[:, 0, 0] = -0.6
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = 0.6
    points[:, 1, 1] = 0.0
    points[:, 2, 0] = t1
    points[:, 2, 1] = 0.03
    points[:, 3, 0] = t1
    points[:, 3, 1] = -0.03
    points[:, 4, 0] = t2
    points[:, 4, 1] = -0.03
    points[:, 5, 0] = t2
    points[:, 5, 1] = 0.03
    points[:, 6, 0] = cart
    points[:, 6, 1] = 0.0
    points[:, 7, 0] = cart + np.sin(pole) * t3
    points[:, 7, 1] = t3 * np.cos(pole)
    return points
