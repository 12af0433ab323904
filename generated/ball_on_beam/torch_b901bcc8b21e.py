"""ball_on_beam: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    ball = x[..., 0]
    beam = x[..., 1]
    ball_rate = x[..., 2]
    beam_rate = x[..., 3]
    ball_mass = theta[..., 0]
    ball_radius = theta[..., 1]
    ball_inertia = theta[..., 2]
    beam_inertia = theta[..., 3]
    t1 = ball_mass * 9.81
    t2 = ball_mass * ball
    t3s, t3c = torch.sin(beam), torch.cos(beam)
    t4 = 1.0 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia))
    t5 = (beam_rate * beam_rate * t2 - t1 * t3s) * (1.0 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
    a = _rows(x, (4,), ball_rate, beam_rate, t5, -((t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * 2.0) * t4))
    B = _rows(x, (4, 1), 0.0, 0.0, 0.0, t4)
    return a, B,


def _dynamics(x, u, theta):
    ball = x[..., 0]
    beam = x[..., 1]
    ball_rate = x[..., 2]
    beam_rate = x[..., 3]
    torque = u[..., 0]
    ball_mass = theta[..., 0]
    ball_radius = theta[..., 1]
    ball_inertia = theta[..., 2]
    beam_inertia = theta[..., 3]
    t1 = ball_mass * 9.81
    t2 = ball_mass * ball
    t3s, t3c = torch.sin(beam), torch.cos(beam)
    t4 = (beam_rate * beam_rate * t2 - t1 * t3s) * (1.0 / (ball_mass + ball_inertia / (ball_radius * ball_radius)))
    t5 = 1.0 / (ball_mass * (ball * ball) + (ball_inertia + beam_inertia)) * (torque - (t3c * (ball * t1) + t2 * (ball_rate * beam_rate) * 2.0))
    xdot = _rows(x, (4,), ball_rate, beam_rate, t4, t5)
    return xdot,


def jacobians(x, theta):
    ball = x[..., 0]
    beam = x[..., 1]
    ball_rate = x[..., 2]
    beam_rate = x[..., 3]
    ball_mass = theta[..., 0]
    ball_radius = theta[..., 1]
    ball_inertia = theta[..., 2]
    beam_inertia = theta[..., 3]
    t1 = ball * ball
    t2 = ball_mass * 9.81
    t3 = beam_rate * beam_rate
    t4 = ball_mass * ball
    t5 = ball_radius * ball_radius
    t6 = ball_inertia / t5
    t7s, t7c = torch.sin(beam), torch.cos(beam)
    t8 = ball * t2
    t9 = ball_rate * beam_rate
    t10 = 1.0 / (ball_mass + t6)
    t11 = 1.0 / (ball_mass * t1 + (ball_inertia + beam_inertia))
    t12 = (t3 * t4 - t2 * t7s) * t10
    t13 = -((t7c * t8 + t4 * t9 * 2.0) * t11)
    t14 = ball_mass * (ball + ball)
    t15 = t2 * t7c
    t16 = -(t11 * (t7c * (ball * 9.81) + 2.0 * (ball * t9) + t1 * t13))
    t17 = 1.0 / t5
    t18 = -(t11 * t13)
    t19 = -(t11 * t11)
    a = _rows(x, (4,), ball_rate, beam_rate, t12, t13)
    B = _rows(x, (4, 1), 0.0, 0.0, 0.0, t11)
    da_dx = _rows(x, (4, 4), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, t10 * (ball_mass * t3), -(t10 * t15), 0.0, t10 * (t4 * (beam_rate + beam_rate)), -(t11 * (t15 + 2.0 * (ball_mass * t9) + t13 * t14)), t11 * (t7s * t8), -(t11 * (2.0 * (beam_rate * t4))), -(t11 * (2.0 * (ball_rate * t4))))
    dB_dx = _rows(x, (4, 1, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t11 * (t11 * t14)), 0.0, 0.0, 0.0)
    da_dtheta = _rows(x, (4, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t10 * (ball * t3 - 9.81 * t7s - t12), t10 * (t12 * ((ball_radius + ball_radius) * (t6 * t17))), -(t10 * (t12 * t17)), 0.0, t16, 0.0, t18, t18)
    dB_dtheta = _rows(x, (4, 1, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t11 * (t1 * t11)), 0.0, t19, t19)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    ball = x[..., 0]
    beam = x[..., 1]
    ball_rate = x[..., 2]
    beam_rate = x[..., 3]
    torque = u[..., 0]
    costate_ball = costate[..., 0]
    costate_beam = costate[..., 1]
    costate_ball_rate = costate[..., 2]
    costate_beam_rate = costate[..., 3]
    ball_mass = theta[..., 0]
    ball_radius = theta[..., 1]
    ball_inertia = theta[..., 2]
    beam_inertia = theta[..., 3]
    t1 = ball * ball
    t2 = ball_mass * 9.81
    t3 = beam_rate * beam_rate
    t4 = ball_mass * ball
    t5 = ball_radius * ball_radius
    t6 = ball_inertia / t5
    t7s, t7c = torch.sin(beam), torch.cos(beam)
    t8 = ball * t2
    t9 = ball_rate * beam_rate
    t10 = 1.0 / (ball_mass + t6)
    t11 = 1.0 / (ball_mass * t1 + (ball_inertia + beam_inertia))
    t12 = 1.0 / t5
    t13 = costate_ball_rate * t10
    t14 = costate_beam_rate * t11
    t15 = (t3 * t4 - t2 * t7s) * t10 * t13
    t16 = t11 * (torque - (t7c * t8 + t4 * t9 * 2.0)) * t14
    t17 = 2.0 * t14
    t18 = t4 * t17
    t19 = t7c * t14
    t20 = t3 * t13 - t9 * t17
    t21 = ball_radius * (t6 * t12 * t15)
    t22 = beam_rate * (t4 * t13)
    t23 = ball * t20 - (t15 + t1 * t16) - 9.81 * (ball * t19 + t7s * t13)
    t24 = ball * (ball_mass * t16)
    dH_dx = _rows(x, (4,), ball_mass * t20 - t2 * t19 - t24 - t24, t7s * (t8 * t14) - t7c * (t2 * t13), costate_ball - beam_rate * t18, t22 + (costate_beam - ball_rate * t18 + t22))
    dH_du = _rows(x, (1,), t14)
    dH_dtheta = _rows(x, (4,), t23, t21 + t21, -(t16 + t12 * t15), -t16)
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    ball = x[..., 0]
    beam = x[..., 1]
    ball_rate = x[..., 2]
    beam_rate = x[..., 3]
    t1 = 2.0 * (ball_rate * ball_rate) + (beam_rate * beam_rate * 0.1 + (beam * beam + ball * ball * 20.0))
    t2 = ball_rate * 2.0
    t3 = beam_rate * 0.1
    t4 = ball * 20.0
    q = _rows(x, (), t1)
    dq_dx = _rows(x, (4,), t4 + t4, beam + beam, t2 + t2, t3 + t3)
    return q, dq_dx,


def action_cost(u):
    torque = u[..., 0]
    t1 = torque * 1.5692270996952016
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 1.0 - torch.abs(torque)
    t4 = 0.0015692270996952016 + 1.5692270996952016 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 0.20284500965196023 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * torch.sign(-(t3 + 0.0005))
    t17 = torch.sign(torque)
    t18 = t2s * t12
    t19 = t18 + t18
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
    g = _rows(u, (), 0.20284500965196023 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 1.5692270996952016 * (t15 * t5c) * t16 * t17 + 1.5692270996952016 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_torque = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -1.0), torch.minimum(torch.full_like(w[:, 0], 1.0), 0.6372563921399489 * torch.atan(w_torque * 1.5707963267948966))))
    return u_optimal,


def optimal_input_cost(w):
    w_torque = w[..., 0]
    g_optimal = _rows(w, (), 0.20284500965196023 * torch.log1p(2.4674011002723395 * (w_torque * w_torque)))
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
