"""planar_quadrotor: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    pitch = x[..., 2]
    across_rate = x[..., 3]
    height_rate = x[..., 4]
    pitch_rate = x[..., 5]
    mass = theta[..., 0]
    inertia = theta[..., 1]
    arm = theta[..., 2]
    drag = theta[..., 3]
    t1s, t1c = torch.sin(pitch), torch.cos(pitch)
    t2 = 1.0 / mass
    t3 = arm * (1.0 / inertia)
    t4 = t1s * t2
    t5 = t1c * t2
    a = _rows(x, (6,), across_rate, height_rate, pitch_rate, (t1s * 4.76766 - drag * across_rate) * t2, (t1c * 4.76766 - mass * 9.81 - drag * height_rate) * t2, 0.0)
    B = _rows(x, (6, 2), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t4, t4, t5, t5, -t3, t3)
    return a, B,


def _dynamics(x, u, theta):
    pitch = x[..., 2]
    across_rate = x[..., 3]
    height_rate = x[..., 4]
    pitch_rate = x[..., 5]
    right = u[..., 0]
    left = u[..., 1]
    mass = theta[..., 0]
    inertia = theta[..., 1]
    arm = theta[..., 2]
    drag = theta[..., 3]
    t1s, t1c = torch.sin(pitch), torch.cos(pitch)
    t2 = 1.0 / mass
    t3 = t1c * 4.76766 - mass * 9.81 - drag * height_rate + (right * t1c + left * t1c)
    xdot = _rows(x, (6,), across_rate, height_rate, pitch_rate, t2 * (t1s * 4.76766 - drag * across_rate + (right * t1s + left * t1s)), t2 * t3, 1.0 / inertia * (arm * left - arm * right))
    return xdot,


def jacobians(x, theta):
    pitch = x[..., 2]
    across_rate = x[..., 3]
    height_rate = x[..., 4]
    pitch_rate = x[..., 5]
    mass = theta[..., 0]
    inertia = theta[..., 1]
    arm = theta[..., 2]
    drag = theta[..., 3]
    t1s, t1c = torch.sin(pitch), torch.cos(pitch)
    t2 = t1s * 4.76766
    t3 = t1c * 4.76766
    t4 = 1.0 / mass
    t5 = 1.0 / inertia
    t6 = (t2 - drag * across_rate) * t4
    t7 = (t3 - mass * 9.81 - drag * height_rate) * t4
    t8 = t1s * t4
    t9 = t1c * t4
    t10 = arm * t5
    t11 = -t10
    t12 = -(drag * t4)
    t13 = -t8
    t14 = -(t4 * t8)
    t15 = -(t4 * t9)
    a = _rows(x, (6,), across_rate, height_rate, pitch_rate, t6, t7, 0.0)
    B = _rows(x, (6, 2), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t8, t8, t9, t9, t11, t10)
    da_dx = _rows(x, (6, 6), 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, t3 * t4, t12, 0.0, 0.0, 0.0, 0.0, -(t2 * t4), 0.0, t12, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    dB_dx = _rows(x, (6, 2, 6), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t9, 0.0, 0.0, 0.0, 0.0, 0.0, t9, 0.0, 0.0, 0.0, 0.0, 0.0, t13, 0.0, 0.0, 0.0, 0.0, 0.0, t13, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    da_dtheta = _rows(x, (6, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t4 * t6), 0.0, 0.0, -(across_rate * t4), -(t4 * (9.81 + t7)), 0.0, 0.0, -(height_rate * t4), 0.0, 0.0, 0.0, 0.0)
    dB_dtheta = _rows(x, (6, 2, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t14, 0.0, 0.0, 0.0, t14, 0.0, 0.0, 0.0, t15, 0.0, 0.0, 0.0, t15, 0.0, 0.0, 0.0, 0.0, -(t5 * t11), -t5, 0.0, 0.0, -(t5 * t10), t5, 0.0)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    pitch = x[..., 2]
    across_rate = x[..., 3]
    height_rate = x[..., 4]
    right = u[..., 0]
    left = u[..., 1]
    costate_across = costate[..., 0]
    costate_height = costate[..., 1]
    costate_pitch = costate[..., 2]
    costate_across_rate = costate[..., 3]
    costate_height_rate = costate[..., 4]
    costate_pitch_rate = costate[..., 5]
    mass = theta[..., 0]
    inertia = theta[..., 1]
    arm = theta[..., 2]
    drag = theta[..., 3]
    t1s, t1c = torch.sin(pitch), torch.cos(pitch)
    t2 = 1.0 / mass
    t3 = 1.0 / inertia
    t4 = t1c * 4.76766 - mass * 9.81 - drag * height_rate + (right * t1c + left * t1c)
    t5 = costate_across_rate * t2
    t6 = costate_height_rate * t2
    t7 = costate_pitch_rate * t3
    t8 = t2 * (t1s * 4.76766 - drag * across_rate + (right * t1s + left * t1s)) * t5
    t9 = arm * t7
    t10 = t1c * t6
    t11 = t1s * t5
    t12 = t1c * (left * t5 + right * t5 + 4.76766 * t5) - t1s * (left * t6 + right * t6 + 4.76766 * t6)
    dH_dx = _rows(x, (6,), 0.0, 0.0, t12, costate_across - drag * t5, costate_height - drag * t6, costate_pitch)
    dH_du = _rows(x, (2,), t10 - t9 + t11, t9 + t10 + t11)
    dH_dtheta = _rows(x, (4,), -(t8 + t2 * t4 * t6 + 9.81 * t6), -(t3 * (arm * left - arm * right) * t7), left * t7 - right * t7, -(height_rate * t6 + across_rate * t5))
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    across = x[..., 0]
    height = x[..., 1]
    pitch = x[..., 2]
    across_rate = x[..., 3]
    height_rate = x[..., 4]
    pitch_rate = x[..., 5]
    t1 = pitch * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 0.1 * (height_rate * height_rate) + (0.1 * (across_rate * across_rate) + (across * across + height * height))
    t4 = t2s * 4.934802200544679
    t5 = pitch_rate * 0.02
    t6 = height_rate * 0.1
    t7 = across_rate * 0.1
    q = _rows(x, (), t2s * t2s * 4.934802200544679 + (0.02 * (pitch_rate * pitch_rate) + t3))
    dq_dx = _rows(x, (6,), across + across, height + height, 0.5 * ((t4 + t4) * t2c), t7 + t7, t6 + t6, t5 + t5)
    return q, dq_dx,


def action_cost(u):
    right = u[..., 0]
    left = u[..., 1]
    t1 = right * 0.6826581168165566
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 2.3 - torch.abs(right)
    t4 = 0.0006826581168165567 + 0.6826581168165566 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = left * 0.6826581168165566
    t9s, t9c = torch.sin(t8), torch.cos(t8)
    t10 = 2.3 - torch.abs(left)
    t11 = 0.0006826581168165567 + 0.6826581168165566 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t10)
    t12s, t12c = torch.sin(t11), torch.cos(t11)
    t13 = t12s * t12s
    t14 = t9s * t9s / t13
    t15 = 1.0 / (1.0 + t14)
    t16 = 0.9866486643502331 * t15
    t17 = 1.0 / t13
    t18 = t14 * t17
    t19 = t16 * t17
    t20 = t16 * t18
    t21 = t12s * t20
    t22 = t21 + t21
    t23 = 0.5 - 0.5 * torch.sign(-(t10 + 0.0005))
    t24 = torch.sign(left)
    t25 = t9s * t19
    t26 = t25 + t25
    t27 = 1.0 / (1.0 + t7)
    t28 = 0.9866486643502331 * t27
    t29 = 1.0 / t6
    t30 = t7 * t29
    t31 = t28 * t29
    t32 = t28 * t30
    t33 = t5s * t32
    t34 = t33 + t33
    t35 = 0.5 - 0.5 * torch.sign(-(t3 + 0.0005))
    t36 = torch.sign(right)
    t37 = t2s * t31
    t38 = t37 + t37
    t39 = 0.6826581168165566 * t2c
    t40 = t2s * t39
    t41 = 0.6826581168165566 * (t35 * t36)
    t42 = t5c * t41
    t43 = t5s * t42
    t44 = t43 + t43
    t45 = t29 * (t40 + t40) + t30 * t44
    t46 = 0.9866486643502331 * (t45 * (t27 * t27))
    t47 = t44 * (t29 * t29)
    t48 = t5s * (t28 * (t29 * t45 + t7 * t47) - t30 * t46) - t32 * t42
    t49 = t31 * t39 + t2s * (t28 * t47 - t29 * t46)
    t50 = t36 * (t35 * (0.6826581168165566 * (t5c * (t48 + t48) + t34 * (t5s * t41)))) + 0.6826581168165566 * (t2c * (t49 + t49) - t38 * (0.6826581168165566 * t2s))
    t51 = 0.6826581168165566 * t9c
    t52 = t9s * t51
    t53 = 0.6826581168165566 * (t23 * t24)
    t54 = t12c * t53
    t55 = t12s * t54
    t56 = t55 + t55
    t57 = t17 * (t52 + t52) + t18 * t56
    t58 = 0.9866486643502331 * (t57 * (t15 * t15))
    t59 = t56 * (t17 * t17)
    t60 = t12s * (t16 * (t17 * t57 + t14 * t59) - t18 * t58) - t20 * t54
    t61 = t19 * t51 + t9s * (t16 * t59 - t17 * t58)
    t62 = t24 * (t23 * (0.6826581168165566 * (t12c * (t60 + t60) + t22 * (t12s * t53)))) + 0.6826581168165566 * (t9c * (t61 + t61) - t26 * (0.6826581168165566 * t9s))
    g = _rows(u, (), 0.9866486643502331 * torch.log1p(t7) + 0.9866486643502331 * torch.log1p(t14))
    dg_du = _rows(u, (2,), 0.6826581168165566 * (t34 * t5c) * t35 * t36 + 0.6826581168165566 * (t38 * t2c), 0.6826581168165566 * (t22 * t12c) * t23 * t24 + 0.6826581168165566 * (t26 * t9c))
    d2g_du2 = _rows(u, (2,), t50, t62)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_right = w[..., 0]
    w_left = w[..., 1]
    u_optimal = _rows(w, (2,), torch.maximum(torch.full_like(w[:, 0], -2.3), torch.minimum(torch.full_like(w[:, 0], 2.3), 1.4648620962178045 * torch.atan(w_right * 0.7423423094493842))), torch.maximum(torch.full_like(w[:, 0], -2.3), torch.minimum(torch.full_like(w[:, 0], 2.3), 1.4648620962178045 * torch.atan(w_left * 0.7423423094493842))))
    return u_optimal,


def optimal_input_cost(w):
    w_right = w[..., 0]
    w_left = w[..., 1]
    t1 = 0.9866486643502331 * torch.log1p(0.5510721043986453 * (w_right * w_right)) + 0.9866486643502331 * torch.log1p(0.5510721043986453 * (w_left * w_left))
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
