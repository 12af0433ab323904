"""The integrator against the textbook equation of the pendulum and a loop in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from modelgen.loader import CompiledRobot
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

Load = Callable[[str], CompiledRobot]


def wrapped(angle: float) -> float:
    """To [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def test_a_period_is_explicit_euler_on_the_pendulum(load: Load) -> None:
    """Against the textbook equation, with another mass and length, wrapping, and the rate clipped at 8."""
    problem = Problem(load("pendulum"))
    starts, torques, theta = [[3.1, 7.9], [0.4, -1.0], [-3.13, -7.99]], [2.5, -1.0, -2.5], [0.8, 1.2]
    expected = []
    for (angle, rate), torque in zip(starts, torques, strict=True):
        mass, length = theta
        for _ in range(4):
            acceleration = 1.5 * 9.81 / length * math.sin(angle) + 3.0 * torque / (mass * length**2)
            angle, rate = angle + 0.002 * rate, rate + 0.002 * acceleration
            angle, rate = wrapped(angle), min(8.0, max(-8.0, rate))
        expected.append([angle, rate])
    x = integrate_period(problem, torch.tensor(starts), torch.tensor(torques)[:, None], torch.tensor(theta))
    np.testing.assert_allclose(x, expected, atol=2e-5)
    assert expected[0][0] < 0.0  # one start does cross the seam


def test_a_period_reads_the_dynamics_at_the_offset_state(load: Load, load64: Load) -> None:
    robot = load64("double_pendulum")
    problem = Problem(load("double_pendulum"))
    generator = torch.Generator().manual_seed(0)
    x = problem.sample_domain(8, generator)
    u, xi = torch.randn(8, 2, generator=generator), 0.1 * torch.randn(8, 4, generator=generator)
    theta = problem.theta * (1.0 + 0.1 * torch.rand(8, len(problem.theta), generator=generator))
    y = x.double().numpy()
    for _ in range(problem.substeps):
        rate = robot.dynamics(y + xi.double().numpy(), u.double().numpy(), theta.double().numpy())
        y = y + problem.control_step / problem.substeps * rate
        y[:, :2] = (y[:, :2] + math.pi) % (2.0 * math.pi) - math.pi
        limits = np.asarray(robot.state_limits)[2:]
        y[:, 2:] = np.clip(y[:, 2:], -limits, limits)
    before = x.clone()
    np.testing.assert_allclose(integrate_period(problem, x, u, theta, xi), y, atol=1e-3, rtol=1e-4)
    assert torch.equal(x, before)
