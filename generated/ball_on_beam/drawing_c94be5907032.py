"""ball_on_beam: the line segments that draw it, made by modelgen; not to be edited."""

import numpy as np

SEGMENTS = np.array([[0, 1], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 9], [9, 10], [10, 11], [11, 12], [12, 13], [13, 14], [14, 15], [15, 16], [16, 17], [17, 2], [18, 19]], int).reshape(-1, 2)


def points(x, theta):
    """x (N, n), theta (p,) or (N, p) -> (N, P, 2): across and height of every point (m); SEGMENTS joins them."""
    points = np.empty((len(x), 20, 2))
    ball = x[..., 0]
    beam = x[..., 1]
    ball_radius = theta[..., 1]
    t1 = np.cos(beam)
    t2 = t1 * 0.5
    t3 = np.sin(beam)
    t4 = 0.5 * t3
    t5 = ball * t1
    t6 = ball_radius * t3 * 3.0
    t7 = t5 - t6
    t8 = ball_radius * 3.0
    t9 = ball * t3
    t10 = 3.0 * (ball_radius * t1)
    t11 = t8 * 0.3826834323650898
    t12 = t5 + t11 - t6
    t13 = t8 * 0.9238795325112867
    t14 = t9 + t10
    t15 = t13 + t14
    t16 = 1.4142135623730951 * (ball_radius * 1.5)
    t17 = t5 + t16 - t6
    t18 = t14 + t16
    t19 = t5 + t13 - t6
    t20 = t11 + t14
    t21 = t14 - t11
    t22 = 1.5 * (ball_radius * 1.4142135623730951)
    t23 = t14 - t22
    t24 = t14 - t13
    t25 = t7 - t11
    t26 = t7 - t22
    t27 = t7 - t13
    t28 = ball * 0.3333333333333333 / ball_radius - beam
    points[:, 0, 0] = -t2
    points[:, 0, 1] = -t4
    points[:, 1, 0] = t2
    points[:, 1, 1] = t4
    points[:, 2, 0] = t7
    points[:, 2, 1] = t10 + (t8 + t9)
    points[:, 3, 0] = t12
    points[:, 3, 1] = t15
    points[:, 4, 0] = t17
    points[:, 4, 1] = t18
    points[:, 5, 0] = t19
    points[:, 5, 1] = t20
    points[:, 6, 0] = t5 + t8 - t6
    points[:, 6, 1] = t14
    points[:, 7, 0] = t19
    points[:, 7, 1] = t21
    points[:, 8, 0] = t17
    points[:, 8, 1] = t23
    points[:, 9, 0] = t12
    points[:, 9, 1] = t24
    points[:, 10, 0] = t7
    points[:, 10, 1] = t14 - t8
    points[:, 11, 0] = t25
    points[:, 11, 1] = t24
    points[:, 12, 0] = t26
    points[:, 12, 1] = t23
    points[:, 13, 0] = t27
    points[:, 13, 1] = t21
    points[:, 14, 0] = t7 - t8
    points[:, 14, 1] = t14
    points[:, 15, 0] = t27
    points[:, 15, 1] = t20
    points[:, 16, 0] = t26
    points[:, 16, 1] = t18
    points[:, 17, 0] = t25
    points[:, 17, 1] = t15
    points[:, 18, 0] = t7
    points[:, 18, 1] = t14
    points[:, 19, 0] = t5 + t8 * np.sin(t28) - t6
    points[:, 19, 1] = t14 + t8 * np.cos(t28)
    return points
