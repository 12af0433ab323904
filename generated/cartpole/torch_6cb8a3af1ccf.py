"""cartpole: functions for Torch, made by modelgen; not to be edited.

x (N, n), u (N, m), costate (N, n), theta (p,) or (N, p); the last axis of a derivative is its variable.
"""

import torch


def _rows(first, shape, *entries):
    """The entries, columns (N,) or numbers, as one tensor (N, *shape); `first` is the first argument (N, k)."""
    like = first[:, 0]
    columns = [entry.expand_as(like) if torch.is_tensor(entry) else torch.full_like(like, entry) for entry in entries]
    return torch.stack(columns, -1).reshape(-1, *shape) if columns else first.new_empty((len(first), *shape))


def affine_dynamics(x, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    t1s, t1c = torch.sin(pole), torch.cos(pole)
    t2 = pole_mass * pole_half_length
    t3 = t1c * t2
    t4 = t1s * t2
    t5 = pole_rate * pole_rate * t4 - cart_damping * cart_rate
    t6 = 1.0 / (cart_mass + pole_mass)
    t7 = t3 * t6
    t8 = 1.0 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t7)
    t9 = t8 * (t4 * 9.81 - pole_damping * pole_rate - t5 * t7)
    t10 = t7 * t8
    a = _rows(x, (4,), cart_rate, pole_rate, t5 * t6 - t7 * t9, t9)
    B = _rows(x, (4, 1), 0.0, 0.0, t6 + t7 * t10, -t10)
    return a, B,


