"""cartpole_quanser: functions of one sample, made by modelgen; not to be edited.

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
    cart_mass = theta[0]
    pole_mass = theta[1]
    pole_half_length = theta[2]
    cart_damping = theta[3]
    pole_damping = theta[4]
    resistance = theta[5]
    motor_constant = theta[6]
    a[0] = cart_rate
    a[1] = pole_rate
    B[0] = 0.0
    B[1] = 0.0
    t1 = 1.0 / resistance
    t2s, t2c = math.sin(pole), math.cos(pole)
    t3 = pole_mass * pole_half_length
    t4 = t2c * t3
    t5 = t2s * t3
    t6 = pole_rate * pole_rate * t5 - cart_damping * cart_rate - motor_constant * motor_constant * (cart_rate * t1 * 276493.7937875876)
    t7 = 425.9196850393701 * (motor_constant * t1)
    t8 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t9 = t4 * t8
    t10 = 1.0 / (pole_half_length * pole_half_length * (pole_mass * 1.3333333333333333) - t4 * t9)
    t11 = t10 * (t5 * 9.81 - pole_damping * pole_rate - t6 * t9)
    a[2] = t6 * t8 - t9 * t11
    a[3] = t11
    t12 = t10 * (t7 * t9)
    B[2] = t7 * t8 + t9 * t12
    B[3] = -t12


def dynamics(x, u, theta, xdot):
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    voltage = u[0]
    cart_mass = theta[0]
    pole_mass = theta[1]
    pole_half_length = theta[2]
    cart_damping = theta[3]
    pole_damping = theta[4]
    resistance = theta[5]
    motor_constant = theta[6]
    xdot[0] = cart_rate
    xdot[1] = pole_rate
    t1 = 1.0 / resistance
    t2s, t2c = math.sin(pole), math.cos(pole)
    t3 = pole_mass * pole_half_length
    t4 = t2c * t3
    t5 = t2s * t3
    t6 = pole_rate * pole_rate * t5 - cart_damping * cart_rate - motor_constant * motor_constant * (cart_rate * t1 * 276493.7937875876)
    t7 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t8 = t4 * t7
    t9 = t6 + voltage * (425.9196850393701 * (motor_constant * t1))
    t10 = 1.0 / (pole_half_length * pole_half_length * (pole_mass * 1.3333333333333333) - t4 * t8) * (t5 * 9.81 - pole_damping * pole_rate - t8 * t9)
    xdot[2] = t7 * t9 - t8 * t10
    xdot[3] = t10


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    cart_mass = theta[0]
    pole_mass = theta[1]
    pole_half_length = theta[2]
    cart_damping = theta[3]
    pole_damping = theta[4]
    resistance = theta[5]
    motor_constant = theta[6]
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
    dB_dtheta[17] = 0.0
    dB_dtheta[18] = 0.0
    dB_dtheta[24] = 0.0
    dB_dtheta[25] = 0.0
    t1 = 1.0 / resistance
    t2s, t2c = math.sin(pole), math.cos(pole)
    t3 = pole_rate * pole_rate
    t4 = pole_mass * pole_half_length
    t5 = t2c * t4
    t6 = pole_half_length * pole_half_length
    t7 = pole_mass * 1.3333333333333333
    t8 = motor_constant * motor_constant
    t9 = cart_rate * t1 * 276493.7937875876
    t10 = t2s * t4
    t11 = t3 * t10 - cart_damping * cart_rate - t8 * t9
    t12 = 425.9196850393701 * (motor_constant * t1)
    t13 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t14 = t5 * t13
    t15 = 1.0 / (t6 * t7 - t5 * t14)
    t16 = t15 * (t10 * 9.81 - pole_damping * pole_rate - t11 * t14)
    a[3] = t16
    t17 = t11 * t13 - t14 * t16
    a[2] = t17
    t18 = t15 * (t12 * t14)
    t19 = t12 * t13 + t14 * t18
    B[2] = t19
    t20 = -t18
    B[3] = t20
    t21 = t3 * t5 + t10 * t16
    t22 = t15 * (t5 * 9.81 + t10 * t17 - t14 * t21)
    da_dx[9] = t13 * t21 - t14 * t22
    da_dx[13] = t22
    t23 = cart_damping + t8 * (t1 * 276493.7937875876)
    t24 = t15 * (t14 * t23)
    da_dx[10] = -(t13 * t23 + t14 * t24)
    da_dx[14] = t24
    t25 = t10 * (pole_rate + pole_rate)
    t26 = t15 * (pole_damping + t14 * t25)
    da_dx[11] = t13 * t25 + t14 * t26
    da_dx[15] = -t26
    t27 = t10 * t20
    t28 = t15 * (t10 * t19 - t14 * t27)
    dB_dx[9] = t13 * t27 - t14 * t28
    dB_dx[13] = t28
    t29 = t15 * (t14 * t17)
    da_dtheta[14] = -(t13 * t17 + t14 * t29)
    da_dtheta[21] = t29
    t30 = pole_half_length * t2c
    t31 = 1.3333333333333333 * t6
    t32 = pole_half_length * t2s
    t33 = t3 * t32 - (t17 + t16 * t30)
    t34 = t15 * (9.81 * t32 - (t17 * t30 + t16 * t31) - t14 * t33)
    da_dtheta[15] = t13 * t33 - t14 * t34
    da_dtheta[22] = t34
    t35 = pole_mass * t2c
    t36 = t7 * (pole_half_length + pole_half_length)
    t37 = pole_mass * t2s
    t38 = t3 * t37 - t16 * t35
    t39 = t15 * (9.81 * t37 - (t17 * t35 + t16 * t36) - t14 * t38)
    da_dtheta[16] = t13 * t38 - t14 * t39
    da_dtheta[23] = t39
    t40 = t15 * (cart_rate * t14)
    da_dtheta[17] = -(cart_rate * t13 + t14 * t40)
    da_dtheta[24] = t40
    t41 = pole_rate * t15
    da_dtheta[18] = t14 * t41
    da_dtheta[25] = -t41
    t42 = t1 * t1
    t43 = t8 * (276493.7937875876 * (cart_rate * t42))
    t44 = t15 * (t14 * t43)
    da_dtheta[19] = t13 * t43 + t14 * t44
    da_dtheta[26] = -t44
    t45 = t9 * (motor_constant + motor_constant)
    t46 = t15 * (t14 * t45)
    da_dtheta[20] = -(t13 * t45 + t14 * t46)
    da_dtheta[27] = t46
    t47 = t15 * (t14 * t19)
    dB_dtheta[14] = -(t13 * t19 + t14 * t47)
    dB_dtheta[21] = t47
    t48 = t19 + t20 * t30
    t49 = t15 * (t14 * t48 - (t19 * t30 + t20 * t31))
    dB_dtheta[15] = -(t13 * t48 + t14 * t49)
    dB_dtheta[22] = t49
    t50 = t20 * t35
    t51 = t15 * (t14 * t50 - (t19 * t35 + t20 * t36))
    dB_dtheta[16] = -(t13 * t50 + t14 * t51)
    dB_dtheta[23] = t51
    t52 = 425.9196850393701 * (motor_constant * t42)
    t53 = t15 * (t14 * t52)
    dB_dtheta[19] = -(t13 * t52 + t14 * t53)
    dB_dtheta[26] = t53
    t54 = t1 * 425.9196850393701
    t55 = t15 * (t14 * t54)
    dB_dtheta[20] = t13 * t54 + t14 * t55
    dB_dtheta[27] = -t55


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    cart = x[0]
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    voltage = u[0]
    costate_cart = costate[0]
    costate_pole = costate[1]
    costate_cart_rate = costate[2]
    costate_pole_rate = costate[3]
    cart_mass = theta[0]
    pole_mass = theta[1]
    pole_half_length = theta[2]
    cart_damping = theta[3]
    pole_damping = theta[4]
    resistance = theta[5]
    motor_constant = theta[6]
    dH_dx[0] = cart - cart
    t1 = 1.0 / resistance
    t2s, t2c = math.sin(pole), math.cos(pole)
    t3 = pole_rate * pole_rate
    t4 = pole_mass * pole_half_length
    t5 = t2c * t4
    t6 = pole_half_length * pole_half_length
    t7 = pole_mass * 1.3333333333333333
    t8 = motor_constant * motor_constant
    t9 = cart_rate * t1 * 276493.7937875876
    t10 = t2s * t4
    t11 = 425.9196850393701 * (motor_constant * t1)
    t12 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t13 = t5 * t12
    t14 = 1.0 / (t6 * t7 - t5 * t13)
    t15 = t3 * t10 - cart_damping * cart_rate - t8 * t9 + voltage * t11
    t16 = t14 * (t10 * 9.81 - pole_damping * pole_rate - t13 * t15)
    t17 = t12 * t15 - t13 * t16
    t18 = t14 * (costate_pole_rate - costate_cart_rate * t13)
    dH_dtheta[4] = -(pole_rate * t18)
    t19 = costate_cart_rate * t12 - t13 * t18
    dH_du[0] = t11 * t19
    dH_dtheta[3] = -(cart_rate * t19)
    t20 = t17 * t19
    dH_dtheta[0] = -t20
    t21 = t16 * t18
    t22 = t17 * t18 + t16 * t19
    t23 = 425.9196850393701 * (voltage * t19)
    t24 = 9.81 * t18 + t3 * t19
    dH_dx[1] = t2s * (t4 * t22) + t2c * (t4 * t24)
    t25 = 276493.7937875876 * (t8 * t19)
    dH_dx[2] = costate_cart - t1 * t25 - cart_damping * t19
    dH_dtheta[5] = -(t1 * t1 * (motor_constant * t23 - cart_rate * t25))
    t26 = motor_constant * (t9 * t19)
    dH_dtheta[6] = t1 * t23 - t26 - t26
    t27 = pole_half_length * (t7 * t21)
    t28 = t2s * t24 - t2c * t22
    dH_dtheta[1] = pole_half_length * t28 - 1.3333333333333333 * (t6 * t21) - t20
    dH_dtheta[2] = pole_mass * t28 - (t27 + t27)
    t29 = pole_rate * (t10 * t19)
    dH_dx[3] = t29 + (costate_pole - pole_damping * t18 + t29)


def state_cost(x, theta, q, dq_dx):
    cart = x[0]
    pole = x[1]
    cart_rate = x[2]
    pole_rate = x[3]
    t1 = pole * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 9.869604401089358 * (t2s * t2s) + (0.5 * (cart_rate * cart_rate) + (25.0 * (cart * cart) + pole_rate * pole_rate * 0.1))
    q[0] = t3
    t4 = 9.869604401089358 * t2s
    dq_dx[1] = 0.5 * ((t4 + t4) * t2c)
    t5 = cart_rate * 0.5
    dq_dx[2] = t5 + t5
    t6 = cart * 25.0
    dq_dx[0] = t6 + t6
    t7 = pole_rate * 0.1
    dq_dx[3] = t7 + t7


def action_cost(u, g, dg_du, d2g_du2):
    voltage = u[0]
    t1 = voltage * 0.19632500022433405
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 8.0 - abs(voltage)
    t4 = 0.00019632500022433405 + 0.19632500022433405 * maximum(-0.0005, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 20.75317223225202 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 20.75317223225202 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * sign(-(t3 + 0.0005))
    t17 = sign(voltage)
    t18 = t2s * t12
    t19 = t18 + t18
    dg_du[0] = 0.19632500022433405 * (t15 * t5c) * t16 * t17 + 0.19632500022433405 * (t19 * t2c)
    t20 = 0.19632500022433405 * t2c
    t21 = t2s * t20
    t22 = 0.19632500022433405 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 20.75317223225202 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (0.19632500022433405 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 0.19632500022433405 * (t2c * (t30 + t30) - t19 * (0.19632500022433405 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_voltage = w[0]
    u_optimal[0] = maximum(-8.0, minimum(8.0, 5.093594798713018 * math.atan(w_voltage * 0.1227184630308513)))


def optimal_input_cost(w, g_optimal):
    w_voltage = w[0]
    g_optimal[0] = 20.75317223225202 * math.log1p(0.015059821168654416 * (w_voltage * w_voltage))
