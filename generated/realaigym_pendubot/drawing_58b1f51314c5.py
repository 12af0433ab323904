"""realaigym_pendubot: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [1, 2]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 3, 2))
    shoulder = x[..., 0]
    elbow = x[..., 1]
    upper_length = theta[..., 1]
    t1 = upper_length * np.sin(shoulder)
    t2 = upper_length * np.cos(shoulder)
    t3 = shoulder + elbow
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = t1
    points[:, 1, 1] = t2
    points[:, 2, 0] = t1 + 0.3 * np.sin(t3)
    points[:, 2, 1] = t2 + 0.3 * np.cos(t3)
    return points
