"""The integrator against adaptive integration of high order, energy, and the authors' loop written in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem
from solver.problem.schemes import Euler, RungeKutta

Load = Callable[[str], CompiledRobot]
Array = NDArray[np.float64]


def wrapped(angle: Any) -> Any:
    """To [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def exact(
    robot: CompiledRobot, x: Tensor, u: Tensor, seconds: float, theta: Tensor | None = None, offset: float = 0.0
) -> tuple[Array, Array]:
    """The states (N, n) so many seconds later, and the integral (N,) of the nominal state cost, in float64."""
    start, acting = x.double().numpy(), u.double().numpy()
    given = () if theta is None else (theta.double().numpy(),)
    size = start.shape

    def flow(_: float, y: Array) -> Array:
        at = y[: start.size].reshape(size)
        rate = robot.dynamics(at + offset, acting, *given)
        return np.concatenate([np.asarray(rate).ravel(), np.asarray(robot.state_cost(at)[0])])

    begun = np.concatenate([start.ravel(), np.zeros(size[0])])
    end = solve_ivp(flow, (0.0, seconds), begun, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    return end[: start.size].reshape(size), end[start.size :]


def inner(problem: Problem, size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """States in the inner domain, where a period meets neither a limit nor a seam, and inputs."""
    generator = torch.Generator().manual_seed(seed)
    x = 0.7 * problem.sample_domain(size, generator)
    u = (2.0 * torch.rand(size, len(problem.input_limits), generator=generator) - 1.0) * problem.input_limits
    return x, u


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum", "planar_quadrotor"])
def test_a_period_is_the_exact_flow_and_the_exact_integral_of_the_cost(load: Load, load64: Load, name: str) -> None:
    problem = Problem(load(name))
    x, u = inner(problem, 50)
    end, cost = exact(load64(name), x, u, problem.control_step)
    found = integrate_period(problem, x, u)
    assert float((np.abs(found.x.numpy() - end) / problem.state_limits.numpy()).max()) < 2e-5
    np.testing.assert_allclose(found.state_cost, cost, rtol=1e-4, atol=1e-5)
    authors = integrate_period(problem.integrated_by("euler"), x, u)
    assert float((np.abs(authors.x.numpy() - end) / problem.state_limits.numpy()).max()) > 2e-4
    np.testing.assert_allclose(authors.state_cost, load64(name).state_cost(x.double().numpy())[0] * 0.008, rtol=1e-5)


def test_both_are_of_fourth_order(load64: Load) -> None:
    """Halving the step divides the error by 16, of the state and of the cost, in float64; explicit Euler's by 2."""
    robot = load64("double_pendulum")
    x, u = torch.tensor([[2.0, -1.5, 6.0, -9.0]], dtype=torch.float64), torch.tensor([[3.0, -1.0]])
    end, cost = exact(robot, x, u, 0.08)

    def error(scheme: RungeKutta | Euler, steps: int) -> tuple[float, float]:
        at, means = x, []
        for _ in range(steps):
            at, mean = scheme.step(
                lambda y: torch.as_tensor(robot.dynamics(y, u.double())), lambda y: robot.state_cost(y)[0], at, 0.08 / steps
            )
            means.append(mean)
        own = 0.08 * float(torch.stack(means).mean())
        return float((at - torch.as_tensor(end)).abs().max()), abs(own - float(cost[0]))

    for scheme, order in ((RungeKutta(), 4.0), (Euler(), 1.0)):
        errors = np.array([error(scheme, steps) for steps in (16, 32, 64)])
        np.testing.assert_allclose(np.log2(errors[:-1] / errors[1:]), order, atol=0.25)


def energy(theta: NDArray[Any], x: NDArray[Any]) -> Any:
    """Of two links that hinge in a row, the angles from upright: kinetic plus potential, from a textbook."""
    p = theta
    first, second = x[:, 0], x[:, 0] + x[:, 1]
    one, two = x[:, 2], x[:, 2] + x[:, 3]
    kinetic = 0.5 * (p["m1"] * p["c1"] ** 2 + p["I1"] + p["m2"] * p["l1"] ** 2) * one**2
    kinetic = kinetic + 0.5 * (p["m2"] * p["c2"] ** 2 + p["I2"]) * two**2
    kinetic = kinetic + p["m2"] * p["l1"] * p["c2"] * one * two * np.cos(first - second)
    height = p["m1"] * p["c1"] * np.cos(first) + p["m2"] * (p["l1"] * np.cos(first) + p["c2"] * np.cos(second))
    return kinetic + 9.81 * height
