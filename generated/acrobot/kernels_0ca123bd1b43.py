"""acrobot: functions of one sample, made by modelgen; not to be edited.

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
    shoulder = x[0]
    elbow = x[1]
    shoulder_rate = x[2]
    elbow_rate = x[3]
    upper_mass = theta[0]
    upper_length = theta[1]
    upper_centre = theta[2]
    upper_inertia = theta[3]
    lower_mass = theta[4]
    lower_centre = theta[5]
    lower_inertia = theta[6]
    a[0] = shoulder_rate
    a[1] = elbow_rate
    B[0] = 0.0
    B[1] = 0.0
    t1 = lower_centre * (upper_length * lower_mass)
    t2s, t2c = math.sin(elbow), math.cos(elbow)
    t3 = t1 * t2c
    t4 = lower_inertia + lower_mass * (lower_centre * lower_centre)
    t5 = t1 * t2s
    t6 = math.sin(shoulder)
    t7 = math.sin(shoulder + elbow)
    t8 = upper_mass * (upper_centre * upper_centre) + (lower_mass * (upper_length * upper_length) + (t3 * 2.0 + (upper_inertia + t4)))
    t9 = t3 + t4
    t10 = 2.0 * (t5 * (shoulder_rate * elbow_rate)) + (elbow_rate * elbow_rate * t5 + (upper_length * t6 + lower_centre * t7) * (lower_mass * 9.81))
    t11 = 9.81 * (t6 * (upper_mass * upper_centre)) + t10
    t12 = 1.0 / t8
    t13 = t9 * t12
    t14 = 1.0 / (t4 - t9 * t13)
    B[2] = -(t13 * t14)
    B[3] = t14
    t15 = t14 * (9.81 * (t7 * (lower_mass * lower_centre)) - t5 * (shoulder_rate * shoulder_rate) - t11 * t13)
    a[2] = t11 * t12 - t13 * t15
    a[3] = t15


def dynamics(x, u, theta, xdot):
    shoulder = x[0]
    elbow = x[1]
    shoulder_rate = x[2]
    elbow_rate = x[3]
    torque = u[0]
    upper_mass = theta[0]
    upper_length = theta[1]
    upper_centre = theta[2]
    upper_inertia = theta[3]
    lower_mass = theta[4]
    lower_centre = theta[5]
    lower_inertia = theta[6]
    xdot[0] = shoulder_rate
    xdot[1] = elbow_rate
    t1 = lower_centre * (upper_length * lower_mass)
    t2s, t2c = math.sin(elbow), math.cos(elbow)
    t3 = t1 * t2c
    t4 = lower_inertia + lower_mass * (lower_centre * lower_centre)
    t5 = t1 * t2s
    t6 = math.sin(shoulder)
    t7 = math.sin(shoulder + elbow)
    t8 = upper_mass * (upper_centre * upper_centre) + (lower_mass * (upper_length * upper_length) + (t3 * 2.0 + (upper_inertia + t4)))
    t9 = t3 + t4
    t10 = 2.0 * (t5 * (shoulder_rate * elbow_rate)) + (elbow_rate * elbow_rate * t5 + (upper_length * t6 + lower_centre * t7) * (lower_mass * 9.81))
    t11 = 9.81 * (t6 * (upper_mass * upper_centre)) + t10
    t12 = 1.0 / t8
    t13 = t9 * t12
    t14 = torque + (9.81 * (t7 * (lower_mass * lower_centre)) - t5 * (shoulder_rate * shoulder_rate)) - t11 * t13
    t15 = 1.0 / (t4 - t9 * t13) * t14
    xdot[2] = t11 * t12 - t13 * t15
    xdot[3] = t15


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    shoulder = x[0]
    elbow = x[1]
    shoulder_rate = x[2]
    elbow_rate = x[3]
    upper_mass = theta[0]
    upper_length = theta[1]
    upper_centre = theta[2]
    upper_inertia = theta[3]
    lower_mass = theta[4]
    lower_centre = theta[5]
    lower_inertia = theta[6]
    a[0] = shoulder_rate
    a[1] = elbow_rate
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
    t1 = upper_length * lower_mass
    t2 = lower_centre * t1
    t3s, t3c = math.sin(elbow), math.cos(elbow)
    t4 = t2 * t3c
    t5 = lower_centre * lower_centre
    t6 = lower_inertia + lower_mass * t5
    t7 = elbow_rate * elbow_rate
    t8 = t2 * t3s
    t9s, t9c = math.sin(shoulder), math.cos(shoulder)
    t10 = shoulder + elbow
    t11s, t11c = math.sin(t10), math.cos(t10)
    t12 = shoulder_rate * shoulder_rate
    t13 = upper_length * upper_length
    t14 = upper_centre * upper_centre
    t15 = t4 + t6
    t16 = lower_centre * t11s
    t17 = upper_length * t9s + t16
    t18 = lower_mass * 9.81
    t19 = shoulder_rate * elbow_rate
    t20 = upper_mass * upper_centre
    t21 = 9.81 * (t9s * t20) + (2.0 * (t8 * t19) + (t7 * t8 + t17 * t18))
    t22 = lower_mass * lower_centre
    t23 = 1.0 / (upper_mass * t14 + (lower_mass * t13 + (t4 * 2.0 + (upper_inertia + t6))))
    t24 = t15 * t23
    t25 = 1.0 / (t6 - t15 * t24)
    B[3] = t25
    t26 = t25 * (9.81 * (t11s * t22) - t8 * t12 - t21 * t24)
    a[3] = t26
    t27 = t21 * t23 - t24 * t26
    a[2] = t27
    t28 = -(t24 * t25)
    B[2] = t28
    t29 = lower_centre * t11c
    t30 = t18 * (upper_length * t9c + t29) + 9.81 * (t20 * t9c)
    t31 = 9.81 * (t22 * t11c)
    t32 = t25 * (t31 - t24 * t30)
    da_dx[8] = t23 * t30 - t24 * t32
    da_dx[12] = t32
    t33 = t8 * 2.0
    t34 = 2.0 * (t4 * t19) + (t4 * t7 + t18 * t29) + (t27 * t33 + t8 * t26)
    t35 = t25 * (t31 - t4 * t12 + t8 * t27 - t24 * t34)
    da_dx[9] = t23 * t34 - t24 * t35
    da_dx[13] = t35
    t36 = 2.0 * (elbow_rate * t8)
    t37 = t25 * (t8 * (shoulder_rate + shoulder_rate) + t24 * t36)
    da_dx[10] = t23 * t36 + t24 * t37
    da_dx[14] = -t37
    t38 = t8 * (elbow_rate + elbow_rate) + 2.0 * (shoulder_rate * t8)
    t39 = t25 * (t24 * t38)
    da_dx[11] = t23 * t38 + t24 * t39
    da_dx[15] = -t39
    t40 = t28 * t33 + t8 * t25
    t41 = t25 * (t8 * t28 - t24 * t40)
    dB_dx[9] = t23 * t40 - t24 * t41
    dB_dx[13] = t41
    t42 = 9.81 * (upper_centre * t9s) - t14 * t27
    t43 = t25 * (t24 * t42)
    da_dtheta[14] = t23 * t42 + t24 * t43
    da_dtheta[21] = -t43
    t44 = t3c * t22
    t45 = t3s * t22
    t46 = 2.0 * t44 + lower_mass * (upper_length + upper_length)
    t47 = 2.0 * (t19 * t45) + (t7 * t45 + t9s * t18) - (t27 * t46 + t26 * t44)
    t48 = t25 * (t12 * t45 + t27 * t44 + t24 * t47)
    da_dtheta[15] = t23 * t47 + t24 * t48
    da_dtheta[22] = -t48
    t49 = upper_mass * (upper_centre + upper_centre)
    t50 = 9.81 * (upper_mass * t9s) - t27 * t49
    t51 = t25 * (t24 * t50)
    da_dtheta[16] = t23 * t50 + t24 * t51
    da_dtheta[23] = -t51
    t52 = t25 * (t24 * t27)
    da_dtheta[17] = -(t23 * t27 + t24 * t52)
    da_dtheta[24] = t52
    t53 = upper_length * lower_centre
    t54 = t3c * t53
    t55 = t3s * t53
    t56 = t13 + (t5 + 2.0 * t54)
    t57 = t5 + t54
    t58 = 2.0 * (t19 * t55) + (t7 * t55 + 9.81 * t17) - (t27 * t56 + t26 * t57)
    t59 = 9.81 * t16 - t12 * t55 - (t27 * t57 + t5 * t26) - t24 * t58
    t60 = t25 * t59
    da_dtheta[18] = t23 * t58 - t24 * t60
    da_dtheta[25] = t60
    t61 = t1 * t3c
    t62 = lower_mass * (lower_centre + lower_centre)
    t63 = t1 * t3s
    t64 = t62 + 2.0 * t61
    t65 = t61 + t62
    t66 = 2.0 * (t19 * t63) + (t7 * t63 + t11s * t18) - (t27 * t64 + t26 * t65)
    t67 = 9.81 * (lower_mass * t11s) - t12 * t63 - (t27 * t65 + t26 * t62) - t24 * t66
    t68 = t25 * t67
    da_dtheta[19] = t23 * t66 - t24 * t68
    da_dtheta[26] = t68
    t69 = t27 + t26
    t70 = t25 * (t24 * t69 - t69)
    da_dtheta[20] = -(t23 * t69 + t24 * t70)
    da_dtheta[27] = t70
    t71 = t14 * t28
    t72 = t25 * (t24 * t71)
    dB_dtheta[14] = -(t23 * t71 + t24 * t72)
    dB_dtheta[21] = t72
    t73 = t28 * t46 + t25 * t44
    t74 = t25 * (t24 * t73 - t28 * t44)
    dB_dtheta[15] = -(t23 * t73 + t24 * t74)
    dB_dtheta[22] = t74
    t75 = t28 * t49
    t76 = t25 * (t24 * t75)
    dB_dtheta[16] = -(t23 * t75 + t24 * t76)
    dB_dtheta[23] = t76
    t77 = t25 * (t24 * t28)
    dB_dtheta[17] = -(t23 * t28 + t24 * t77)
    dB_dtheta[24] = t77
    t78 = t28 * t56 + t25 * t57
    t79 = t25 * (t24 * t78 - (t28 * t57 + t5 * t25))
    dB_dtheta[18] = -(t23 * t78 + t24 * t79)
    dB_dtheta[25] = t79
    t80 = t28 * t64 + t25 * t65
    t81 = t25 * (t24 * t80 - (t28 * t65 + t25 * t62))
    dB_dtheta[19] = -(t23 * t80 + t24 * t81)
    dB_dtheta[26] = t81
    t82 = t28 + t25
    t83 = t25 * (t24 * t82 - t82)
    dB_dtheta[20] = -(t23 * t82 + t24 * t83)
    dB_dtheta[27] = t83


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    shoulder = x[0]
    elbow = x[1]
    shoulder_rate = x[2]
    elbow_rate = x[3]
    torque = u[0]
    costate_shoulder = costate[0]
    costate_elbow = costate[1]
    costate_shoulder_rate = costate[2]
    costate_elbow_rate = costate[3]
    upper_mass = theta[0]
    upper_length = theta[1]
    upper_centre = theta[2]
    upper_inertia = theta[3]
    lower_mass = theta[4]
    lower_centre = theta[5]
    lower_inertia = theta[6]
    t1 = upper_length * lower_mass
    t2 = lower_centre * t1
    t3s, t3c = math.sin(elbow), math.cos(elbow)
    t4 = t2 * t3c
    t5 = lower_centre * lower_centre
    t6 = lower_inertia + lower_mass * t5
    t7 = elbow_rate * elbow_rate
    t8 = t2 * t3s
    t9s, t9c = math.sin(shoulder), math.cos(shoulder)
    t10 = shoulder + elbow
    t11s, t11c = math.sin(t10), math.cos(t10)
    t12 = shoulder_rate * shoulder_rate
    t13 = upper_length * upper_length
    t14 = upper_centre * upper_centre
    t15 = t4 + t6
    t16 = upper_length * t9s + lower_centre * t11s
    t17 = lower_mass * 9.81
    t18 = shoulder_rate * elbow_rate
    t19 = upper_mass * upper_centre
    t20 = 9.81 * (t9s * t19) + (2.0 * (t8 * t18) + (t7 * t8 + t16 * t17))
    t21 = lower_mass * lower_centre
    t22 = 1.0 / (upper_mass * t14 + (lower_mass * t13 + (t4 * 2.0 + (upper_inertia + t6))))
    t23 = t15 * t22
    t24 = 1.0 / (t6 - t15 * t23)
    t25 = t24 * (torque + (9.81 * (t11s * t21) - t8 * t12) - t20 * t23)
    t26 = t20 * t22 - t23 * t25
    t27 = t24 * (costate_elbow_rate - costate_shoulder_rate * t23)
    dH_du[0] = t27
    t28 = costate_shoulder_rate * t22 - t23 * t27
    t29 = t26 * t28
    dH_dtheta[3] = -t29
    t30 = t26 * t27 + t25 * t28
    t31 = 9.81 * t27
    t32 = t11s * t31
    t33 = 9.81 * t28
    t34 = t9s * t33
    dH_dtheta[0] = upper_centre * t34 - t14 * t29
    t35 = 2.0 * t28
    t36 = t8 * t35
    t37 = t17 * t28
    t38 = t18 * t35 - t12 * t27 + t7 * t28
    t39 = t29 + (t25 * t27 + t30)
    dH_dtheta[6] = -t39
    t40 = upper_centre * (upper_mass * t29)
    dH_dtheta[2] = upper_mass * t34 - t40 - t40
    t41 = upper_length * (lower_mass * t29)
    t42 = t30 + 2.0 * t29
    t43 = shoulder_rate * (t8 * t27)
    dH_dx[2] = costate_shoulder + elbow_rate * t36 - t43 - t43
    t44 = t11c * (t21 * t31 + lower_centre * t37)
    dH_dx[0] = t44 + t9c * (t19 * t33 + upper_length * t37)
    dH_dx[1] = t44 + t3c * (t2 * t38) + t3s * (t2 * t42)
    t45 = elbow_rate * (t8 * t28)
    dH_dx[3] = t45 + (costate_elbow + shoulder_rate * t36 + t45)
    t46 = lower_centre * (lower_mass * t39)
    t47 = t3s * t38 - t3c * t42
    dH_dtheta[5] = lower_mass * t32 + t11s * t37 - t46 - t46 + t1 * t47
    t48 = lower_centre * t47
    dH_dtheta[1] = t9s * t37 - t41 - t41 + lower_mass * t48
    t49 = lower_centre * t32 + 9.81 * (t16 * t28) - t13 * t29 - t5 * t39 + upper_length * t48
    dH_dtheta[4] = t49


def state_cost(x, theta, q, dq_dx):
    shoulder = x[0]
    elbow = x[1]
    shoulder_rate = x[2]
    elbow_rate = x[3]
    t1 = elbow * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = shoulder * 0.5
    t4s, t4c = math.sin(t3), math.cos(t3)
    t5 = 9.869604401089358 * (t4s * t4s) + (9.869604401089358 * (t2s * t2s) + (elbow_rate * elbow_rate * 0.1 + shoulder_rate * shoulder_rate * 0.1))
    q[0] = t5
    t6 = 9.869604401089358 * t4s
    dq_dx[0] = 0.5 * ((t6 + t6) * t4c)
    t7 = 9.869604401089358 * t2s
    dq_dx[1] = 0.5 * ((t7 + t7) * t2c)
    t8 = shoulder_rate * 0.1
    dq_dx[2] = t8 + t8
    t9 = elbow_rate * 0.1
    dq_dx[3] = t9 + t9


def action_cost(u, g, dg_du, d2g_du2):
    torque = u[0]
    t1 = torque * 0.07853588954526756
    t2s, t2c = math.sin(t1), math.cos(t1)
    t3 = 20.0 - abs(torque)
    t4 = 7.853588954526757e-05 + 0.07853588954526756 * maximum(-0.0005, t3)
    t5s, t5c = math.sin(t4), math.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    g[0] = 6.484879980897273 * math.log1p(t7)
    t8 = 1.0 / (1.0 + t7)
    t9 = 6.484879980897273 * t8
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
    dg_du[0] = 0.07853588954526756 * (t15 * t5c) * t16 * t17 + 0.07853588954526756 * (t19 * t2c)
    t20 = 0.07853588954526756 * t2c
    t21 = t2s * t20
    t22 = 0.07853588954526756 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 6.484879980897273 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (0.07853588954526756 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 0.07853588954526756 * (t2c * (t30 + t30) - t19 * (0.07853588954526756 * t2s))
    d2g_du2[0] = t31


def optimal_input(w, u_optimal):
    w_torque = w[0]
    u_optimal[0] = maximum(-20.0, minimum(20.0, 12.733032067123995 * math.atan(w_torque * 0.9817477042468103)))


def optimal_input_cost(w, g_optimal):
    w_torque = w[0]
    g_optimal[0] = 6.484879980897273 * math.log1p(0.9638285547938826 * (w_torque * w_torque))
