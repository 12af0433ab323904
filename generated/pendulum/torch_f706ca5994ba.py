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
