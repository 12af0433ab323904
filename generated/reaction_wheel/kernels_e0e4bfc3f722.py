"""reaction_wheel: functions of one sample, made by modelgen; not to be edited.

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
    pendulum = x[0]
    pendulum_rate = x[2]
    wheel_rate = x[3]
    pendulum_mass = theta[0]
    wheel_mass = theta[1]
    length = theta[2]
    centre = theta[3]
    pendulum_inertia = theta[4]
    wheel_inertia = theta[5]
    wheel_damping = theta[6]
    a[0] = pendulum_rate
    a[1] = wheel_rate
    B[0] = 0.0
    B[1] = 0.0
    t1 = math.sin(pendulum) * (9.81 * (pendulum_mass * centre + wheel_mass * length))
    t2 = 1.0 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
    t3 = wheel_inertia * t2
    t4 = 1.0 / (wheel_inertia - wheel_inertia * t3)
    B[2] = -(t3 * t4)
    B[3] = t4
    t5 = t4 * (wheel_damping * wheel_rate + t1 * t3)
    a[2] = t1 * t2 + t3 * t5
    a[3] = -t5


def dynamics(x, u, theta, xdot):
    pendulum = x[0]
    pendulum_rate = x[2]
    wheel_rate = x[3]
    torque = u[0]
    pendulum_mass = theta[0]
    wheel_mass = theta[1]
    length = theta[2]
    centre = theta[3]
    pendulum_inertia = theta[4]
    wheel_inertia = theta[5]
    wheel_damping = theta[6]
    xdot[0] = pendulum_rate
    xdot[1] = wheel_rate
    t1 = math.sin(pendulum) * (9.81 * (pendulum_mass * centre + wheel_mass * length))
    t2 = 1.0 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
    t3 = wheel_inertia * t2
    t4 = 1.0 / (wheel_inertia - wheel_inertia * t3) * (torque - wheel_damping * wheel_rate - t1 * t3)
    xdot[2] = t1 * t2 - t3 * t4
    xdot[3] = t4


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    pendulum = x[0]
    pendulum_rate = x[2]
    wheel_rate = x[3]
    pendulum_mass = theta[0]
    wheel_mass = theta[1]
    length = theta[2]
    centre = theta[3]
    pendulum_inertia = theta[4]
    wheel_inertia = theta[5]
    wheel_damping = theta[6]
    a[0] = pendulum_rate
    a[1] = wheel_rate
    B[0] = 0.0
    B[1] = 0.0
    da_dx[0] = 0.0
    da_dx[1] = 0.0
    da_dx[2] = 1.0
    da_dx[3] = 0.0
    da_dx[4] = 0.0
    da_dx[5] = 0.0
    da_dx[6] = 0.0
    da_dx[7] = 1.0
    da_dx[9] = 0.0
    da_dx[10] = 0.0
    da_dx[13] = 0.0
    da_dx[14] = 0.0
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
    dB_dx[12] = 0.0
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
    da_dtheta[8] = 0.0
    da_dtheta[9] = 0.0
    da_dtheta[10] = 0.0
    da_dtheta[11] = 0.0
    da_dtheta[12] = 0.0
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
    dB_dtheta[12] = 0.0
    dB_dtheta[13] = 0.0
    dB_dtheta[20] = 0.0
    dB_dtheta[27] = 0.0
    t1 = centre * centre
    t2 = length * length
    t3s, t3c = math.sin(pendulum), math.cos(pendulum)
    t4 = 9.81 * (pendulum_mass * centre + wheel_mass * length)
    t5 = t3s * t4
    t6 = 1.0 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
    t7 = wheel_inertia * t6
    t8 = 1.0 / (wheel_inertia - wheel_inertia * t7)
    B[3] = t8
    t9 = t8 * (wheel_damping * wheel_rate + t5 * t7)
    t10 = t5 * t6 + t7 * t9
    a[2] = t10
    t11 = -t9
    a[3] = t11
    t12 = -(t7 * t8)
    B[2] = t12
    t13 = t4 * t3c
    t14 = t8 * (t7 * t13)
    da_dx[8] = t6 * t13 + t7 * t14
    da_dx[12] = -t14
    t15 = wheel_damping * t8
    da_dx[11] = t7 * t15
    da_dx[15] = -t15
    t16 = t3s * (centre * 9.81) - t1 * t10
    t17 = t8 * (t7 * t16)
    da_dtheta[14] = t6 * t16 + t7 * t17
    da_dtheta[21] = -t17
    t18 = t3s * (length * 9.81) - t2 * t10
    t19 = t8 * (t7 * t18)
    da_dtheta[15] = t6 * t18 + t7 * t19
    da_dtheta[22] = -t19
    t20 = wheel_mass * (length + length)
    t21 = t3s * (wheel_mass * 9.81) - t10 * t20
    t22 = t8 * (t7 * t21)
    da_dtheta[16] = t6 * t21 + t7 * t22
    da_dtheta[23] = -t22
    t23 = pendulum_mass * (centre + centre)
    t24 = t3s * (pendulum_mass * 9.81) - t10 * t23
    t25 = t8 * (t7 * t24)
    da_dtheta[17] = t6 * t24 + t7 * t25
    da_dtheta[24] = -t25
    t26 = t8 * (t7 * t10)
    da_dtheta[18] = -(t6 * t10 + t7 * t26)
    da_dtheta[25] = t26
    t27 = t10 + t11
    t28 = t8 * (t7 * t27 - t27)
    da_dtheta[19] = -(t6 * t27 + t7 * t28)
    da_dtheta[26] = t28
    t29 = wheel_rate * t8
    da_dtheta[20] = t7 * t29
    da_dtheta[27] = -t29
    t30 = t1 * t12
    t31 = t8 * (t7 * t30)
    dB_dtheta[14] = -(t6 * t30 + t7 * t31)
    dB_dtheta[21] = t31
    t32 = t2 * t12
    t33 = t8 * (t7 * t32)
    dB_dtheta[15] = -(t6 * t32 + t7 * t33)
    dB_dtheta[22] = t33
    t34 = t12 * t20
    t35 = t8 * (t7 * t34)
    dB_dtheta[16] = -(t6 * t34 + t7 * t35)
    dB_dtheta[23] = t35
    t36 = t12 * t23
    t37 = t8 * (t7 * t36)
    dB_dtheta[17] = -(t6 * t36 + t7 * t37)
    dB_dtheta[24] = t37
    t38 = t8 * (t7 * t12)
    dB_dtheta[18] = -(t6 * t12 + t7 * t38)
    dB_dtheta[25] = t38
    t39 = t12 + t8
    t40 = t8 * (t7 * t39 - t39)
    dB_dtheta[19] = -(t6 * t39 + t7 * t40)
    dB_dtheta[26] = t40


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    pendulum = x[0]
    wheel = x[1]
    wheel_rate = x[3]
    torque = u[0]
    costate_pendulum = costate[0]
    costate_wheel = costate[1]
    costate_pendulum_rate = costate[2]
    costate_wheel_rate = costate[3]
    pendulum_mass = theta[0]
    wheel_mass = theta[1]
    length = theta[2]
    centre = theta[3]
    pendulum_inertia = theta[4]
    wheel_inertia = theta[5]
    wheel_damping = theta[6]
    dH_dx[1] = wheel - wheel
    dH_dx[2] = costate_pendulum
    t1 = centre * centre
    t2 = length * length
    t3s, t3c = math.sin(pendulum), math.cos(pendulum)
    t4 = 9.81 * (pendulum_mass * centre + wheel_mass * length)
    t5 = t3s * t4
    t6 = 1.0 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
    t7 = wheel_inertia * t6
    t8 = 1.0 / (wheel_inertia - wheel_inertia * t7)
    t9 = t8 * (torque - wheel_damping * wheel_rate - t5 * t7)
    t10 = t5 * t6 - t7 * t9
    t11 = t8 * (costate_wheel_rate - costate_pendulum_rate * t7)
    dH_dx[3] = costate_wheel - wheel_damping * t11
    dH_du[0] = t11
    dH_dtheta[6] = -(wheel_rate * t11)
    t12 = costate_pendulum_rate * t6 - t7 * t11
    dH_dx[0] = t3c * (t4 * t12)
    t13 = t10 * t12
    dH_dtheta[4] = -t13
    dH_dtheta[5] = -(t13 + (t9 * t11 + (t10 * t11 + t9 * t12)))
    t14 = 9.81 * (t3s * t12)
    dH_dtheta[0] = centre * t14 - t1 * t13
    dH_dtheta[1] = length * t14 - t2 * t13
    t15 = length * (wheel_mass * t13)
    dH_dtheta[2] = wheel_mass * t14 - t15 - t15
    t16 = centre * (pendulum_mass * t13)
    dH_dtheta[3] = pendulum_mass * t14 - t16 - t16


def state_cost(x, theta, q, dq_dx):
    pendulum = x[0]
    wheel = x[1]
    pendulum_rate = x[2]
    wheel_rate = x[3]
    dq_dx[1] = wheel - wheel
    t1 = pendulum * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    q[0] = 9.869604401089358 * (t2s * t2s) + (0.05 * (pendulum_rate * pendulum_rate) + 2e-06 * (wheel_rate * wheel_rate))
    t3 = 9.869604401089358 * t2s
    dq_dx[0] = 0.5 * ((t3 + t3) * t2c)
    t4 = wheel_rate * 2e-06
    dq_dx[3] = t4 + t4
    t5 = pendulum_rate * 0.05
    dq_dx[2] = t5 + t5


def action_cost(u, g, dg_du, d2g_du2):
    torque = u[0]
    t1 = torque * 15.692270996952013
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 0.1 - abs(torque)
    t4 = 0.0015692270996952014 + 15.692270996952013 * maximum(-5e-05, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 0.04056900193039206 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 0.04056900193039206 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * sign(-(t3 + 5e-05))
    t17 = sign(torque)
    t18 = t2s * t12
    t19 = t18 + t18
    dg_du[0] = 15.692270996952013 * (t15 * t5c) * t16 * t17 + 15.692270996952013 * (t19 * t2c)
    t20 = 15.692270996952013 * t2c
    t21 = t2s * t20
    t22 = 15.692270996952013 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 0.04056900193039206 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (15.692270996952013 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 15.692270996952013 * (t2c * (t30 + t30) - t19 * (15.692270996952013 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_torque = w[0]
    u_optimal[0] = maximum(-0.1, minimum(0.1, 0.0637256392139949 * math.atan(w_torque * 0.7853981633974482)))


def optimal_input_cost(w, g_optimal):
    w_torque = w[0]
    g_optimal[0] = 0.04056900193039206 * math.log1p(0.6168502750680847 * (w_torque * w_torque))
