"""pendulum: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    angle = x[..., 0]
    angle_rate = x[..., 1]
    mass = theta[..., 0]
    length = theta[..., 1]
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333))
    a = _rows(x, (2,), angle_rate, torch.sin(angle) * (4.905 * (mass * length)) * t1)
    B = _rows(x, (2, 1), 0.0, t1)
    return a, B,


def _dynamics(x, u, theta):
    angle = x[..., 0]
    angle_rate = x[..., 1]
    torque = u[..., 0]
    mass = theta[..., 0]
    length = theta[..., 1]
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333)) * (torque + torch.sin(angle) * (4.905 * (mass * length)))
    xdot = _rows(x, (2,), angle_rate, t1)
    return xdot,


def jacobians(x, theta):
    angle = x[..., 0]
    angle_rate = x[..., 1]
    mass = theta[..., 0]
    length = theta[..., 1]
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = torch.sin(angle), torch.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    t6 = t3s * t4 * t5
    t7 = 0.3333333333333333 * t1
    t8 = t2 * (length + length)
    a = _rows(x, (2,), angle_rate, t6)
    B = _rows(x, (2, 1), 0.0, t5)
    da_dx = _rows(x, (2, 2), 0.0, 1.0, t5 * (t4 * t3c), 0.0)
    dB_dx = _rows(x, (2, 1, 2), 0.0, 0.0, 0.0, 0.0)
    da_dtheta = _rows(x, (2, 2), 0.0, 0.0, t5 * (t3s * (length * 4.905) - t6 * t7), t5 * (t3s * (mass * 4.905) - t6 * t8))
    dB_dtheta = _rows(x, (2, 1, 2), 0.0, 0.0, -(t5 * (t5 * t7)), -(t5 * (t5 * t8)))
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    angle = x[..., 0]
    torque = u[..., 0]
    costate_angle = costate[..., 0]
    costate_angle_rate = costate[..., 1]
    mass = theta[..., 0]
    length = theta[..., 1]
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = torch.sin(angle), torch.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    t6 = costate_angle_rate * t5
    t7 = t5 * (torque + t3s * t4) * t6
    t8 = 4.905 * (t3s * t6)
    t9 = length * (t2 * t7)
    dH_dx = _rows(x, (2,), t3c * (t4 * t6), costate_angle)
    dH_du = _rows(x, (1,), t6)
    dH_dtheta = _rows(x, (2,), length * t8 - 0.3333333333333333 * (t1 * t7), mass * t8 - t9 - t9)
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    angle = x[..., 0]
    angle_rate = x[..., 1]
    t1 = angle * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 9.869604401089358 * t2s
    t4 = angle_rate * 0.1
    q = _rows(x, (), 0.1 * (angle_rate * angle_rate) + 9.869604401089358 * (t2s * t2s))
    dq_dx = _rows(x, (2,), 0.5 * ((t3 + t3) * t2c), t4 + t4)
    return q, dq_dx,


def action_cost(u):
    torque = u[..., 0]
    t1 = torque * 0.62806730379644
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 2.5 - torch.abs(torque)
    t4 = 0.0006280673037964401 + 0.62806730379644 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 3.1675535036185845 * t8
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
    g = _rows(u, (), 3.1675535036185845 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 0.62806730379644 * (t15 * t5c) * t16 * t17 + 0.62806730379644 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_torque = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -2.5), torch.minimum(torch.full_like(w[:, 0], 2.5), 1.592186050691321 * torch.atan(w_torque * 0.25132741228718347))))
    return u_optimal,


def optimal_input_cost(w):
    w_torque = w[..., 0]
    g_optimal = _rows(w, (), 3.1675535036185845 * torch.log1p(0.0631654681669719 * (w_torque * w_torque)))
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
