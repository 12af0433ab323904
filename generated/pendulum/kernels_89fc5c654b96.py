"""pendulum: functions of one sample, made by modelgen; not to be edited.

x (n,), u (m,), costate (n,), theta (p,) are read; the other arguments are filled, row by row.
numba.njit compiles them as they are; modelgen.load makes kernels for batches of them.
"""

import math


def affine_dynamics(x, theta, a, B):
    angle = x[0]
    angle_rate = x[1]
    mass = theta[0]
    length = theta[1]
    a[0] = angle_rate
    B[0] = 0.0
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333))
    a[1] = math.sin(angle) * (4.905 * (mass * length)) * t1
    B[1] = t1


def dynamics(x, u, theta, xdot):
    angle = x[0]
    angle_rate = x[1]
    torque = u[0]
    mass = theta[0]
    length = theta[1]
    xdot[0] = angle_rate
    t1 = 1.0 / (length * length * (mass * 0.3333333333333333)) * (torque + math.sin(angle) * (4.905 * (mass * length)))
    xdot[1] = t1


def jacobians(x, theta, a, B, da_dx, dB_dx, da_dtheta, dB_dtheta):
    angle = x[0]
    angle_rate = x[1]
    mass = theta[0]
    length = theta[1]
    a[0] = angle_rate
    B[0] = 0.0
    da_dx[0] = 0.0
    da_dx[1] = 1.0
    da_dx[3] = 0.0
    dB_dx[0] = 0.0
    dB_dx[1] = 0.0
    dB_dx[2] = 0.0
    dB_dx[3] = 0.0
    da_dtheta[0] = 0.0
    da_dtheta[1] = 0.0
    dB_dtheta[0] = 0.0
    dB_dtheta[1] = 0.0
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = math.sin(angle), math.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    B[1] = t5
    da_dx[2] = t5 * (t4 * t3c)
    t6 = t3s * t4 * t5
    a[1] = t6
    t7 = 0.3333333333333333 * t1
    da_dtheta[2] = t5 * (t3s * (length * 4.905) - t6 * t7)
    dB_dtheta[2] = -(t5 * (t5 * t7))
    t8 = t2 * (length + length)
    da_dtheta[3] = t5 * (t3s * (mass * 4.905) - t6 * t8)
    dB_dtheta[3] = -(t5 * (t5 * t8))


def hamiltonian_gradient(x, u, costate, theta, dH_dx, dH_du, dH_dtheta):
    angle = x[0]
    torque = u[0]
    costate_angle = costate[0]
    costate_angle_rate = costate[1]
    mass = theta[0]
    length = theta[1]
    dH_dx[1] = costate_angle
    t1 = length * length
    t2 = mass * 0.3333333333333333
    t3s, t3c = math.sin(angle), math.cos(angle)
    t4 = 4.905 * (mass * length)
    t5 = 1.0 / (t1 * t2)
    t6 = costate_angle_rate * t5
    dH_dx[0] = t3c * (t4 * t6)
    dH_du[0] = t6
    t7 = t5 * (torque + t3s * t4) * t6
    t8 = 4.905 * (t3s * t6)
    dH_dtheta[0] = length * t8 - 0.3333333333333333 * (t1 * t7)
    t9 = length * (t2 * t7)
    dH_dtheta[1] = mass * t8 - t9 - t9


def state_cost(x, theta, q, dq_dx):
    angle = x[0]
    angle_rate = x[1]
    t1 = angle * 0.5
    t2s, t2c = math.sin(t1), math.cos(t1)
    q[0] = 0.1 * (angle_rate * angle_rate) + 9.869604401089358 * (t2s * t2s)
    t3 = 9.869604401089358 * t2s
    dq_dx[0] = 0.5 * ((t3 + t3) * t2c)
    t4 = angle_rate * 0.1
    dq_dx[1] = t4 + t4
