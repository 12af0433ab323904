"""cartpole_goal: functions of one sample, made by modelgen; not to be edited.

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
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    cart_mass = theta[1]
    pole_mass = theta[2]
    pole_half_length = theta[3]
    cart_damping = theta[4]
    pole_damping = theta[5]
    a[0] = cart_rate
    a[1] = pole_rate
    B[0] = 0.0
    B[1] = 0.0
    t1s, t1c = math.sin(pole), math.cos(pole)
    t2 = pole_mass * pole_half_length
    t3 = t1c * t2
    t4 = t1s * t2
    t5 = pole_rate * pole_rate * t4 - cart_damping * cart_rate
    t6 = 1.0 / (cart_mass + pole_mass)
    t7 = t3 * t6
    t8 = 1.0 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t7)
    t9 = t8 * (t4 * 9.81 - pole_damping * pole_rate - t5 * t7)
    a[2] = t5 * t6 - t7 * t9
    a[3] = t9
    t10 = t7 * t8
    B[2] = t6 + t7 * t10
    B[3] = -t10


def dynamics(x, u, theta, xdot):
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    force = u[0]
    cart_mass = theta[1]
    pole_mass = theta[2]
    pole_half_length = theta[3]
    cart_damping = theta[4]
    pole_damping = theta[5]
    xdot[0] = cart_rate
    xdot[1] = pole_rate
    t1s, t1c = math.sin(pole), math.cos(pole)
    t2 = pole_mass * pole_half_length
    t3 = t1c * t2
    t4 = t1s * t2
    t5 = 1.0 / (cart_mass + pole_mass)
    t6 = t3 * t5
    t7 = force + (pole_rate * pole_rate * t4 - cart_damping * cart_rate)
    t8 = 1.0 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t6) * (t4 * 9.81 - pole_damping * pole_rate - t6 * t7)
    xdot[2] = t5 * t7 - t6 * t8
    xdot[3] = t8


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    cart_mass = theta[1]
    pole_mass = theta[2]
    pole_half_length = theta[3]
    cart_damping = theta[4]
    pole_damping = theta[5]
    a[0] = cart_rate
    a[1] = pole_rate
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
    da_dx[8] = 0.0
    da_dx[12] = 0.0
    dB_dx[0] = 0.0
    dB_dx[1] = 0.0
    dB_dx[2] = 0.0
    dB_dx[3] = 0.0
    dB_dx[4] = 0.0
    dB_dx[5] = 0.0
    dB_dx[6] = 0.0
    dB_dx[7] = 0.0
    dB_dx[8] = 0.0
    dB_dx[10] = 0.0
    dB_dx[11] = 0.0
    dB_dx[12] = 0.0
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
    da_dtheta[18] = 0.0
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
    dB_dtheta[16] = 0.0
    dB_dtheta[17] = 0.0
    dB_dtheta[18] = 0.0
    dB_dtheta[22] = 0.0
    dB_dtheta[23] = 0.0
    t1s, t1c = math.sin(pole), math.cos(pole)
    t2 = pole_rate * pole_rate
    t3 = pole_mass * pole_half_length
    t4 = t1c * t3
    t5 = pole_half_length * pole_half_length
    t6 = t1s * t3
    t7 = t2 * t6 - cart_damping * cart_rate
    t8 = 1.0 / (cart_mass + pole_mass)
    t9 = t4 * t8
    t10 = 1.0 / (pole_mass * t5 - t4 * t9)
    t11 = t10 * (t6 * 9.81 - pole_damping * pole_rate - t7 * t9)
    a[3] = t11
    t12 = t7 * t8 - t9 * t11
    a[2] = t12
    t13 = t9 * t10
    t14 = t8 + t9 * t13
    B[2] = t14
    t15 = -t13
    B[3] = t15
    t16 = t2 * t4 + t6 * t11
    t17 = t10 * (t4 * 9.81 + t6 * t12 - t9 * t16)
    da_dx[9] = t8 * t16 - t9 * t17
    da_dx[13] = t17
    t18 = t10 * (cart_damping * t9)
    da_dx[10] = -(cart_damping * t8 + t9 * t18)
    da_dx[14] = t18
    t19 = t6 * (pole_rate + pole_rate)
    t20 = t10 * (pole_damping + t9 * t19)
    da_dx[11] = t8 * t19 + t9 * t20
    da_dx[15] = -t20
    t21 = t6 * t15
    t22 = t10 * (t6 * t14 - t9 * t21)
    dB_dx[9] = t8 * t21 - t9 * t22
    dB_dx[13] = t22
    t23 = t10 * (t9 * t12)
    da_dtheta[13] = -(t8 * t12 + t9 * t23)
    da_dtheta[19] = t23
    t24 = pole_half_length * t1c
    t25 = pole_half_length * t1s
    t26 = t2 * t25 - (t12 + t11 * t24)
    t27 = t10 * (9.81 * t25 - (t12 * t24 + t5 * t11) - t9 * t26)
    da_dtheta[14] = t8 * t26 - t9 * t27
    da_dtheta[20] = t27
    t28 = pole_mass * t1c
    t29 = pole_mass * (pole_half_length + pole_half_length)
    t30 = pole_mass * t1s
    t31 = t2 * t30 - t11 * t28
    t32 = t10 * (9.81 * t30 - (t12 * t28 + t11 * t29) - t9 * t31)
    da_dtheta[15] = t8 * t31 - t9 * t32
    da_dtheta[21] = t32
    t33 = t10 * (cart_rate * t9)
    da_dtheta[16] = -(cart_rate * t8 + t9 * t33)
    da_dtheta[22] = t33
    t34 = pole_rate * t10
    da_dtheta[17] = t9 * t34
    da_dtheta[23] = -t34
    t35 = t10 * (t9 * t14)
    dB_dtheta[13] = -(t8 * t14 + t9 * t35)
    dB_dtheta[19] = t35
    t36 = t14 + t15 * t24
    t37 = t10 * (t9 * t36 - (t14 * t24 + t5 * t15))
    dB_dtheta[14] = -(t8 * t36 + t9 * t37)
    dB_dtheta[20] = t37
    t38 = t15 * t28
    t39 = t10 * (t9 * t38 - (t14 * t28 + t15 * t29))
    dB_dtheta[15] = -(t8 * t38 + t9 * t39)
    dB_dtheta[21] = t39


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    cart = x[0]
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    force = u[0]
    costate_cart = costate[0]
    costate_pole = costate[1]
    costate_cart_rate = costate[2]
    costate_pole_rate = costate[3]
    cart_mass = theta[1]
    pole_mass = theta[2]
    pole_half_length = theta[3]
    cart_damping = theta[4]
    pole_damping = theta[5]
    dH_dx[0] = cart - cart
    dH_dtheta[0] = 0.0
    t1s, t1c = math.sin(pole), math.cos(pole)
    t2 = pole_rate * pole_rate
    t3 = pole_mass * pole_half_length
    t4 = t1c * t3
    t5 = pole_half_length * pole_half_length
    t6 = t1s * t3
    t7 = 1.0 / (cart_mass + pole_mass)
    t8 = t4 * t7
    t9 = 1.0 / (pole_mass * t5 - t4 * t8)
    t10 = force + (t2 * t6 - cart_damping * cart_rate)
    t11 = t9 * (t6 * 9.81 - pole_damping * pole_rate - t8 * t10)
    t12 = t7 * t10 - t8 * t11
    t13 = t9 * (costate_pole_rate - costate_cart_rate * t8)
    dH_dtheta[5] = -(pole_rate * t13)
    t14 = costate_cart_rate * t7 - t8 * t13
    dH_dx[2] = costate_cart - cart_damping * t14
    dH_du[0] = t14
    dH_dtheta[4] = -(cart_rate * t14)
    t15 = t12 * t14
    dH_dtheta[1] = -t15
    t16 = t11 * t13
    t17 = t12 * t13 + t11 * t14
    t18 = 9.81 * t13 + t2 * t14
    dH_dx[1] = t1s * (t3 * t17) + t1c * (t3 * t18)
    t19 = pole_half_length * (pole_mass * t16)
    t20 = t1s * t18 - t1c * t17
    dH_dtheta[2] = pole_half_length * t20 - t5 * t16 - t15
    dH_dtheta[3] = pole_mass * t20 - (t19 + t19)
    t21 = pole_rate * (t6 * t14)
    dH_dx[3] = t21 + (costate_pole - pole_damping * t13 + t21)


def state_cost(x, theta, q, dq_dx):
    cart = x[0]
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    goal = theta[0]
    t1 = pole * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = cart - goal
    t4 = 25.0 * (t3 * t3) + (9.869604401089358 * (t2s * t2s) + (pole_rate * pole_rate * 0.1 + 0.5 * (cart_rate * cart_rate)))
    q[0] = t4
    t5 = 25.0 * t3
    dq_dx[0] = t5 + t5
    t6 = 9.869604401089358 * t2s
    dq_dx[1] = 0.5 * ((t6 + t6) * t2c)
    t7 = cart_rate * 0.5
    dq_dx[2] = t7 + t7
    t8 = pole_rate * 0.1
    dq_dx[3] = t8 + t8


def action_cost(u, g, dg_du, d2g_du2):
    force = u[0]
    t1 = force * 0.13088878650069966
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 12.0 - abs(force)
    t4 = 0.00013088878650069965 + 0.13088878650069966 * maximum(-0.0005, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 70.03903823376167 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 70.03903823376167 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * sign(-(t3 + 0.0005))
    t17 = sign(force)
    t18 = t2s * t12
    t19 = t18 + t18
    dg_du[0] = 0.13088878650069966 * (t15 * t5c) * t16 * t17 + 0.13088878650069966 * (t19 * t2c)
    t20 = 0.13088878650069966 * t2c
    t21 = t2s * t20
    t22 = 0.13088878650069966 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 70.03903823376167 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (0.13088878650069966 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 0.13088878650069966 * (t2c * (t30 + t30) - t19 * (0.13088878650069966 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_force = w[0]
    u_optimal[0] = maximum(-12.0, minimum(12.0, 7.640073888183344 * math.atan(w_force * 0.0545415391248228)))


def optimal_input_cost(w, g_optimal):
    w_force = w[0]
    g_optimal[0] = 70.03903823376167 * math.log1p(0.002974779490104576 * (w_force * w_force))
