"""reaction_wheel: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 9], [9, 10], [10, 11], [11, 12], [12, 13], [13, 14], [14, 15], [15, 16], [16, 17], [17, 2], [1, 18]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 19, 2))
    pendulum = x[..., 0]
    wheel = x[..., 1]
    length = theta[..., 2]
    t1 = length * np.sin(pendulum)
    t2 = length * np.cos(pendulum)
    t3 = length * 0.25
    t4 = t3 * 0.3826834323650898
    t5 = t1 + t4
    t6 = t3 * 0.9238795325112867
    t7 = t2 + t6
    t8 = 1.4142135623730951 * (length * 0.125)
    t9 = t1 + t8
    t10 = t2 + t8
    t11 = t1 + t6
    t12 = t2 + t4
    t13 = 0.25 * (length * 0.3826834323650898)
    t14 = t2 - t13
    t15 = 0.125 * (length * 1.4142135623730951)
    t16 = t2 - t15
    t17 = 0.25 * (length * 0.9238795325112867)
    t18 = t2 - t17
    t19 = t1 - t13
    t20 = t1 - t15
    t21 = t1 - t17
    t22 = pendulum + wheel
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = t1
    points[:, 1, 1] = t2
    points[:, 2, 0] = t1
    points[:, 2, 1] = t2 + t3
    points[:, 3, 0] = t5
    points[:, 3, 1] = t7
    points[:, 4, 0] = t9
    points[:, 4, 1] = t10
    points[:, 5, 0] = t11
    points[:, 5, 1] = t12
    points[:, 6, 0] = t1 + t3
    points[:, 6, 1] = t2
    points[:, 7, 0] = t11
    points[:, 7, 1] = t14
    points[:, 8, 0] = t9
    points[:, 8, 1] = t16
    points[:, 9, 0] = t5
    points[:, 9, 1] = t18
    points[:, 10, 0] = t1
    points[:, 10, 1] = t2 - t3
    points[:, 11, 0] = t19
    points[:, 11, 1] = t18
    points[:, 12, 0] = t20
    points[:, 12, 1] = t16
    points[:, 13, 0] = t21
    points[:, 13, 1] = t14
    points[:, 14, 0] = t1 - t3
    points[:, 14, 1] = t2
    points[:, 15, 0] = t21
    points[:, 15, 1] = t12
    points[:, 16, 0] = t20
    points[:, 16, 1] = t10
    points[:, 17, 0] = t19
    points[:, 17, 1] = t7
    points[:, 18, 0] = t1 + t3 * np.sin(t22)
    points[:, 18, 1] = t2 + t3 * np.cos(t22)
    return points
