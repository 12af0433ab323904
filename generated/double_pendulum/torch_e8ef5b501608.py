"""double_pendulum: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    shoulder = x[..., 0]
    elbow = x[..., 1]
    shoulder_rate = x[..., 2]
    elbow_rate = x[..., 3]
    upper_mass = theta[..., 0]
    upper_length = theta[..., 1]
    lower_mass = theta[..., 2]
    lower_length = theta[..., 3]
    shoulder_damping = theta[..., 4]
    elbow_damping = theta[..., 5]
    t1 = upper_length * upper_length
    t2 = lower_length * lower_length * (lower_mass * 0.3333333333333333)
    t3s, t3c = torch.sin(elbow), torch.cos(elbow)
    t4 = upper_length * t3c
    t5 = lower_mass * lower_length
    t6 = t3s * (upper_length * t5)
    t7 = t6 * 0.5
    t8 = upper_length * torch.sin(shoulder)
    t9 = torch.sin(shoulder + elbow)
    t10 = (t4 * 3.0 + lower_length * 2.0) * (t5 * 0.16666666666666666)
    t11 = (t8 * 2.0 + lower_length * t9) * (lower_mass * 4.905) + (elbow_rate * elbow_rate * t7 + 4.905 * (upper_mass * t8))
    t12 = t6 * (shoulder_rate * elbow_rate) + t11 - shoulder_damping * shoulder_rate
    t13 = 1.0 / (t4 * t5 + (0.3333333333333333 * (upper_mass * t1) + (t2 + lower_mass * t1)))
    t14 = t10 * t13
    t15 = 1.0 / (t2 - t10 * t14)
    t16 = 4.905 * (t5 * t9) - t7 * (shoulder_rate * shoulder_rate) - elbow_damping * elbow_rate - t12 * t14
    t17 = t15 * t16
    t18 = t14 * t15
    t19 = -t18
    a = _rows(x, (4,), shoulder_rate, elbow_rate, t12 * t13 - t14 * t17, t17)
    B = _rows(x, (4, 2), 0.0, 0.0, 0.0, 0.0, t13 + t14 * t18, t19, t19, t15)
    return a, B,


def _dynamics(x, u, theta):
    shoulder = x[..., 0]
    elbow = x[..., 1]
    shoulder_rate = x[..., 2]
    elbow_rate = x[..., 3]
    shoulder_torque = u[..., 0]
    elbow_torque = u[..., 1]
    upper_mass = theta[..., 0]
    upper_length = theta[..., 1]
    lower_mass = theta[..., 2]
    lower_length = theta[..., 3]
    shoulder_damping = theta[..., 4]
    elbow_damping = theta[..., 5]
    t1 = upper_length * upper_length
    t2 = lower_length * lower_length * (lower_mass * 0.3333333333333333)
    t3s, t3c = torch.sin(elbow), torch.cos(elbow)
    t4 = upper_length * t3c
    t5 = lower_mass * lower_length
    t6 = t3s * (upper_length * t5)
    t7 = t6 * 0.5
    t8 = upper_length * torch.sin(shoulder)
    t9 = torch.sin(shoulder + elbow)
    t10 = (t4 * 3.0 + lower_length * 2.0) * (t5 * 0.16666666666666666)
    t11 = (t8 * 2.0 + lower_length * t9) * (lower_mass * 4.905) + (elbow_rate * elbow_rate * t7 + 4.905 * (upper_mass * t8))
    t12 = 1.0 / (t4 * t5 + (0.3333333333333333 * (upper_mass * t1) + (t2 + lower_mass * t1)))
    t13 = t10 * t12
    t14 = shoulder_torque + (t6 * (shoulder_rate * elbow_rate) + t11 - shoulder_damping * shoulder_rate)
    t15 = elbow_torque + (4.905 * (t5 * t9) - t7 * (shoulder_rate * shoulder_rate) - elbow_damping * elbow_rate) - t13 * t14
    t16 = 1.0 / (t2 - t10 * t13) * t15
    xdot = _rows(x, (4,), shoulder_rate, elbow_rate, t12 * t14 - t13 * t16, t16)
    return xdot,


def jacobians(x, theta):
    shoulder = x[..., 0]
    elbow = x[..., 1]
    shoulder_rate = x[..., 2]
    elbow_rate = x[..., 3]
    upper_mass = theta[..., 0]
    upper_length = theta[..., 1]
    lower_mass = theta[..., 2]
    lower_length = theta[..., 3]
    shoulder_damping = theta[..., 4]
    elbow_damping = theta[..., 5]
    t1 = upper_length * upper_length
    t2 = lower_length * lower_length
    t3 = lower_mass * 0.3333333333333333
    t4 = t2 * t3
    t5s, t5c = torch.sin(elbow), torch.cos(elbow)
    t6 = upper_length * t5c
    t7 = lower_mass * lower_length
    t8 = upper_length * t7
    t9 = t5s * t8
    t10 = elbow_rate * elbow_rate
    t11 = t9 * 0.5
    t12s, t12c = torch.sin(shoulder), torch.cos(shoulder)
    t13 = upper_length * t12s
    t14 = shoulder + elbow
    t15s, t15c = torch.sin(t14), torch.cos(t14)
    t16 = shoulder_rate * shoulder_rate
    t17 = t6 * 3.0 + lower_length * 2.0
    t18 = t7 * 0.16666666666666666
    t19 = t17 * t18
    t20 = lower_length * t15s
    t21 = t13 * 2.0 + t20
    t22 = lower_mass * 4.905
    t23 = shoulder_rate * elbow_rate
    t24 = t9 * t23 + (t21 * t22 + (t10 * t11 + 4.905 * (upper_mass * t13))) - shoulder_damping * shoulder_rate
    t25 = 1.0 / (t6 * t7 + (0.3333333333333333 * (upper_mass * t1) + (t4 + lower_mass * t1)))
    t26 = t19 * t25
    t27 = 1.0 / (t4 - t19 * t26)
    t28 = t27 * (4.905 * (t7 * t15s) - t11 * t16 - elbow_damping * elbow_rate - t24 * t26)
    t29 = t24 * t25 - t26 * t28
    t30 = t26 * t27
    t31 = -t30
    t32 = t25 + t26 * t30
    t33 = upper_length * t12c
    t34 = lower_length * t15c
    t35 = 4.905 * (upper_mass * t33) + t22 * (2.0 * t33 + t34)
    t36 = 4.905 * (t7 * t15c)
    t37 = t27 * (t36 - t26 * t35)
    t38 = upper_length * t5s
    t39 = t5c * t8
    t40 = 0.5 * t39
    t41 = t7 * t38
    t42 = t18 * (3.0 * t38)
    t43 = t23 * t39 + (t10 * t40 + t22 * t34) + (t29 * t41 + t28 * t42)
    t44 = t27 * (t36 - t16 * t40 + t29 * t42 - t26 * t43)
    t45 = elbow_rate * t9 - shoulder_damping
    t46 = t27 * (t11 * (shoulder_rate + shoulder_rate) + t26 * t45)
    t47 = t11 * (elbow_rate + elbow_rate) + shoulder_rate * t9
    t48 = t27 * (elbow_damping + t26 * t47)
    t49 = t32 * t41 + t31 * t42
    t50 = t27 * (t32 * t42 - t26 * t49)
    t51 = t31 * t41 + t27 * t42
    t52 = t27 * (t31 * t42 - t26 * t51)
    t53 = t1 * 0.3333333333333333
    t54 = t13 * 4.905 - t29 * t53
    t55 = t27 * (t26 * t54)
    t56 = upper_length + upper_length
    t57 = t7 * t5s
    t58 = 0.5 * t57
    t59 = t5c * t7 + (lower_mass * t56 + 0.3333333333333333 * (upper_mass * t56))
    t60 = t18 * (t5c * 3.0)
    t61 = t23 * t57 + (t22 * (t12s * 2.0) + (t10 * t58 + 4.905 * (upper_mass * t12s)))
    t62 = t61 - (t29 * t59 + t28 * t60)
    t63 = t27 * (t16 * t58 + t29 * t60 + t26 * t62)
    t64 = 0.3333333333333333 * t2
    t65 = t5s * (upper_length * lower_length)
    t66 = 0.5 * t65
    t67 = lower_length * t6 + (t1 + t64)
    t68 = t17 * (lower_length * 0.16666666666666666)
    t69 = t23 * t65 + (t10 * t66 + 4.905 * t21) - (t29 * t67 + t28 * t68)
    t70 = 4.905 * t20 - t16 * t66 - (t29 * t68 + t28 * t64) - t26 * t69
    t71 = t27 * t70
    t72 = t3 * (lower_length + lower_length)
    t73 = t5s * (upper_length * lower_mass)
    t74 = 0.5 * t73
    t75 = t72 + lower_mass * t6
    t76 = 2.0 * t18 + t17 * (lower_mass * 0.16666666666666666)
    t77 = t23 * t73 + (t10 * t74 + t15s * t22) - (t29 * t75 + t28 * t76)
    t78 = 4.905 * (lower_mass * t15s) - t16 * t74 - (t29 * t76 + t28 * t72) - t26 * t77
    t79 = t27 * t78
    t80 = t27 * (shoulder_rate * t26)
    t81 = elbow_rate * t27
    t82 = t32 * t53
    t83 = t27 * (t26 * t82)
    t84 = t31 * t53
    t85 = t27 * (t26 * t84)
    t86 = t32 * t59 + t31 * t60
    t87 = t27 * (t26 * t86 - t32 * t60)
    t88 = t31 * t59 + t27 * t60
    t89 = t27 * (t26 * t88 - t31 * t60)
    t90 = t32 * t67 + t31 * t68
    t91 = t27 * (t26 * t90 - (t32 * t68 + t31 * t64))
    t92 = t31 * t67 + t27 * t68
    t93 = t27 * (t26 * t92 - (t31 * t68 + t27 * t64))
    t94 = t32 * t75 + t31 * t76
    t95 = t27 * (t26 * t94 - (t32 * t76 + t31 * t72))
    t96 = t31 * t75 + t27 * t76
    t97 = t27 * (t26 * t96 - (t31 * t76 + t27 * t72))
    a = _rows(x, (4,), shoulder_rate, elbow_rate, t29, t28)
    B = _rows(x, (4, 2), 0.0, 0.0, 0.0, 0.0, t32, t31, t31, t27)
    da_dx = _rows(x, (4, 4), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, t25 * t35 - t26 * t37, t25 * t43 - t26 * t44, t25 * t45 + t26 * t46, t25 * t47 + t26 * t48, t37, t44, -t46, -t48)
    dB_dx = _rows(x, (4, 2, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t25 * t49 - t26 * t50, 0.0, 0.0, 0.0, t25 * t51 - t26 * t52, 0.0, 0.0, 0.0, t50, 0.0, 0.0, 0.0, t52, 0.0, 0.0)
    da_dtheta = _rows(x, (4, 6), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t25 * t54 + t26 * t55, t25 * t62 + t26 * t63, t25 * t69 - t26 * t71, t25 * t77 - t26 * t79, -(shoulder_rate * t25 + t26 * t80), t26 * t81, -t55, -t63, t71, t79, t80, -t81)
    dB_dtheta = _rows(x, (4, 2, 6), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t25 * t82 + t26 * t83), -(t25 * t86 + t26 * t87), -(t25 * t90 + t26 * t91), -(t25 * t94 + t26 * t95), 0.0, 0.0, -(t25 * t84 + t26 * t85), -(t25 * t88 + t26 * t89), -(t25 * t92 + t26 * t93), -(t25 * t96 + t26 * t97), 0.0, 0.0, t83, t87, t91, t95, 0.0, 0.0, t85, t89, t93, t97, 0.0, 0.0)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    shoulder = x[..., 0]
    elbow = x[..., 1]
    shoulder_rate = x[..., 2]
    elbow_rate = x[..., 3]
    shoulder_torque = u[..., 0]
    elbow_torque = u[..., 1]
    costate_shoulder = costate[..., 0]
    costate_elbow = costate[..., 1]
    costate_shoulder_rate = costate[..., 2]
    costate_elbow_rate = costate[..., 3]
    upper_mass = theta[..., 0]
    upper_length = theta[..., 1]
    lower_mass = theta[..., 2]
    lower_length = theta[..., 3]
    shoulder_damping = theta[..., 4]
    elbow_damping = theta[..., 5]
    t1 = upper_length * upper_length
    t2 = lower_length * lower_length
    t3 = lower_mass * 0.3333333333333333
    t4 = t2 * t3
    t5s, t5c = torch.sin(elbow), torch.cos(elbow)
    t6 = upper_length * t5c
    t7 = lower_mass * lower_length
    t8 = upper_length * t7
    t9 = t5s * t8
    t10 = elbow_rate * elbow_rate
    t11 = t9 * 0.5
    t12s, t12c = torch.sin(shoulder), torch.cos(shoulder)
    t13 = upper_length * t12s
    t14 = shoulder + elbow
    t15s, t15c = torch.sin(t14), torch.cos(t14)
    t16 = shoulder_rate * shoulder_rate
    t17 = t6 * 3.0 + lower_length * 2.0
    t18 = t7 * 0.16666666666666666
    t19 = t17 * t18
    t20 = t13 * 2.0 + lower_length * t15s
    t21 = lower_mass * 4.905
    t22 = shoulder_rate * elbow_rate
    t23 = t9 * t22 + (t20 * t21 + (t10 * t11 + 4.905 * (upper_mass * t13))) - shoulder_damping * shoulder_rate
    t24 = 1.0 / (t6 * t7 + (0.3333333333333333 * (upper_mass * t1) + (t4 + lower_mass * t1)))
    t25 = t19 * t24
    t26 = 1.0 / (t4 - t19 * t25)
    t27 = shoulder_torque + t23
    t28 = elbow_torque + (4.905 * (t7 * t15s) - t11 * t16 - elbow_damping * elbow_rate) - t25 * t27
    t29 = t26 * t28
    t30 = t24 * t27 - t25 * t29
    t31 = t26 * (costate_elbow_rate - costate_shoulder_rate * t25)
    t32 = costate_shoulder_rate * t24 - t25 * t31
    t33 = t30 * t32
    t34 = t30 * t31 + t29 * t32
    t35 = 4.905 * t31
    t36 = t9 * t32
    t37 = t21 * t32
    t38 = 4.905 * t32
    t39 = 2.0 * t37 + upper_mass * t38
    t40 = t18 * t34
    t41 = t33 + t29 * t31
    t42 = 3.0 * t40 + t7 * t33
    t43 = 0.3333333333333333 * t33
    t44 = shoulder_rate * (t11 * t31)
    t45 = t15c * (t7 * t35 + lower_length * t37)
    t46 = t22 * t32 + 0.5 * (t10 * t32 - t16 * t31)
    t47 = elbow_rate * (t11 * t32)
    t48 = t5s * t46
    t49 = t15s * t35 - 0.16666666666666666 * (t17 * t34) - t6 * t33 + upper_length * t48
    t50 = 4.905 * (t20 * t32) - t1 * t33 + lower_length * t49 - 0.3333333333333333 * (t2 * t41)
    t51 = lower_length * (t3 * t41)
    t52 = upper_length * (upper_mass * t43 + lower_mass * t33)
    dH_dx = _rows(x, (4,), t45 + t12c * (upper_length * t39), t45 + t5c * (t8 * t46) + t5s * (upper_length * t42), costate_shoulder + elbow_rate * t36 - shoulder_damping * t32 - t44 - t44, t47 + (costate_elbow - elbow_damping * t31 + shoulder_rate * t36 + t47))
    dH_du = _rows(x, (2,), t32, t31)
    dH_dtheta = _rows(x, (6,), t13 * t38 - t1 * t43, t12s * t39 + t7 * t48 - t5c * t42 - t52 - t52, t50, t15s * t37 - 2.0 * t40 + lower_mass * t49 - t51 - t51, -(shoulder_rate * t32), -(elbow_rate * t31))
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    shoulder = x[..., 0]
    elbow = x[..., 1]
    shoulder_rate = x[..., 2]
    elbow_rate = x[..., 3]
    t1 = elbow * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = shoulder * 0.5
    t4s, t4c = torch.sin(t3), torch.cos(t3)
    t5 = 9.869604401089358 * (t4s * t4s) + (9.869604401089358 * (t2s * t2s) + (elbow_rate * elbow_rate * 0.1 + shoulder_rate * shoulder_rate * 0.1))
    t6 = 9.869604401089358 * t4s
    t7 = 9.869604401089358 * t2s
    t8 = shoulder_rate * 0.1
    t9 = elbow_rate * 0.1
    q = _rows(x, (), t5)
    dq_dx = _rows(x, (4,), 0.5 * ((t6 + t6) * t4c), 0.5 * ((t7 + t7) * t2c), t8 + t8, t9 + t9)
    return q, dq_dx,


def action_cost(u):
    shoulder_torque = u[..., 0]
    elbow_torque = u[..., 1]
    t1 = shoulder_torque * 0.3926009314658576
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 4.0 - torch.abs(shoulder_torque)
    t4 = 0.0003926009314658576 + 0.3926009314658576 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = elbow_torque * 0.7850056605671647
    t9s, t9c = torch.sin(t8), torch.cos(t8)
    t10 = 2.0 - torch.abs(elbow_torque)
    t11 = 0.0007850056605671647 + 0.7850056605671647 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t10)
    t12s, t12c = torch.sin(t11), torch.cos(t11)
    t13 = t12s * t12s
    t14 = t9s * t9s / t13
    t15 = 1.0 / (1.0 + t14)
    t16 = 0.6487798030986173 * t15
    t17 = 1.0 / t13
    t18 = t14 * t17
    t19 = t16 * t17
    t20 = t16 * t18
    t21 = t12s * t20
    t22 = t21 + t21
    t23 = 0.5 - 0.5 * torch.sign(-(t10 + 0.0005))
    t24 = torch.sign(elbow_torque)
    t25 = t9s * t19
    t26 = t25 + t25
    t27 = 1.0 / (1.0 + t7)
    t28 = 2.5944707568191583 * t27
    t29 = 1.0 / t6
    t30 = t7 * t29
    t31 = t28 * t29
    t32 = t28 * t30
    t33 = t5s * t32
    t34 = t33 + t33
    t35 = 0.5 - 0.5 * torch.sign(-(t3 + 0.0005))
    t36 = torch.sign(shoulder_torque)
    t37 = t2s * t31
    t38 = t37 + t37
    t39 = 0.3926009314658576 * t2c
    t40 = t2s * t39
    t41 = 0.3926009314658576 * (t35 * t36)
    t42 = t5c * t41
    t43 = t5s * t42
    t44 = t43 + t43
    t45 = t29 * (t40 + t40) + t30 * t44
    t46 = 2.5944707568191583 * (t45 * (t27 * t27))
    t47 = t44 * (t29 * t29)
    t48 = t5s * (t28 * (t29 * t45 + t7 * t47) - t30 * t46) - t32 * t42
    t49 = t31 * t39 + t2s * (t28 * t47 - t29 * t46)
    t50 = t36 * (t35 * (0.3926009314658576 * (t5c * (t48 + t48) + t34 * (t5s * t41)))) + 0.3926009314658576 * (t2c * (t49 + t49) - t38 * (0.3926009314658576 * t2s))
    t51 = 0.7850056605671647 * t9c
    t52 = t9s * t51
    t53 = 0.7850056605671647 * (t23 * t24)
    t54 = t12c * t53
    t55 = t12s * t54
    t56 = t55 + t55
    t57 = t17 * (t52 + t52) + t18 * t56
    t58 = 0.6487798030986173 * (t57 * (t15 * t15))
    t59 = t56 * (t17 * t17)
    t60 = t12s * (t16 * (t17 * t57 + t14 * t59) - t18 * t58) - t20 * t54
    t61 = t19 * t51 + t9s * (t16 * t59 - t17 * t58)
    t62 = t24 * (t23 * (0.7850056605671647 * (t12c * (t60 + t60) + t22 * (t12s * t53)))) + 0.7850056605671647 * (t9c * (t61 + t61) - t26 * (0.7850056605671647 * t9s))
    g = _rows(u, (), 2.5944707568191583 * torch.log1p(t7) + 0.6487798030986173 * torch.log1p(t14))
    dg_du = _rows(u, (2,), 0.3926009314658576 * (t34 * t5c) * t35 * t36 + 0.3926009314658576 * (t38 * t2c), 0.7850056605671647 * (t22 * t12c) * t23 * t24 + 0.7850056605671647 * (t26 * t9c))
    d2g_du2 = _rows(u, (2,), t50, t62)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_shoulder_torque = w[..., 0]
    w_elbow_torque = w[..., 1]
    u_optimal = _rows(w, (2,), torch.maximum(torch.full_like(w[:, 0], -4.0), torch.minimum(torch.full_like(w[:, 0], 4.0), 2.5471157092426933 * torch.atan(w_shoulder_torque * 0.4908738521234052))), torch.maximum(torch.full_like(w[:, 0], -2.0), torch.minimum(torch.full_like(w[:, 0], 2.0), 1.2738761645075303 * torch.atan(w_elbow_torque * 0.9817477042468103))))
    return u_optimal,


def optimal_input_cost(w):
    w_shoulder_torque = w[..., 0]
    w_elbow_torque = w[..., 1]
    t1 = 2.5944707568191583 * torch.log1p(0.24095713869847066 * (w_shoulder_torque * w_shoulder_torque)) + 0.6487798030986173 * torch.log1p(0.9638285547938826 * (w_elbow_torque * w_elbow_torque))
    g_optimal = _rows(w, (), t1)
    return g_optimal,


class _Dynamics(torch.autograd.Function):
    """xdot, and backward the Hamiltonian's gradient with the incoming gradient as costate: one reverse sweep."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, u, theta):
        return _dynamics(x, u, theta)[0]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, costate):
        x, u, theta = ctx.saved_tensors
        dH_dx, dH_du, dH_dtheta = hamiltonian_gradient(x, u, costate, theta)
        return dH_dx, dH_du, dH_dtheta.sum(0) if theta.ndim == 1 else dH_dtheta


def dynamics(x, u, theta):
    return _Dynamics.apply(x, u, theta),
