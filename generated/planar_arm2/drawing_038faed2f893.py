"""planar_arm2: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [1, 2], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 9], [9, 10], [10, 11], [11, 12], [12, 13], [13, 14], [14, 15], [15, 16], [16, 17], [17, 18], [18, 3]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 19, 2))
    shoulder = x[..., 0]
    elbow = x[..., 1]
    lower_centre = theta[..., 5]
    t1 = np.cos(shoulder)
    t2 = np.sin(shoulder)
    t3 = shoulder + elbow
    t4 = lower_centre * 2.0
    t5 = t1 + 0.03061467458920718
    t6 = t2 + 0.07391036260090295
    t7 = t1 + 0.0565685424949238
    t8 = t2 + 0.0565685424949238
    t9 = t1 + 0.07391036260090295
    t10 = t2 + 0.03061467458920718
    t11 = t2 - 0.03061467458920718
    t12 = t2 - 0.0565685424949238
    t13 = t2 - 0.07391036260090295
    t14 = t1 - 0.03061467458920718
    t15 = t1 - 0.0565685424949238
    t16 = t1 - 0.07391036260090295
    points[:, 0, 0] = 0.0
    points[:, 0, 1] = 0.0
    points[:, 1, 0] = t1
    points[:, 1, 1] = t2
    points[:, 2, 0] = t1 + np.cos(t3) * t4
    points[:, 2, 1] = t2 + t4 * np.sin(t3)
    points[:, 3, 0] = t1
    points[:, 3, 1] = t2 + 0.08
    points[:, 4, 0] = t5
    points[:, 4, 1] = t6
    points[:, 5, 0] = t7
    points[:, 5, 1] = t8
    points[:, 6, 0] = t9
    points[:, 6, 1] = t10
    points[:, 7, 0] = t1 + 0.08
    points[:, 7, 1] = t2
    points[:, 8, 0] = t9
    points[:, 8, 1] = t11
    points[:, 9, 0] = t7
    points[:, 9, 1] = t12
    points[:, 10, 0] = t5
    points[:, 10, 1] = t13
    points[:, 11, 0] = t1
    points[:, 11, 1] = t2 - 0.08
    points[:, 12, 0] = t14
    points[:, 12, 1] = t13
    points[:, 13, 0] = t15
    points[:, 13, 1] = t12
    points[:, 14, 0] = t16
    points[:, 14, 1] = t11
    points[:, 15, 0] = t1 - 0.08
    points[:, 15, 1] = t2
    points[:, 16, 0] = t16
    points[:, 16, 1] = t10
    points[:, 17, 0] = t15
    points[:, 17, 1] = t8
    points[:, 18, 0] = t14
    points[:, 18, 1] = t6
    return points