def _dynamics(x, u, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    force = u[..., 0]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    t1s, t1c = torch.sin(pole), torch.cos(pole)
    t2 = pole_mass * pole_half_length
    t3 = t1c * t2
    t4 = t1s * t2
    t5 = 1.0 / (cart_mass + pole_mass)
    t6 = t3 * t5
    t7 = force + (pole_rate * pole_rate * t4 - cart_damping * cart_rate)
    t8 = 1.0 / (pole_mass * (pole_half_length * pole_half_length) - t3 * t6) * (t4 * 9.81 - pole_damping * pole_rate - t6 * t7)
    xdot = _rows(x, (4,), cart_rate, pole_rate, t5 * t7 - t6 * t8, t8)
    return xdot,


def jacobians(x, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    t1s, t1c = torch.sin(pole), torch.cos(pole)
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
    t12 = t7 * t8 - t9 * t11
    t13 = t9 * t10
    t14 = t8 + t9 * t13
    t15 = -t13
    t16 = t2 * t4 + t6 * t11
    t17 = t10 * (t4 * 9.81 + t6 * t12 - t9 * t16)
    t18 = t10 * (cart_damping * t9)
    t19 = t6 * (pole_rate + pole_rate)
    t20 = t10 * (pole_damping + t9 * t19)
    t21 = t6 * t15
    t22 = t10 * (t6 * t14 - t9 * t21)
    t23 = t10 * (t9 * t12)
    t24 = pole_half_length * t1c
    t25 = pole_half_length * t1s
    t26 = t2 * t25 - (t12 + t11 * t24)
    t27 = t10 * (9.81 * t25 - (t12 * t24 + t5 * t11) - t9 * t26)
    t28 = pole_mass * t1c
    t29 = pole_mass * (pole_half_length + pole_half_length)
    t30 = pole_mass * t1s
    t31 = t2 * t30 - t11 * t28
    t32 = t10 * (9.81 * t30 - (t12 * t28 + t11 * t29) - t9 * t31)
    t33 = t10 * (cart_rate * t9)
    t34 = pole_rate * t10
    t35 = t10 * (t9 * t14)
    t36 = t14 + t15 * t24
    t37 = t10 * (t9 * t36 - (t14 * t24 + t5 * t15))
    t38 = t15 * t28
    t39 = t10 * (t9 * t38 - (t14 * t28 + t15 * t29))
    a = _rows(x, (4,), cart_rate, pole_rate, t12, t11)
    B = _rows(x, (4, 1), 0.0, 0.0, t14, t15)
    da_dx = _rows(x, (4, 4), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, t8 * t16 - t9 * t17, -(cart_damping * t8 + t9 * t18), t8 * t19 + t9 * t20, 0.0, t17, t18, -t20)
    dB_dx = _rows(x, (4, 1, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t8 * t21 - t9 * t22, 0.0, 0.0, 0.0, t22, 0.0, 0.0)
    da_dtheta = _rows(x, (4, 5), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t8 * t12 + t9 * t23), t8 * t26 - t9 * t27, t8 * t31 - t9 * t32, -(cart_rate * t8 + t9 * t33), t9 * t34, t23, t27, t32, t33, -t34)
    dB_dtheta = _rows(x, (4, 1, 5), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t8 * t14 + t9 * t35), -(t8 * t36 + t9 * t37), -(t8 * t38 + t9 * t39), 0.0, 0.0, t35, t37, t39, 0.0, 0.0)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    force = u[..., 0]
    costate_cart = costate[..., 0]
    costate_pole = costate[..., 1]
    costate_cart_rate = costate[..., 2]
    costate_pole_rate = costate[..., 3]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    t1s, t1c = torch.sin(pole), torch.cos(pole)
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
    t14 = costate_cart_rate * t7 - t8 * t13
    t15 = t12 * t14
    t16 = t11 * t13
    t17 = t12 * t13 + t11 * t14
    t18 = 9.81 * t13 + t2 * t14
    t19 = pole_half_length * (pole_mass * t16)
    t20 = t1s * t18 - t1c * t17
    t21 = pole_rate * (t6 * t14)
    dH_dx = _rows(x, (4,), 0.0, t1s * (t3 * t17) + t1c * (t3 * t18), costate_cart - cart_damping * t14, t21 + (costate_pole - pole_damping * t13 + t21))
    dH_du = _rows(x, (1,), t14)
    dH_dtheta = _rows(x, (5,), -t15, pole_half_length * t20 - t5 * t16 - t15, pole_mass * t20 - (t19 + t19), -(cart_rate * t14), -(pole_rate * t13))
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    cart = x[..., 0]
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    t1 = cart * 10.0
    t2 = pole * 10.0
    t3 = cart_rate * 10.0
    t4 = pole_rate * 10.0
    t5 = pole * 0.5
    t6s, t6c = torch.sin(t5), torch.cos(t5)
    t7 = torch.tanh(t1 - 4.0)
    t8 = torch.tanh(t1 + 4.0)
    t9 = torch.tanh(t2 - 34.55751918948773)
    t10 = torch.tanh(t2 + 34.55751918948773)
    t11 = torch.tanh(t3 - 55.0)
    t12 = torch.tanh(t3 + 55.0)
    t13 = torch.tanh(t4 - 220.0)
    t14 = torch.tanh(t4 + 220.0)
    t15 = 0.5 * (cart_rate * cart_rate) + (pole_rate * pole_rate * 0.1 + (385.75197594478317 + 25.0 * (cart * cart)))
    t16 = 37.8125 * t11 + (24.0701949750009 * t9 + (10.000000000000002 * t7 + (9.869604401089358 * (t6s * t6s) + t15)))
    t17 = 121.00000000000001 * t13 + t16 - 10.000000000000002 * t8 - 24.0701949750009 * t10 - 37.8125 * t12 - 121.00000000000001 * t14
    t18 = 9.869604401089358 * t6s
    t19 = cart_rate * 0.5
    t20 = cart * 25.0
    t21 = t19 + t19 + 10.0 * (37.8125 * (1.0 - t11 * t11) - 37.8125 * (1.0 - t12 * t12))
    t22 = 0.5 * ((t18 + t18) * t6c) + 10.0 * (24.0701949750009 * (1.0 - t9 * t9) - 24.0701949750009 * (1.0 - t10 * t10))
    t23 = t20 + t20 + 10.0 * (10.000000000000002 * (1.0 - t7 * t7) - 10.000000000000002 * (1.0 - t8 * t8))
    t24 = pole_rate * 0.1
    t25 = 10.0 * (121.00000000000001 * (1.0 - t13 * t13) - 121.00000000000001 * (1.0 - t14 * t14)) + t24
    q = _rows(x, (), t17)
    dq_dx = _rows(x, (4,), t23, t22, t21, t24 + t25)
    return q, dq_dx,


def action_cost(u):
    force = u[..., 0]
    t1 = force * 0.13088878650069966
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 12.0 - torch.abs(force)
    t4 = 0.00013088878650069965 + 0.13088878650069966 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 70.03903823376167 * t8
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
    g = _rows(u, (), 70.03903823376167 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 0.13088878650069966 * (t15 * t5c) * t16 * t17 + 0.13088878650069966 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_force = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -12.0), torch.minimum(torch.full_like(w[:, 0], 12.0), 7.640073888183344 * torch.atan(w_force * 0.0545415391248228))))
    return u_optimal,


def optimal_input_cost(w):
    w_force = w[..., 0]
    g_optimal = _rows(w, (), 70.03903823376167 * torch.log1p(0.002974779490104576 * (w_force * w_force)))
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
