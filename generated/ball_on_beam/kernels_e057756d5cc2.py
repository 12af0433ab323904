"""ball_on_beam: functions of one sample, made by modelgen; not to be edited.

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
    ball = x[0]
    beam = x[1]
    ball_rate = x[2]
    beam_rate = x[3]
    ball_mass = theta[0]
    ball_radius = theta[1]
    ball_inertia = theta[2]
    beam_inertia = theta[3]
    a[0] = ball_rate
    a[1] = beam_rate
    B[0] = 0.0
    B[1] = 0.0
    B[2] = 0.0
    t1 = ball_mass * 9.81
    t2 = ball_mass * ball
    t3s, t3c = math.sin(beam), math.cos(beam)
    t4 = 1.0 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia))
    a[3] = -((t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * 2.0) * t4)
    B[3] = t4
    t5 = (beam_rate * beam_rate * t2 - t1 * t3s) * (1.0 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
    a[2] = t5


def dynamics(x, u, theta, xdot):
    ball = x[0]
    beam = x[1]
    ball_rate = x[2]
    beam_rate = x[3]
    torque = u[0]
    ball_mass = theta[0]
    ball_radius = theta[1]
    ball_inertia = theta[2]
    beam_inertia = theta[3]
    xdot[0] = ball_rate
    xdot[1] = beam_rate
    t1 = ball_mass * 9.81
    t2 = ball_mass * ball
    t3s, t3c = math.sin(beam), math.cos(beam)
    t4 = (beam_rate * beam_rate * t2 - t1 * t3s) * (1.0 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
    xdot[2] = t4
    t5 = 1.0 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia)) * (torque - (t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * 2.0))
    xdot[3] = t5


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    ball = x[0]
    beam = x[1]
    ball_rate = x[2]
    beam_rate = x[3]
    ball_mass = theta[0]
    ball_radius = theta[1]
    ball_inertia = theta[2]
    beam_inertia = theta[3]
    a[0] = ball_rate
    a[1] = beam_rate
    B[0] = 0.0
    B[1] = 0.0
    B[2] = 0.0
    da_dx[0] = 0.0
    da_dx[1] = 0.0
    da_dx[2] = 1.0
    da_dx[3] = 0.0
    da_dx[4] = 0.0
    da_dx[5] = 0.0
    da_dx[6] = 0.0
    da_dx[7] = 1.0
    da_dx[10] = 0.0
    dB_dx[0] = 0.0
    dB_dx[1] = 0.0
    dB_dx[2] = 0.0
    dB_dx[3] = 0.0
    dB_dx[4] = 0.0
    dB_dx[5] = 0.0
    dB_dx[6] = 0.0
    dB_dx[7] = 0.0
    dB_dx[8] = 0.0
    dB_dx[9] = 0.0
    dB_dx[10] = 0.0
    dB_dx[11] = 0.0
    dB_dx[13] = 0.0
    dB_dx[14] = 0.0
    dB_dx[15] = 0.0
    da_dtheta[0] = 0.0
    da_dtheta[1] = 0.0
    da_dtheta[2] = 0.0
    da_dtheta[3] = 0.0
    da_dtheta[4] = 0.0
    da_dtheta[5] = 0.0
    da_dtheta[6] = 0.0
    da_dtheta[7] = 0.0
    da_dtheta[11] = 0.0
    da_dtheta[13] = 0.0
    dB_dtheta[0] = 0.0
    dB_dtheta[1] = 0.0
    dB_dtheta[2] = 0.0
    dB_dtheta[3] = 0.0
    dB_dtheta[4] = 0.0
    dB_dtheta[5] = 0.0
    dB_dtheta[6] = 0.0
    dB_dtheta[7] = 0.0
    dB_dtheta[8] = 0.0
    dB_dtheta[9] = 0.0
    dB_dtheta[10] = 0.0
    dB_dtheta[11] = 0.0
    dB_dtheta[13] = 0.0
    t1 = ball * ball
    t2 = ball_mass * 9.81
    t3 = beam_rate * beam_rate
    t4 = ball_mass * ball
    t5 = ball_radius * ball_radius
    t6 = ball_inertia / t5
    t7s, t7c = math.sin(beam), math.cos(beam)
    t8 = ball * t2
    t9 = ball_rate * beam_rate
    t10 = 1.0 / (ball_mass + t6)
    da_dx[8] = t10 * (ball_mass * t3)
    da_dx[11] = t10 * (t4 * (beam_rate + beam_rate))
    t11 = 1.0 / (ball_mass * t1 + (ball_inertia + beam_inertia))
    B[3] = t11
    da_dx[13] = t11 * (t7s * t8)
    da_dx[14] = -(t11 * (2.0 * (beam_rate * t4)))
    da_dx[15] = -(t11 * (2.0 * (ball_rate * t4)))
    dB_dtheta[12] = -(t11 * (t1 * t11))
    t12 = (t3 * t4 - t2 * t7s) * t10
    a[2] = t12
    da_dtheta[8] = t10 * (ball * t3 - 9.81 * t7s - t12)
    t13 = -((t7c * t8 + t4 * t9 * 2.0) * t11)
    a[3] = t13
    t14 = ball_mass * (ball + ball)
    dB_dx[12] = -(t11 * (t11 * t14))
    t15 = t2 * t7c
    da_dx[9] = -(t10 * t15)
    da_dx[12] = -(t11 * (t15 + 2.0 * (ball_mass * t9) + t13 * t14))
    t16 = -(t11 * (t7c * (ball * 9.81) + 2.0 * (ball * t9) + t1 * t13))
    da_dtheta[12] = t16
    t17 = 1.0 / t5
    da_dtheta[9] = t10 * (t12 * ((ball_radius + ball_radius) * (t6 * t17)))
    da_dtheta[10] = -(t10 * (t12 * t17))
    t18 = -(t11 * t13)
    da_dtheta[14] = t18
    da_dtheta[15] = t18
    t19 = -(t11 * t11)
    dB_dtheta[14] = t19
    dB_dtheta[15] = t19


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    ball = x[0]
    beam = x[1]
    ball_rate = x[2]
    beam_rate = x[3]
    torque = u[0]
    costate_ball = costate[0]
    costate_beam = costate[1]
    costate_ball_rate = costate[2]
    costate_beam_rate = costate[3]
    ball_mass = theta[0]
    ball_radius = theta[1]
    ball_inertia = theta[2]
    beam_inertia = theta[3]
    t1 = ball * ball
    t2 = ball_mass * 9.81
    t3 = beam_rate * beam_rate
    t4 = ball_mass * ball
    t5 = ball_radius * ball_radius
    t6 = ball_inertia / t5
    t7s, t7c = math.sin(beam), math.cos(beam)
    t8 = ball * t2
    t9 = ball_rate * beam_rate
    t10 = 1.0 / (ball_mass + t6)
    t11 = 1.0 / (ball_mass * t1 + (ball_inertia + beam_inertia))
    t12 = 1.0 / t5
    t13 = costate_ball_rate * t10
    t14 = costate_beam_rate * t11
    dH_dx[1] = t7s * (t8 * t14) - t7c * (t2 * t13)
    dH_du[0] = t14
    t15 = (t3 * t4 - t2 * t7s) * t10 * t13
    t16 = t11 * (torque - (t7c * t8 + t4 * t9 * 2.0)) * t14
    dH_dtheta[2] = -(t16 + t12 * t15)
    dH_dtheta[3] = -t16
    t17 = 2.0 * t14
    t18 = t4 * t17
    dH_dx[2] = costate_ball - beam_rate * t18
    t19 = t7c * t14
    t20 = t3 * t13 - t9 * t17
    t21 = ball_radius * (t6 * t12 * t15)
    dH_dtheta[1] = t21 + t21
    t22 = beam_rate * (t4 * t13)
    dH_dx[3] = t22 + (costate_beam - ball_rate * t18 + t22)
    t23 = ball * t20 - (t15 + t1 * t16) - 9.81 * (ball * t19 + t7s * t13)
    dH_dtheta[0] = t23
    t24 = ball * (ball_mass * t16)
    dH_dx[0] = ball_mass * t20 - t2 * t19 - t24 - t24


def state_cost(x, theta, q, dq_dx):
    ball = x[0]
    beam = x[1]
    ball_rate = x[2]
    beam_rate = x[3]
    dq_dx[1] = beam + beam
    t1 = 2.0 * (ball_rate * ball_rate) + (beam_rate * beam_rate * 0.1 + (beam * beam + ball * ball * 20.0))
    q[0] = t1
    t2 = ball_rate * 2.0
    dq_dx[2] = t2 + t2
    t3 = beam_rate * 0.1
    dq_dx[3] = t3 + t3
    t4 = ball * 20.0
    dq_dx[0] = t4 + t4


def action_cost(u, g, dg_du, d2g_du2):
    torque = u[0]
    t1 = torque * 1.5692270996952016
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 1.0 - abs(torque)
    t4 = 0.0015692270996952016 + 1.5692270996952016 * maximum(-0.0005, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 0.20284500965196023 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 0.20284500965196023 * t8
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
    dg_du[0] = 1.5692270996952016 * (t15 * t5c) * t16 * t17 + 1.5692270996952016 * (t19 * t2c)
    t20 = 1.5692270996952016 * t2c
    t21 = t2s * t20
    t22 = 1.5692270996952016 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 0.20284500965196023 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (1.5692270996952016 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 1.5692270996952016 * (t2c * (t30 + t30) - t19 * (1.5692270996952016 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_torque = w[0]
    u_optimal[0] = maximum(-1.0, minimum(1.0, 0.6372563921399489 * math.atan(w_torque * 1.5707963267948966)))


def optimal_input_cost(w, g_optimal):
    w_torque = w[0]
    g_optimal[0] = 0.20284500965196023 * math.log1p(2.4674011002723395 * (w_torque * w_torque))
