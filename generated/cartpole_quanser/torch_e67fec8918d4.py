"""cartpole_quanser: functions for Torch, made by modelgen; not to be edited.

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
    resistance = theta[..., 5]
    motor_constant = theta[..., 6]
    t1 = 1.0 / resistance
    t2s, t2c = torch.sin(pole), torch.cos(pole)
    t3 = pole_mass * pole_half_length
    t4 = t2c * t3
    t5 = t2s * t3
    t6 = pole_rate * pole_rate * t5 - cart_damping * cart_rate - motor_constant * motor_constant * (cart_rate * t1 * 276493.7937875876)
    t7 = 425.9196850393701 * (motor_constant * t1)
    t8 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t9 = t4 * t8
    t10 = 1.0 / (pole_half_length * pole_half_length * (pole_mass * 1.3333333333333333) - t4 * t9)
    t11 = t10 * (t5 * 9.81 - pole_damping * pole_rate - t6 * t9)
    t12 = t10 * (t7 * t9)
    a = _rows(x, (4,), cart_rate, pole_rate, t6 * t8 - t9 * t11, t11)
    B = _rows(x, (4, 1), 0.0, 0.0, t7 * t8 + t9 * t12, -t12)
    return a, B,


def _dynamics(x, u, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    voltage = u[..., 0]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    resistance = theta[..., 5]
    motor_constant = theta[..., 6]
    t1 = 1.0 / resistance
    t2s, t2c = torch.sin(pole), torch.cos(pole)
    t3 = pole_mass * pole_half_length
    t4 = t2c * t3
    t5 = t2s * t3
    t6 = pole_rate * pole_rate * t5 - cart_damping * cart_rate - motor_constant * motor_constant * (cart_rate * t1 * 276493.7937875876)
    t7 = 1.0 / (0.11981397730795464 + (cart_mass + pole_mass))
    t8 = t4 * t7
    t9 = t6 + voltage * (425.9196850393701 * (motor_constant * t1))
    t10 = 1.0 / (pole_half_length * pole_half_length * (pole_mass * 1.3333333333333333) - t4 * t8) * (t5 * 9.81 - pole_damping * pole_rate - t8 * t9)
    xdot = _rows(x, (4,), cart_rate, pole_rate, t7 * t9 - t8 * t10, t10)
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
    resistance = theta[..., 5]
    motor_constant = theta[..., 6]
    t1 = 1.0 / resistance
    t2s, t2c = torch.sin(pole), torch.cos(pole)
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
    t17 = t11 * t13 - t14 * t16
    t18 = t15 * (t12 * t14)
    t19 = t12 * t13 + t14 * t18
    t20 = -t18
    t21 = t3 * t5 + t10 * t16
    t22 = t15 * (t5 * 9.81 + t10 * t17 - t14 * t21)
    t23 = cart_damping + t8 * (t1 * 276493.7937875876)
    t24 = t15 * (t14 * t23)
    t25 = t10 * (pole_rate + pole_rate)
    t26 = t15 * (pole_damping + t14 * t25)
    t27 = t10 * t20
    t28 = t15 * (t10 * t19 - t14 * t27)
    t29 = t15 * (t14 * t17)
    t30 = pole_half_length * t2c
    t31 = 1.3333333333333333 * t6
    t32 = pole_half_length * t2s
    t33 = t3 * t32 - (t17 + t16 * t30)
    t34 = t15 * (9.81 * t32 - (t17 * t30 + t16 * t31) - t14 * t33)
    t35 = pole_mass * t2c
    t36 = t7 * (pole_half_length + pole_half_length)
    t37 = pole_mass * t2s
    t38 = t3 * t37 - t16 * t35
    t39 = t15 * (9.81 * t37 - (t17 * t35 + t16 * t36) - t14 * t38)
    t40 = t15 * (cart_rate * t14)
    t41 = pole_rate * t15
    t42 = t1 * t1
    t43 = t8 * (276493.7937875876 * (cart_rate * t42))
    t44 = t15 * (t14 * t43)
    t45 = t9 * (motor_constant + motor_constant)
    t46 = t15 * (t14 * t45)
    t47 = t15 * (t14 * t19)
    t48 = t19 + t20 * t30
    t49 = t15 * (t14 * t48 - (t19 * t30 + t20 * t31))
    t50 = t20 * t35
    t51 = t15 * (t14 * t50 - (t19 * t35 + t20 * t36))
    t52 = 425.9196850393701 * (motor_constant * t42)
    t53 = t15 * (t14 * t52)
    t54 = t1 * 425.9196850393701
    t55 = t15 * (t14 * t54)
    a = _rows(x, (4,), cart_rate, pole_rate, t17, t16)
    B = _rows(x, (4, 1), 0.0, 0.0, t19, t20)
    da_dx = _rows(x, (4, 4), 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, t13 * t21 - t14 * t22, -(t13 * t23 + t14 * t24), t13 * t25 + t14 * t26, 0.0, t22, t24, -t26)
    dB_dx = _rows(x, (4, 1, 4), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, t13 * t27 - t14 * t28, 0.0, 0.0, 0.0, t28, 0.0, 0.0)
    da_dtheta = _rows(x, (4, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t13 * t17 + t14 * t29), t13 * t33 - t14 * t34, t13 * t38 - t14 * t39, -(cart_rate * t13 + t14 * t40), t14 * t41, t13 * t43 + t14 * t44, -(t13 * t45 + t14 * t46), t29, t34, t39, t40, -t41, -t44, t46)
    dB_dtheta = _rows(x, (4, 1, 7), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -(t13 * t19 + t14 * t47), -(t13 * t48 + t14 * t49), -(t13 * t50 + t14 * t51), 0.0, 0.0, -(t13 * t52 + t14 * t53), t13 * t54 + t14 * t55, t47, t49, t51, 0.0, 0.0, t53, -t55)
    return a, B, da_dx, dB_dx, da_dtheta, dB_dtheta,


def hamiltonian_gradient(x, u, costate, theta):
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    voltage = u[..., 0]
    costate_cart = costate[..., 0]
    costate_pole = costate[..., 1]
    costate_cart_rate = costate[..., 2]
    costate_pole_rate = costate[..., 3]
    cart_mass = theta[..., 0]
    pole_mass = theta[..., 1]
    pole_half_length = theta[..., 2]
    cart_damping = theta[..., 3]
    pole_damping = theta[..., 4]
    resistance = theta[..., 5]
    motor_constant = theta[..., 6]
    t1 = 1.0 / resistance
    t2s, t2c = torch.sin(pole), torch.cos(pole)
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
    t19 = costate_cart_rate * t12 - t13 * t18
    t20 = t17 * t19
    t21 = t16 * t18
    t22 = t17 * t18 + t16 * t19
    t23 = 425.9196850393701 * (voltage * t19)
    t24 = 9.81 * t18 + t3 * t19
    t25 = 276493.7937875876 * (t8 * t19)
    t26 = motor_constant * (t9 * t19)
    t27 = pole_half_length * (t7 * t21)
    t28 = t2s * t24 - t2c * t22
    t29 = pole_rate * (t10 * t19)
    dH_dx = _rows(x, (4,), 0.0, t2s * (t4 * t22) + t2c * (t4 * t24), costate_cart - t1 * t25 - cart_damping * t19, t29 + (costate_pole - pole_damping * t18 + t29))
    dH_du = _rows(x, (1,), t11 * t19)
    dH_dtheta = _rows(x, (7,), -t20, pole_half_length * t28 - 1.3333333333333333 * (t6 * t21) - t20, pole_mass * t28 - (t27 + t27), -(cart_rate * t19), -(pole_rate * t18), -(t1 * t1 * (motor_constant * t23 - cart_rate * t25)), t1 * t23 - t26 - t26)
    return dH_dx, dH_du, dH_dtheta,


def state_cost(x, theta):
    cart = x[..., 0]
    pole = x[..., 1]
    cart_rate = x[..., 2]
    pole_rate = x[..., 3]
    t1 = pole * 0.5
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 9.869604401089358 * (t2s * t2s) + (0.5 * (cart_rate * cart_rate) + (25.0 * (cart * cart) + pole_rate * pole_rate * 0.1))
    t4 = 9.869604401089358 * t2s
    t5 = cart_rate * 0.5
    t6 = cart * 25.0
    t7 = pole_rate * 0.1
    q = _rows(x, (), t3)
    dq_dx = _rows(x, (4,), t6 + t6, 0.5 * ((t4 + t4) * t2c), t5 + t5, t7 + t7)
    return q, dq_dx,


def action_cost(u):
    voltage = u[..., 0]
    t1 = voltage * 0.19632500022433405
    t2s, t2c = torch.sin(t1), torch.cos(t1)
    t3 = 8.0 - torch.abs(voltage)
    t4 = 0.00019632500022433405 + 0.19632500022433405 * torch.maximum(torch.full_like(u[:, 0], -0.0005), t3)
    t5s, t5c = torch.sin(t4), torch.cos(t4)
    t6 = t5s * t5s
    t7 = t2s * t2s / t6
    t8 = 1.0 / (1.0 + t7)
    t9 = 20.75317223225202 * t8
    t10 = 1.0 / t6
    t11 = t7 * t10
    t12 = t9 * t10
    t13 = t9 * t11
    t14 = t5s * t13
    t15 = t14 + t14
    t16 = 0.5 - 0.5 * torch.sign(-(t3 + 0.0005))
    t17 = torch.sign(voltage)
    t18 = t2s * t12
    t19 = t18 + t18
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
    g = _rows(u, (), 20.75317223225202 * torch.log1p(t7))
    dg_du = _rows(u, (1,), 0.19632500022433405 * (t15 * t5c) * t16 * t17 + 0.19632500022433405 * (t19 * t2c))
    d2g_du2 = _rows(u, (1,), t31)
    return g, dg_du, d2g_du2,


def optimal_input(w):
    w_voltage = w[..., 0]
    u_optimal = _rows(w, (1,), torch.maximum(torch.full_like(w[:, 0], -8.0), torch.minimum(torch.full_like(w[:, 0], 8.0), 5.093594798713018 * torch.atan(w_voltage * 0.1227184630308513))))
    return u_optimal,


def optimal_input_cost(w):
    w_voltage = w[..., 0]
    g_optimal = _rows(w, (), 20.75317223225202 * torch.log1p(0.015059821168654416 * (w_voltage * w_voltage)))
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
