"""reaction_wheel: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    pendulum = x[..., 0]
    pendulum_rate = x[..., 2]
    wheel_rate = x[..., 3]
    pendulum_mass = theta[..., 0]
    wheel_mass = theta[..., 1]
    length = theta[..., 2]
    centre = theta[..., 3]
    pendulum_inertia = theta[..., 4]
    wheel_inertia = theta[..., 5]
    wheel_damping = theta[..., 6]
    t1 = torch.sin(pendulum) * (9.81 * (pendulum_mass * centre + wheel_mass * length))
    t2 = 1.0 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
    t3 = wheel_inertia * t2
    t4 = 1.0 / (wheel_inertia - wheel_inertia * t3)
    t5 = t4 * (wheel_damping * wheel_rate + t1 * t3)
    a = _rows(x, (4,), pendulum_rate, wheel_rate, t1 * t2 + t3 * t5, -t5)
    B = _rows(x, (4, 1), 0.0, 0.0, -(t3 * t4), t4)
    return a, B,


def _dynamics(x, u, theta):
    pendulum = x[..., 0]
    pendulum_rate = x[..., 2]
    wheel_rate = x[..., 3]
    torque = u[..., 0]
    pendulum_mass = theta[..., 0]
    wheel_mass = theta[..., 1]
    length = theta[..., 2]
    centre = theta[..., 3]
    pendulum_inertia = theta[..., 4]
    wheel_inertia = theta[..., 5]
    wheel_damping = theta[..., 6]
    t1 = torch.sin(pendulum) * (9.81 * (pendulum_mass * centre + wheel_mass * length))
    t2 = 1.0 / (wheel_mass * (length * length) + (pendulum_mass * (centre * centre) + (pendulum_inertia + wheel_inertia)))
    t3 = wheel_inertia * t2
    t4 = 1.0 / (wheel_inertia - wheel_inertia * t3) * (torque - wheel_damping * wheel_rate - t1 * t3)
    xdot = _rows(x, (4,), pendulum_rate, wheel_rate, t1 * t2 - t3 * t4, t4)
    return xdot,


def jacobians(x, theta):
    pendulum = x[..., 0]
    pendulum_rate = x[..., 2]
    wheel_rate = x[..., 3]
    pendulum_mass = theta[..., 0]
    wheel_mass = theta[..., 1]
    length = theta[..., 2]
    centre = theta[..., 3]
    pendulum_inertia = theta[..., 4]
    wheel_inertia = theta[..., 5]
    wheel_damping = theta[..., 6]
    t1 = centre * centre
    t2 = length * length
    t3s, t3c = torch.sin(pendulum), torch.cos(pendulum)
    t4 = 9.81 * (pendulum_mass * centre + wheel_mass * length)
    t5 = t3s * t4
    t6 = 1.0 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
    t7 = wheel_inertia * t6
    t8 = 1.0 / (wheel_inertia - wheel_inertia * t7)
    t9 = t8 * (wheel_damping * wheel_rate + t5 * t7)
    t10 = t5 * t6 + t7 * t9
    t11 = -t9
    t12 = -(t7 * t8)
    t13 = t4 * t3c
    t14 = t8 * (t7 * t13)
    t15 = wheel_damping * t8
    t16 = t3s * (centre * 9.81) - t1 * t10
    t17 = t8 * (t7 * t16)
    t18 = t3s * (length * 9.81) - t2 * t10
    t19 = t8 * (t7 * t18)
    t20 = wheel_mass * (length + length)
    t21 = t3s * (wheel_mass * 9.81) - t10 * t20
    t22 = t8 * (t7 * t21)
    t23 = pendulum_mass * (centre + centre)
    t24 = t3s * (pendulum_mass * 9.81) - t10 * t23
    t25 = t8 * (t7 * t24)
    t26 = t8 * (t7 * t10)
    t27 = t10 + t11
    t28 = t8 * (t7 * t27 - t27)
    t29 = wheel_rate * t8
    t30 = t1 * t12
    t31 = t8 * (t7 * t30)
    t32 = t2 * t12
    t33 = t8 * (t7 * t32)
    t34 = t12 * t20
    t35 = t8 * (t7 * t34)
    t36 = t12 * t23
    t37 = t8 * (t7 * t36)
    t38 = t8 * (t7 * t12)
    t39 = t12 + t8
    t40 = t8 * (t7 * t39 - t39)
    a = _rows(x, (4,), pendulum_rate, wheel_rate, t10, t11)
    B = _rows(x, (4, 1), 0.0, 0.0, t12, t8)
    da_dx = _rows(x, (4, 4), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, t6 * t13 + t7 * t14, 0.0, 0.0, t7 * t15, -t14, 0.0, 0.0, -t15)
    dB_dx = _rows(x, (4, 1, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    da_dtheta = _rows(x, (4, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t6 * t16 + t7 * t17, t6 * t18 + t7 * t19, t6 * t21 + t7 * t22, t6 * t24 + t7 * t25, -(t6 * t10 + t7 * t26), -(t6 * t27 + t7 * t28), t7 * t29, -t17, -t19, -t22, -t25, t26, t28, -t29)
    dB_dtheta = _rows(x, (4, 1, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t6 * t30 + t7 * t31), -(t6 * t32 + t7 * t33), -(t6 * t34 + t7 * t35), -(t6 * t36 + t7 * t37), -(t6 * t12 + t7 * t38), -(t6 * t39 + t7 * t40), 0.0, t31, t33, t35, t37, t38, t40, 0.0)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    pendulum = x[..., 0]
    wheel_rate = x[..., 3]
    torque = u[..., 0]
    costate_pendulum = costate[..., 0]
    costate_wheel = costate[..., 1]
    costate_pendulum_rate = costate[..., 2]
    costate_wheel_rate = costate[..., 3]
    pendulum_mass = theta[..., 0]
    wheel_mass = theta[..., 1]
    length = theta[..., 2]
    centre = theta[..., 3]
    pendulum_inertia = theta[..., 4]
    wheel_inertia = theta[..., 5]
    wheel_damping = theta[..., 6]
    t1 = centre * centre
    t2 = length * length
    t3s, t3c = torch.sin(pendulum), torch.cos(pendulum)
    t4 = 9.81 * (pendulum_mass * centre + wheel_mass * length)
    t5 = t3s * t4
    t6 = 1.0 / (wheel_mass * t2 + (pendulum_mass * t1 + (pendulum_inertia + wheel_inertia)))
    t7 = wheel_inertia * t6
    t8 = 1.0 / (wheel_inertia - wheel_inertia * t7)
    t9 = t8 * (torque - wheel_damping * wheel_rate - t5 * t7)
    t10 = t5 * t6 - t7 * t9
    t11 = t8 * (costate_wheel_rate - costate_pendulum_rate * t7)
    t12 = costate_pendulum_rate * t6 - t7 * t11
    t13 = t10 * t12
    t14 = 9.81 * (t3s * t12)
    t15 = length * (wheel_mass * t13)
    t16 = centre * (pendulum_mass * t13)
    dH_dx = _rows(x, (4,), t3c * (t4 * t12), 0.0, costate_pendulum, costate_wheel - wheel_damping * t11)
    dH_du = _rows(x, (1,), t11)
    dH_dtheta = _rows(x, (7,), centre * t14 - t1 * t13, length * t14 - t2 * t13, wheel_mass * t14 - t15 - t15, pendulum_mass * t14 - t16 - t16, -t13, -(t13 + (t9 * t11 + (t10 * t11 + t9 * t12))), -(wheel_rate * t11))
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    pendulum = x[..., 0]
    pendulum_rate = x[..., 2]
    wheel_rate = x[..., 3]
    t1 = pendulum * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 9.869604401089358 * t2s
    t4 = wheel_rate * 2e-06
    t5 = pendulum_rate * 0.05
    q = _rows(x, (), 9.869604401089358 * (t2s * t2s) + (0.05 * (pendulum_rate * pendulum_rate) + 2e-06 * (wheel_rate * wheel_rate)))
    dq_dx = _rows(x, (4,), 0.5 * ((t3 + t3) * t2c), 0.0, t5 + t5, t4 + t4)
    return q, dq_dx,


def action_cost(u):
    torque = u[..., 0]
    t1 = torque * 15.692270996952013
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 0.1 - torch.abs(torque)
    t4 = 0.0015692270996952014 + 15.692270996952013 * torch.maximum(torch.full_like(u[:, 0], -5e-05), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 0.04056900193039206 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * torch.sign(-(t3 + 5e-05))
    t17 = torch.sign(torque)
    t18 = t2s * t12
    t19 = t18 + t18
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
    g = _rows(u, (), 0.04056900193039206 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 15.692270996952013 * (t15 * t5c) * t16 * t17 + 15.692270996952013 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_torque = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -0.1), torch.minimum(torch.full_like(w[:, 0], 0.1), 0.0637256392139949 * torch.atan(w_torque * 0.7853981633974482))))
    return u_optimal,


def optimal_input_cost(w):
    w_torque = w[..., 0]
    g_optimal = _rows(w, (), 0.04056900193039206 * torch.log1p(0.6168502750680847 * (w_torque * w_torque)))
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
