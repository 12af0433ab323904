"""planar_arm3: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [1, 2], [2, 3]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 4, 2))
    shoulder = x[..., 0]
    elbow = x[..., 1]
    wrist = x[..., 2]
    upper_length = theta[..., 3]
    fore_length = theta[..., 4]
    hand_length = theta[..., 5]
    t1 = upper_length * np.sin(shoulder)
    t2 = upper_length * np.cos(shoulder)
    t3 = shoulder + elbow
    t4 = t1 + fore_length * np.sin(t3)
    t5 = t2 + fore_length * np.cos(t3)
    t6 = wrist + t3
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = t1
    points[:, 1, 1] = t2
    points[:, 2, 0] = t4
    points[:, 2, 1] = t5
    points[:, 3, 0] = t4 + hand_length * np.sin(t6)
    points[:, 3, 1] = t5 + hand_length * np.cos(t6)
    return points
