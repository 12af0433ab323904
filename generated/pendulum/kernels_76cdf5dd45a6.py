"""pendulum: functions of one sample, made by modelgen; not to be edited.

x (n,), u (m,), costate (n,), theta (p,) are read; the other arguments are filled, row by row.
numba.njit compiles them as they are; modelgen.load makes kernels for batches of the same functions.
"""

import math


def sign(x):
    """-1, 0 or 1; NaN for NaN."""
    return x if (x != x) | (x == 0) else abs(x) / x


def minimum(a, b):
    """The smaller of two; NaN when one of them is NaN."""
    return a if (a < b) | (a != a) else b


def maximum(a, b):
    """The larger of two; NaN when one of them is NaN."""
    return a if (a > b) | (a != a) else b


def affine_dynamics(x, theta, a, B):
    angle = x[0]
    angle_rate = x[1]
    mass = theta[0]
    length = theta[1]
    a[0] = angle_rate
    B[0] = 0.0
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333))
    a[1] = math.sin(angle) * (4.905 * (mass * length)) * t1
    B[1] = t1


def dynamics(x, u, theta, xdot):
    angle = x[0]
    angle_rate = x[1]
    torque = u[0]
    mass = theta[0]
    length = theta[1]
    xdot[0] = angle_rate
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333)) * (torque + math.sin(angle) * (4.905 * (mass * length)))
    xdot[1] = t1


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    angle = x[0]
    angle_rate = x[1]
    mass = theta[0]
    length = theta[1]
    a[0] = angle_rate
    B[0] = 0.0
    da_dx[0] = 0.0
    da_dx[1] = 1.0
    da_dx[3] = 0.0
    dB_dx[0] = 0.0
    dB_dx[1] = 0.0
    dB_dx[2] = 0.0
    dB_dx[3] = 0.0
    da_dtheta[0] = 0.0
    da_dtheta[1] = 0.0
    dB_dtheta[0] = 0.0
    dB_dtheta[1] = 0.0
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = math.sin(angle), math.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    B[1] = t5
    da_dx[2] = t5 * (t4 * t3c)
    t6 = t3s * t4 * t5
    a[1] = t6
    t7 = 0.3333333333333333 * t1
    da_dtheta[2] = t5 * (t3s * (length * 4.905) - t6 * t7)
    dB_dtheta[2] = -(t5 * (t5 * t7))
    t8 = t2 * (length + length)
    da_dtheta[3] = t5 * (t3s * (mass * 4.905) - t6 * t8)
    dB_dtheta[3] = -(t5 * (t5 * t8))


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    angle = x[0]
    torque = u[0]
    costate_angle = costate[0]
    costate_angle_rate = costate[1]
    mass = theta[0]
    length = theta[1]
    dH_dx[1] = costate_angle
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = math.sin(angle), math.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    t6 = costate_angle_rate * t5
    dH_dx[0] = t3c * (t4 * t6)
    dH_du[0] = t6
    t7 = t5 * (torque + t3s * t4) * t6
    t8 = 4.905 * (t3s * t6)
    dH_dtheta[0] = length * t8 - 0.3333333333333333 * (t1 * t7)
    t9 = length * (t2 * t7)
    dH_dtheta[1] = mass * t8 - t9 - t9


def state_cost(x, theta, q, dq_dx):
    angle = x[0]
    angle_rate = x[1]
    t1 = angle * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    q[0] = 0.1 * (angle_rate * angle_rate) + 9.869604401089358 * (t2s * t2s)
    t3 = 9.869604401089358 * t2s
    dq_dx[0] = 0.5 * ((t3 + t3) * t2c)
    t4 = angle_rate * 0.1
    dq_dx[1] = t4 + t4


def action_cost(u, g, dg_du, d2g_du2):
    torque = u[0]
    t1 = torque * 0.62806730379644
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 2.5 - abs(torque)
    t4 = 0.0006280673037964401 + 0.62806730379644 * maximum(-0.0005, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 3.1675535036185845 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 3.1675535036185845 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * sign(-(t3 + 0.0005))
    t17 = sign(torque)
    t18 = t2s * t12
    t19 = t18 + t18
    dg_du[0] = 0.62806730379644 * (t15 * t5c) * t16 * t17 + 0.62806730379644 * (t19 * t2c)
    t20 = 0.62806730379644 * t2c
    t21 = t2s * t20
    t22 = 0.62806730379644 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 3.1675535036185845 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (0.62806730379644 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 0.62806730379644 * (t2c * (t30 + t30) - t19 * (0.62806730379644 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_torque = w[0]
    u_optimal[0] = maximum(-2.5, minimum(2.5, 1.592186050691321 * math.atan(w_torque * 0.25132741228718347)))


def optimal_input_cost(w, g_optimal):
    w_torque = w[0]
    g_optimal[0] = 3.1675535036185845 * math.log1p(0.0631654681669719 * (w_torque * w_torque))
