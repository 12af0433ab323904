"""Derivatives of a control period, compared with central differences of a Runge-Kutta step in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.observer import transition
from solver.problem import Problem
from solver.problem.integrator import integrate_period

Load = Callable[[str], CompiledRobot]
STEP = 1e-5


def period(robot: CompiledRobot, x: Array, u: Array, theta: Array) -> Array:
    """States (N, n) after a control period, without the limits of the domain."""
    task = robot.metadata.task
    h = 1.0 / task.control_rate / task.integration_steps
    for _ in range(task.integration_steps):
        k1 = robot.dynamics(x, u, theta)
        k2 = robot.dynamics(x + 0.5 * h * k1, u, theta)
        k3 = robot.dynamics(x + 0.5 * h * k2, u, theta)
        k4 = robot.dynamics(x + h * k3, u, theta)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return x


def differences(function: Callable[[Array], Array], at: Array) -> Array:
    """Central differences of a function (N, n) in each column of `at`, with steps relative to its size."""
    columns = []
    for i in range(at.shape[1]):
        step = STEP * max(1e-3, float(np.abs(at[:, i]).max()))
        up, down = at.copy(), at.copy()
        up[:, i] += step
        down[:, i] -= step
        columns.append((function(up) - function(down)) / (2.0 * step))
    return np.stack(columns, 2)


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum", "planar_quadrotor"])
def test_transition_is_a_period_of_the_integrator_with_its_derivatives(name: str, load: Load, load64: Load) -> None:
    problem, robot = Problem(load(name)), load64(name)
    generator = torch.Generator().manual_seed(0)
    x = 0.5 * problem.sample_domain(20, generator)
    u = problem.input_limits * (2.0 * torch.rand(20, len(problem.input_limits), generator=generator) - 1.0)
    result = transition(problem, x, u)
    torch.testing.assert_close(result.x, integrate_period(problem, x, u).x, rtol=1e-5, atol=1e-5)
    at: list[Any] = [x.double().numpy(), u.double().numpy(), np.tile(robot.nominal_parameters, (20, 1))]
    for i, slopes in enumerate((result.by_state, result.by_input, result.by_parameter)):

        def moved(values: Array, i: int = i) -> Array:
            return period(robot, *(values if k == i else at[k] for k in range(3)))

        expected = differences(moved, at[i])
        size = np.abs(expected).max((0, 1))
        np.testing.assert_allclose(slopes.double().numpy(), expected, rtol=1e-3, atol=1e-4 * size.max())
