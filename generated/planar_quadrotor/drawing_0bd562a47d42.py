"""planar_quadrotor: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 2], [6, 7], [7, 8], [8, 9], [9, 6]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 10, 2))
    across = x[..., 0]
    height = x[..., 1]
    pitch = x[..., 2]
    arm = theta[..., 2]
    t1 = arm * np.cos(pitch)
    t2 = arm * np.sin(pitch)
    t3 = t1 * 0.75
    t4 = across + t2 * 0.225
    t5 = t2 * 0.75
    t6 = t1 * 0.225
    t7 = height + t5
    t8 = t2 * 0.175
    t9 = across + t8
    t10 = t1 * 0.175
    t11 = t1 * 1.25
    t12 = t2 * 1.25
    t13 = height + t10
    t14 = height + t6
    points[:, 0, 0] = across - t1
    points[:, 0, 1] = height + t2
    points[:, 1, 0] = across + t1
    points[:, 1, 1] = height - t2
    points[:, 2, 0] = t4 - t3
    points[:, 2, 1] = t6 + t7
    points[:, 3, 0] = t9 - t3
    points[:, 3, 1] = t7 + t10
    points[:, 4, 0] = t9 - t11
    points[:, 4, 1] = t12 + t13
    points[:, 5, 0] = t4 - t11
    points[:, 5, 1] = t12 + t14
    points[:, 6, 0] = t4 + t11
    points[:, 6, 1] = t14 - t12
    points[:, 7, 0] = t9 + t11
    points[:, 7, 1] = t13 - t12
    points[:, 8, 0] = t8 + (across + t3)
    points[:, 8, 1] = t13 - t5
    points[:, 9, 0] = t3 + t4
    points[:, 9, 1] = t14 - t5
    return points
