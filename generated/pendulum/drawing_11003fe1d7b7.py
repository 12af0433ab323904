"""pendulum: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 2, 2))
    angle = x[..., 0]
    length = theta[..., 1]
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = length * np.sin(angle)
    points[:, 1, 1] = length * np.cos(angle)
    return points
