"""cart_double_pendulum: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    lower = x[..., 1]
    upper = x[..., 2]
    cart_rate = x[..., 3]
    lower_rate = x[..., 4]
    upper_rate = x[..., 5]
    cart_mass = theta[..., 0]
    lower_mass = theta[..., 1]
    lower_length = theta[..., 2]
    upper_mass = theta[..., 3]
    upper_length = theta[..., 4]
    cart_damping = theta[..., 5]
    hinge_damping = theta[..., 6]
    t1s, t1c = torch.sin(lower), torch.cos(lower)
    t2 = lower_mass * 0.5
    t3 = lower_length * 2.0
    t4 = lower + upper
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = upper_length * t5c
    t7 = upper_mass * 0.5
    t8 = lower_length * lower_length
    t9 = upper_length * upper_length * (upper_mass * 0.3333333333333333)
    t10s, t10c = torch.sin(upper), torch.cos(upper)
    t11 = lower_length * t10c
    t12 = upper_mass * upper_length
    t13 = upper_length * t5s
    t14 = lower_rate * upper_rate
    t15 = upper_rate * upper_rate
    t16 = t7 * t13
    t17 = lower_rate * lower_rate
    t18 = lower_length * t1s
    t19 = lower_length * t10s
    t20 = t19 * (upper_length * t7)
    t21 = t7 * (t6 + t1c * t3) + t2 * (lower_length * t1c)
    t22 = t6 * t7
    t23 = t14 * (upper_mass * t13) + (t15 * t16 + t17 * (upper_mass * t18 + (t16 + t2 * t18)))
    t24 = t23 - cart_damping * cart_rate
    t25 = (t13 + t3 * t1s) * (upper_mass * 4.905) + (t15 * t20 + 4.905 * (lower_mass * t18))
    t26 = 1.0 / (upper_mass + (cart_mass + lower_mass))
    t27 = t21 * t26
    t28 = t11 * t12 + (upper_mass * t8 + (t9 + 0.3333333333333333 * (lower_mass * t8))) - t21 * t27
    t29 = 1.0 / t28
    t30 = (t11 * 3.0 + upper_length * 2.0) * (t12 * 0.16666666666666666) - t22 * t27
    t31 = t22 * t26
    t32 = t29 * t30
    t33 = 1.0 / (t9 - (t22 * t31 + t30 * t32))
    t34 = t19 * (t12 * t14) + t25 - hinge_damping * lower_rate - t24 * t27
    t35 = 4.905 * (t12 * t5s) - t17 * t20 - hinge_damping * upper_rate - (t24 * t31 + t32 * t34)
    t36 = t33 * t35
    t37 = t29 * t34 - t32 * t36
    t38 = t33 * (t27 * t32 - t31)
    t39 = t27 * t29 + t32 * t38
    a = _rows(x, (6,), cart_rate, lower_rate, upper_rate, t24 * t26 - (t27 * t37 + t31 * t36), t37, t36)
    B = _rows(x, (6, 1), 0.0, 0.0, 0.0, t26 - (t31 * t38 - t27 * t39), -t39, t38)
    return a, B,


def _dynamics(x, u, theta):
    lower = x[..., 1]
    upper = x[..., 2]
    cart_rate = x[..., 3]
    lower_rate = x[..., 4]
    upper_rate = x[..., 5]
    force = u[..., 0]
    cart_mass = theta[..., 0]
    lower_mass = theta[..., 1]
    lower_length = theta[..., 2]
    upper_mass = theta[..., 3]
    upper_length = theta[..., 4]
    cart_damping = theta[..., 5]
    hinge_damping = theta[..., 6]
    t1s, t1c = torch.sin(lower), torch.cos(lower)
    t2 = lower_mass * 0.5
    t3 = lower_length * 2.0
    t4 = lower + upper
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = upper_length * t5c
    t7 = upper_mass * 0.5
    t8 = lower_length * lower_length
    t9 = upper_length * upper_length * (upper_mass * 0.3333333333333333)
    t10s, t10c = torch.sin(upper), torch.cos(upper)
    t11 = lower_length * t10c
    t12 = upper_mass * upper_length
    t13 = upper_length * t5s
    t14 = lower_rate * upper_rate
    t15 = upper_rate * upper_rate
    t16 = t7 * t13
    t17 = lower_rate * lower_rate
    t18 = lower_length * t1s
    t19 = lower_length * t10s
    t20 = t19 * (upper_length * t7)
    t21 = t7 * (t6 + t1c * t3) + t2 * (lower_length * t1c)
    t22 = t6 * t7
    t23 = t14 * (upper_mass * t13) + (t15 * t16 + t17 * (upper_mass * t18 + (t16 + t2 * t18)))
    t24 = (t13 + t3 * t1s) * (upper_mass * 4.905) + (t15 * t20 + 4.905 * (lower_mass * t18))
    t25 = 1.0 / (upper_mass + (cart_mass + lower_mass))
    t26 = t21 * t25
    t27 = t11 * t12 + (upper_mass * t8 + (t9 + 0.3333333333333333 * (lower_mass * t8))) - t21 * t26
    t28 = 1.0 / t27
    t29 = (t11 * 3.0 + upper_length * 2.0) * (t12 * 0.16666666666666666) - t22 * t26
    t30 = t22 * t25
    t31 = t28 * t29
    t32 = force + (t23 - cart_damping * cart_rate)
    t33 = t19 * (t12 * t14) + t24 - hinge_damping * lower_rate - t26 * t32
    t34 = 4.905 * (t12 * t5s) - t17 * t20 - hinge_damping * upper_rate - (t30 * t32 + t31 * t33)
    t35 = 1.0 / (t9 - (t22 * t30 + t29 * t31)) * t34
    t36 = t28 * t33 - t31 * t35
    xdot = _rows(x, (6,), cart_rate, lower_rate, upper_rate, t25 * t32 - (t26 * t36 + t30 * t35), t36, t35)
    return xdot,


def jacobians(x, theta):
    lower = x[..., 1]
    upper = x[..., 2]
    cart_rate = x[..., 3]
    lower_rate = x[..., 4]
    upper_rate = x[..., 5]
    cart_mass = theta[..., 0]
    lower_mass = theta[..., 1]
    lower_length = theta[..., 2]
    upper_mass = theta[..., 3]
    upper_length = theta[..., 4]
    cart_damping = theta[..., 5]
    hinge_damping = theta[..., 6]
    t1s, t1c = torch.sin(lower), torch.cos(lower)
    t2 = lower_mass * 0.5
    t3 = lower_length * 2.0
    t4 = lower + upper
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = upper_length * t5c
    t7 = upper_mass * 0.5
    t8 = lower_length * lower_length
    t9 = upper_length * upper_length
    t10 = upper_mass * 0.3333333333333333
    t11 = t9 * t10
    t12s, t12c = torch.sin(upper), torch.cos(upper)
    t13 = lower_length * t12c
    t14 = upper_mass * upper_length
    t15 = upper_length * t5s
    t16 = lower_rate * upper_rate
    t17 = upper_rate * upper_rate
    t18 = t7 * t15
    t19 = lower_rate * lower_rate
    t20 = lower_length * t1s
    t21 = lower_length * t12s
    t22 = upper_length * t7
    t23 = t21 * t22
    t24 = t6 + t1c * t3
    t25 = lower_length * t1c
    t26 = t2 * t25
    t27 = t7 * t24 + t26
    t28 = t6 * t7
    t29 = t13 * 3.0 + upper_length * 2.0
    t30 = t14 * 0.16666666666666666
    t31 = t2 * t20
    t32 = upper_mass * t20 + (t18 + t31)
    t33 = upper_mass * t15
    t34 = t16 * t33 + (t17 * t18 + t19 * t32) - cart_damping * cart_rate
    t35 = t15 + t3 * t1s
    t36 = upper_mass * 4.905
    t37 = t14 * t16
    t38 = t21 * t37 + (t35 * t36 + (t17 * t23 + 4.905 * (lower_mass * t20))) - hinge_damping * lower_rate
    t39 = 1.0 / (upper_mass + (cart_mass + lower_mass))
    t40 = t27 * t39
    t41 = t13 * t14 + (upper_mass * t8 + (t11 + 0.3333333333333333 * (lower_mass * t8))) - t27 * t40
    t42 = 1.0 / t41
    t43 = t29 * t30 - t28 * t40
    t44 = t28 * t39
    t45 = t42 * t43
    t46 = 1.0 / (t11 - (t28 * t44 + t43 * t45))
    t47 = t38 - t34 * t40
    t48 = 4.905 * (t14 * t5s) - t19 * t23 - hinge_damping * upper_rate - (t34 * t44 + t45 * t47)
    t49 = t46 * t48
    t50 = t42 * t47 - t45 * t49
    t51 = t34 * t39 - (t40 * t50 + t44 * t49)
    t52 = t46 * (t40 * t45 - t44)
    t53 = t40 * t42 + t45 * t52
    t54 = t39 - (t44 * t52 - t40 * t53)
    t55 = -t53
    t56 = t31 + t7 * t35
    t57 = t17 * t28
    t58 = t16 * (upper_mass * t6)
    t59 = 4.905 * (t5c * t14)
    t60 = t18 * t49
    t61 = t58 + (t57 + t19 * (upper_mass * t25 + (t26 + t28))) + (t50 * t56 + t60)
    t62 = t18 * t51
    t63 = 4.905 * (lower_mass * t25) + t24 * t36 + t51 * t56 - t40 * t61
    t64 = t46 * (t59 + t62 - (t44 * t61 + t45 * t63))
    t65 = t42 * t63 - t45 * t64
    t66 = t13 * t22
    t67 = t14 * t21
    t68 = t30 * (t21 * 3.0)
    t69 = t58 + (t57 + t19 * t28) + (t60 + t18 * t50)
    t70 = t13 * t37 + (t17 * t66 + t6 * t36) + (t62 + t50 * t67 + t49 * t68)
    t71 = t70 - t40 * t69
    t72 = t59 - t19 * t66 + (t62 + t50 * t68) - (t44 * t69 + t45 * t71)
    t73 = t46 * t72
    t74 = t42 * t71 - t45 * t73
    t75 = cart_damping * t40
    t76 = t46 * (cart_damping * t44 - t45 * t75)
    t77 = t42 * t75 - t45 * t76
    t78 = lower_rate + lower_rate
    t79 = t32 * t78 + upper_rate * t33
    t80 = t21 * (upper_rate * t14) - hinge_damping - t40 * t79
    t81 = t46 * (t23 * t78 + (t44 * t79 + t45 * t80))
    t82 = t42 * t80 + t45 * t81
    t83 = upper_rate + upper_rate
    t84 = t18 * t83 + lower_rate * t33
    t85 = t23 * t83 + t21 * (lower_rate * t14) - t40 * t84
    t86 = t46 * (hinge_damping + (t44 * t84 + t45 * t85))
    t87 = t42 * t85 + t45 * t86
    t88 = t18 * t52
    t89 = t55 * t56 + t88
    t90 = t18 * t54
    t91 = t54 * t56 - t40 * t89
    t92 = t46 * (t90 - (t44 * t89 + t45 * t91))
    t93 = t42 * t91 - t45 * t92
    t94 = t88 + t18 * t55
    t95 = t90 + t55 * t67 + t52 * t68 - t40 * t94
    t96 = t46 * (t90 + t55 * t68 - (t44 * t94 + t45 * t95))
    t97 = t42 * t95 - t45 * t96
    t98 = t40 * t51
    t99 = t46 * (t44 * t51 - t45 * t98)
    t100 = t42 * t98 - t45 * t99
    t101 = 0.5 * t25
    t102 = t8 * 0.3333333333333333
    t103 = t19 * (0.5 * t20) - (t51 + t50 * t101)
    t104 = t20 * 4.905 - (t51 * t101 + t50 * t102) - t40 * t103
    t105 = t46 * (t44 * t103 + t45 * t104)
    t106 = t42 * t104 + t45 * t105
    t107 = lower_length + lower_length
    t108 = t12s * t22
    t109 = t7 * (t1c * 2.0) + t1c * t2
    t110 = t12c * t14 + (0.3333333333333333 * (lower_mass * t107) + upper_mass * t107)
    t111 = t30 * (t12c * 3.0)
    t112 = t12s * t37 + (t36 * (2.0 * t1s) + (t17 * t108 + 4.905 * (lower_mass * t1s)))
    t113 = t19 * (t2 * t1s + upper_mass * t1s) - t50 * t109
    t114 = t112 - (t51 * t109 + t50 * t110 + t49 * t111) - t40 * t113
    t115 = t46 * (t19 * t108 + t50 * t111 + (t44 * t113 + t45 * t114))
    t116 = t42 * t114 + t45 * t115
    t117 = 0.3333333333333333 * t9
    t118 = 0.5 * t15
    t119 = t21 * (upper_length * 0.5)
    t120 = 0.5 * t24
    t121 = upper_length * t13 + (t8 + t117)
    t122 = 0.5 * t6
    t123 = t29 * (upper_length * 0.16666666666666666)
    t124 = t15 * t16 + (t17 * t118 + t19 * (t20 + t118)) - (t51 + t50 * t120 + t49 * t122)
    t125 = t21 * (upper_length * t16) + (t17 * t119 + 4.905 * t35) - (t51 * t120 + t50 * t121 + t49 * t123)
    t126 = t15 * 4.905 - t19 * t119 - (t51 * t122 + t50 * t123 + t49 * t117)
    t127 = t125 - t40 * t124
    t128 = t46 * (t126 - (t44 * t124 + t45 * t127))
    t129 = t42 * t127 - t45 * t128
    t130 = t10 * (upper_length + upper_length)
    t131 = t7 * t5s
    t132 = t7 * t21
    t133 = t5c * t7
    t134 = t130 + upper_mass * t13
    t135 = 2.0 * t30 + t29 * (upper_mass * 0.16666666666666666)
    t136 = upper_mass * t5s
    t137 = t16 * t136 + (t17 * t131 + t19 * t131) - (t50 * t133 + t49 * t133)
    t138 = t51 * t133
    t139 = t21 * (upper_mass * t16) + (t17 * t132 + t5s * t36) - (t138 + t50 * t134 + t49 * t135)
    t140 = t139 - t40 * t137
    t141 = 4.905 * t136 - t19 * t132 - (t138 + t50 * t135 + t49 * t130) - (t44 * t137 + t45 * t140)
    t142 = t46 * t141
    t143 = t42 * t140 - t45 * t142
    t144 = cart_rate * t40
    t145 = t46 * (cart_rate * t44 - t45 * t144)
    t146 = t42 * t144 - t45 * t145
    t147 = t46 * (lower_rate * t45 - upper_rate)
    t148 = lower_rate * t42 + t45 * t147
    t149 = t40 * t54
    t150 = t46 * (t44 * t54 - t45 * t149)
    t151 = t42 * t149 - t45 * t150
    t152 = t54 + t55 * t101
    t153 = t40 * t152 - (t54 * t101 + t55 * t102)
    t154 = t46 * (t44 * t152 - t45 * t153)
    t155 = t42 * t153 - t45 * t154
    t156 = t55 * t109
    t157 = t40 * t156 - (t54 * t109 + t55 * t110 + t52 * t111)
    t158 = t46 * (t55 * t111 + (t45 * t157 - t44 * t156))
    t159 = t42 * t157 + t45 * t158
    t160 = t54 + t55 * t120 + t52 * t122
    t161 = t40 * t160 - (t54 * t120 + t55 * t121 + t52 * t123)
    t162 = t54 * t122 + t55 * t123 + t52 * t117 + (t45 * t161 - t44 * t160)
    t163 = t46 * t162
    t164 = t42 * t161 + t45 * t163
    t165 = t55 * t133 + t52 * t133
    t166 = t54 * t133
    t167 = t40 * t165 - (t166 + t55 * t134 + t52 * t135)
    t168 = t46 * (t166 + t55 * t135 + t52 * t130 + (t45 * t167 - t44 * t165))
    t169 = t42 * t167 + t45 * t168
    a = _rows(x, (6,), cart_rate, lower_rate, upper_rate, t51, t50, t49)
    B = _rows(x, (6, 1), 0.0, 0.0, 0.0, t54, t55, t52)
    da_dx = _rows(x, (6, 6), 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, t39 * t61 - (t40 * t65 + t44 * t64), t39 * t69 - (t40 * t74 + t44 * t73), -(cart_damping * t39 + (t40 * t77 + t44 * t76)), t39 * t79 - (t40 * t82 - t44 * t81), t39 * t84 - (t40 * t87 - t44 * t86), 0.0, t65, t74, t77, t82, t87, 0.0, t64, t73, t76, -t81, -t86)
    dB_dx = _rows(x, (6, 1, 6), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t39 * t89 - (t40 * t93 + t44 * t92), t39 * t94 - (t40 * t97 + t44 * t96), 0.0, 0.0, 0.0, 0.0, t93, t97, 0.0, 0.0, 0.0, 0.0, t92, t96, 0.0, 0.0, 0.0)
    da_dtheta = _rows(x, (6, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t39 * t51 + (t40 * t100 + t44 * t99)), t39 * t103 - (t40 * t106 - t44 * t105), t39 * t113 - (t40 * t116 - t44 * t115), t39 * t124 - (t40 * t129 + t44 * t128), t39 * t137 - (t40 * t143 + t44 * t142), -(cart_rate * t39 + (t40 * t146 + t44 * t145)), t40 * t148 - t44 * t147, t100, t106, t116, t129, t143, t146, -t148, t99, -t105, -t115, t128, t142, t145, t147)
    dB_dtheta = _rows(x, (6, 1, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t39 * t54 + (t40 * t151 + t44 * t150)), -(t39 * t152 + (t40 * t155 + t44 * t154)), -(t39 * t156 + (t40 * t159 - t44 * t158)), -(t39 * t160 + (t40 * t164 - t44 * t163)), -(t39 * t165 + (t40 * t169 - t44 * t168)), 0.0, 0.0, t151, t155, t159, t164, t169, 0.0, 0.0, t150, t154, -t158, -t163, -t168, 0.0, 0.0)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    lower = x[..., 1]
    upper = x[..., 2]
    cart_rate = x[..., 3]
    lower_rate = x[..., 4]
    upper_rate = x[..., 5]
    force = u[..., 0]
    costate_cart = costate[..., 0]
    costate_lower = costate[..., 1]
    costate_upper = costate[..., 2]
    costate_cart_rate = costate[..., 3]
    costate_lower_rate = costate[..., 4]
    costate_upper_rate = costate[..., 5]
    cart_mass = theta[..., 0]
    lower_mass = theta[..., 1]
    lower_length = theta[..., 2]
    upper_mass = theta[..., 3]
    upper_length = theta[..., 4]
    cart_damping = theta[..., 5]
    hinge_damping = theta[..., 6]
    t1s, t1c = torch.sin(lower), torch.cos(lower)
    t2 = lower_mass * 0.5
    t3 = lower_length * 2.0
    t4 = lower + upper
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = upper_length * t5c
    t7 = upper_mass * 0.5
    t8 = lower_length * lower_length
    t9 = upper_length * upper_length
    t10 = upper_mass * 0.3333333333333333
    t11 = t9 * t10
    t12s, t12c = torch.sin(upper), torch.cos(upper)
    t13 = lower_length * t12c
    t14 = upper_mass * upper_length
    t15 = upper_length * t5s
    t16 = lower_rate * upper_rate
    t17 = upper_rate * upper_rate
    t18 = t7 * t15
    t19 = lower_rate * lower_rate
    t20 = lower_length * t1s
    t21 = lower_length * t12s
    t22 = upper_length * t7
    t23 = t21 * t22
    t24 = t6 + t1c * t3
    t25 = lower_length * t1c
    t26 = t7 * t24 + t2 * t25
    t27 = t6 * t7
    t28 = t13 * 3.0 + upper_length * 2.0
    t29 = t14 * 0.16666666666666666
    t30 = upper_mass * t20 + (t18 + t2 * t20)
    t31 = upper_mass * t15
    t32 = t15 + t3 * t1s
    t33 = upper_mass * 4.905
    t34 = t14 * t16
    t35 = t21 * t34 + (t32 * t33 + (t17 * t23 + 4.905 * (lower_mass * t20))) - hinge_damping * lower_rate
    t36 = 1.0 / (upper_mass + (cart_mass + lower_mass))
    t37 = t26 * t36
    t38 = t13 * t14 + (upper_mass * t8 + (t11 + 0.3333333333333333 * (lower_mass * t8))) - t26 * t37
    t39 = 1.0 / t38
    t40 = t28 * t29 - t27 * t37
    t41 = t27 * t36
    t42 = t39 * t40
    t43 = 1.0 / (t11 - (t27 * t41 + t40 * t42))
    t44 = force + (t16 * t31 + (t17 * t18 + t19 * t30) - cart_damping * cart_rate)
    t45 = t35 - t37 * t44
    t46 = 4.905 * (t14 * t5s) - t19 * t23 - hinge_damping * upper_rate - (t41 * t44 + t42 * t45)
    t47 = t43 * t46
    t48 = t39 * t45 - t42 * t47
    t49 = t36 * t44 - (t37 * t48 + t41 * t47)
    t50 = costate_lower_rate - costate_cart_rate * t37
    t51 = t43 * (costate_upper_rate - (costate_cart_rate * t41 + t42 * t50))
    t52 = t39 * t50 - t42 * t51
    t53 = costate_cart_rate * t36 - (t37 * t52 + t41 * t51)
    t54 = t49 * t53
    t55 = t48 * t52
    t56 = t49 * t52 + t48 * t53
    t57 = t49 * t51 + t47 * t53
    t58 = t48 * t51 + t47 * t52
    t59 = 4.905 * t51
    t60 = t21 * t52
    t61 = t33 * t52
    t62 = 4.905 * t52
    t63 = t17 * t52 - t19 * t51
    t64 = t14 * t60 + t31 * t53
    t65 = t16 * t53
    t66 = t19 * t53
    t67 = t20 * t66
    t68 = lower_mass * t62 + upper_mass * t66 + t2 * t66
    t69 = t66 + t17 * t53
    t70 = t29 * t58
    t71 = t55 + t47 * t51
    t72 = 3.0 * t70 + t14 * t55
    t73 = t5s * t59 + t16 * t60 - 0.16666666666666666 * (t28 * t58) - t13 * t55
    t74 = 0.3333333333333333 * t55
    t75 = t2 * t56
    t76 = t7 * t56
    t77 = t7 * t57 + t76
    t78 = t34 * t52 + t22 * t63
    t79 = t21 * t63
    t80 = lower_rate * (t30 * t53 - t23 * t51)
    t81 = t61 + upper_mass * t65 + t7 * t69
    t82 = upper_rate * (t23 * t52 + t18 * t53)
    t83 = 4.905 * (t32 * t52) + t15 * t65 + t67 - t8 * t55 - t54 + upper_length * t73
    t84 = upper_length * (t10 * t71)
    t85 = t7 * t79 - 2.0 * t70 + t5s * t81 + upper_mass * t73 - t84 - t84
    t86 = lower_length * (upper_mass * t55 + lower_mass * t74)
    t87 = t12s * t78 - t1c * t75 + t1s * t68 - t12c * t72 - t86 - t86
    t88 = t83 - 0.3333333333333333 * (t9 * t71) + 0.5 * (upper_length * t79 - (t6 * t57 + t24 * t56) + t15 * t69)
    t89 = t5c * (t14 * t59 + upper_length * t81) + t5s * (upper_length * t77)
    t90 = t1c * (t3 * t61 + lower_length * t68) + t89 + t1s * (lower_length * t75 + t3 * t76)
    dH_dx = _rows(x, (6,), 0.0, t90, t12c * (lower_length * t78) + t12s * (lower_length * t72) + t89, costate_cart - cart_damping * t53, t80 + (costate_lower - hinge_damping * t52 + t80) + upper_rate * t64, t82 + (costate_upper - hinge_damping * t51 + t82) + lower_rate * t64)
    dH_du = _rows(x, (1,), t53)
    dH_dtheta = _rows(x, (7,), -t54, t20 * t62 - t8 * t74 - t54 + 0.5 * (t67 - t25 * t56), t87 + 2.0 * (t1s * t61 - t1c * t76), t88, t85 - t5c * t77, -(cart_rate * t53), -(upper_rate * t51 + lower_rate * t52))
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    cart = x[..., 0]
    lower = x[..., 1]
    upper = x[..., 2]
    cart_rate = x[..., 3]
    lower_rate = x[..., 4]
    upper_rate = x[..., 5]
    t1 = lower * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = t1 + upper * 0.5
    t4s, t4c = torch.sin(t3), torch.cos(t3)
    t5 = lower_rate + upper_rate
    t6 = 9.869604401089358 * (t2s * t2s) + (0.2 * (cart_rate * cart_rate) + (10.0 * (cart * cart) + lower_rate * lower_rate * 0.02))
    t7 = 0.02 * t5
    t8 = t7 + t7
    t9 = 9.869604401089358 * t4s
    t10 = (t9 + t9) * t4c
    t11 = 9.869604401089358 * t2s
    t12 = cart_rate * 0.2
    t13 = cart * 10.0
    t14 = lower_rate * 0.02
    q = _rows(x, (), 0.02 * (t5 * t5) + (9.869604401089358 * (t4s * t4s) + t6))
    dq_dx = _rows(x, (6,), t13 + t13, 0.5 * (t10 + (t11 + t11) * t2c), 0.5 * t10, t12 + t12, t14 + (t8 + t14), t8)
    return q, dq_dx,


def action_cost(u):
    force = u[..., 0]
    t1 = force * 0.07853588954526756
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 20.0 - torch.abs(force)
    t4 = 7.853588954526757e-05 + 0.07853588954526756 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 32.42439990448637 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * torch.sign(-(t3 + 0.0005))
    t17 = torch.sign(force)
    t18 = t2s * t12
    t19 = t18 + t18
    t20 = 0.07853588954526756 * t2c
    t21 = t2s * t20
    t22 = 0.07853588954526756 * (t16 * t17)
    t23 = t5c * t22
    t24 = t5s * t23
    t25 = t24 + t24
    t26 = t10 * (t21 + t21) + t11 * t25
    t27 = 32.42439990448637 * (t26 * (t8 * t8))
    t28 = t25 * (t10 * t10)
    t29 = t5s * (t9 * (t10 * t26 + t7 * t28) - t11 * t27) - t13 * t23
    t30 = t12 * t20 + t2s * (t9 * t28 - t10 * t27)
    t31 = t17 * (t16 * (0.07853588954526756 * (t5c * (t29 + t29) + t15 * (t5s * t22)))) + 0.07853588954526756 * (t2c * (t30 + t30) - t19 * (0.07853588954526756 * t2s))
    g = _rows(u, (), 32.42439990448637 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 0.07853588954526756 * (t15 * t5c) * t16 * t17 + 0.07853588954526756 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_force = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -20.0), torch.minimum(torch.full_like(w[:, 0], 20.0), 12.733032067123995 * torch.atan(w_force * 0.19634954084936207))))
    return u_optimal,


def optimal_input_cost(w):
    w_force = w[..., 0]
    g_optimal = _rows(w, (), 32.42439990448637 * torch.log1p(0.038553142191755305 * (w_force * w_force)))
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
