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
from tests.closeness import assert_close

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
    assert float((np.abs(authors.x.numpy() - end) / problem.state_limits.numpy()).max()) > 5e-5
    np.testing.assert_allclose(authors.state_cost, load64(name).state_cost(x.double().numpy())[0] * 0.008, rtol=1e-4)


def test_runge_kutta_is_of_fourth_order_and_euler_of_first(load64: Load) -> None:
    """Halving the step divides the error by 16, of the state and of the cost, in float64; explicit Euler's by 2."""
    robot = load64("double_pendulum")
    x, u = torch.tensor([[2.0, -1.5, 6.0, -9.0]], dtype=torch.float64), torch.tensor([[3.0, -1.0]])
    end, cost = exact(robot, x, u, 0.08)

    def error(scheme: RungeKutta | Euler, steps: int) -> tuple[float, float]:
        at, means = x, []
        for _ in range(steps):
            at, mean = scheme.step(
                lambda y: torch.as_tensor(robot.dynamics(y, u.double())),
                lambda y: robot.state_cost(y)[0],
                at,
                0.08 / steps,
            )
            means.append(mean)
        own = 0.08 * float(torch.stack(means).mean())
        return float((at - torch.as_tensor(end)).abs().max()), abs(own - float(cost[0]))

    for scheme, order in ((RungeKutta(), 4.0), (Euler(), 1.0)):
        errors = np.array([error(scheme, steps) for steps in (16, 32, 64)])
        np.testing.assert_allclose(np.log2(errors[:-1] / errors[1:]), order, atol=0.25)


def energy(x: Array) -> Array:
    """(N,) of the double pendulum at x (N, 4): two uniform rods of 1 and 0.6 kg, 0.5 and 0.4 m; 0 for both upright."""
    first, second, one, two = x[:, 0], x[:, 0] + x[:, 1], x[:, 2], x[:, 2] + x[:, 3]
    turning = 0.5 * (0.5**2 / 3 * one**2 + 0.6 * 0.5**2 * one**2 + 0.6 * 0.4**2 / 3 * two**2)
    coupling = 0.6 * 0.5 * 0.2 * one * two * np.cos(first - second)
    depth = (0.25 + 0.6 * 0.5) * (1.0 - np.cos(first)) + 0.6 * 0.2 * (1.0 - np.cos(second))
    total: Array = turning + coupling - 9.81 * depth
    return total


def test_a_double_pendulum_without_friction_keeps_its_energy_and_explicit_euler_adds(load: Load) -> None:
    """5 s of free swings from rest, over the seam of either angle. The largest swing of the energy is 16.5 J."""
    problem = Problem(load("double_pendulum"))
    assert problem.robot.parameter_names[-2:] == ("shoulder_damping", "elbow_damping")
    theta = problem.theta * torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    start = torch.tensor([[2.0, 0.5, 0.0, 0.0], [-2.4, 1.0, 0.0, 0.0]])
    drift = {}
    for scheme in ("rk4", "euler"):
        at, x, seams = problem.integrated_by(scheme), start, 0
        for _ in range(625):
            later = integrate_period(at, x, torch.zeros(2, 2), theta).x
            seams += int(((later - x)[:, :2].abs() > 3.0).sum())
            x = later
            assert not problem.at_limit(x).any()
        assert seams > 0
        drift[scheme] = energy(x.double().numpy()) - energy(start.double().numpy())
    assert np.abs(drift["rk4"]).max() < 5e-4
    assert drift["euler"].min() > 0.4


def test_the_euler_scheme_is_the_authors_loop_on_the_pendulum(load: Load) -> None:
    """Their four steps by the textbook equation, with another mass and length, wrapping, and the rate clipped at 8; the
    cost of the period is that of its first state."""
    problem = Problem(load("pendulum"), scheme="euler")
    starts, torques, theta = [[3.1, 7.9], [0.4, -1.0], [-3.13, -7.99]], [2.5, -1.0, -2.5], [0.8, 1.2]
    expected, costs = [], []
    for (angle, rate), torque in zip(starts, torques, strict=True):
        mass, length = theta
        costs.append(0.008 * ((math.pi * math.sin(angle / 2)) ** 2 + 0.1 * rate**2))
        for _ in range(4):
            acceleration = 1.5 * 9.81 / length * math.sin(angle) + 3.0 * torque / (mass * length**2)
            angle, rate = angle + 0.002 * rate, rate + 0.002 * acceleration
            angle, rate = wrapped(angle), min(8.0, max(-8.0, rate))
        expected.append([angle, rate])
    found = integrate_period(problem, torch.tensor(starts), torch.tensor(torques)[:, None], torch.tensor(theta))
    np.testing.assert_allclose(found.x, expected, atol=2e-5)
    np.testing.assert_allclose(found.state_cost, costs, rtol=1e-5)
    assert expected[0][0] < 0.0  # one start does cross the seam


def test_a_period_across_the_seam_and_into_a_limit(load: Load) -> None:
    """The cart-pole's pole turns past pi, where its cost as written would climb a wall; the pendulum meets 8 rad/s."""
    problem, x = Problem(load("cartpole")), torch.tensor([[0.1, math.pi - 0.02, 0.3, 19.0], [0.0, 3.1, 0.0, 15.0]])
    found = integrate_period(problem, x, torch.zeros(2, 1))
    turned = x - torch.tensor([0.0, 2.0 * math.pi, 0.0, 0.0])
    assert bool((found.x[:, 1] < 0.0).all())
    same = integrate_period(problem, turned, torch.zeros(2, 1))
    torch.testing.assert_close(found.x, same.x, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.state_cost, same.state_cost, rtol=1e-4, atol=0.0)
    pendulum = Problem(load("pendulum"))
    found = integrate_period(pendulum, torch.tensor([[1.5, 7.95]]), torch.zeros(1, 1))
    assert float(found.x[0, 1]) == 8.0
    torch.testing.assert_close(found.x[0, 0], torch.tensor(1.5 + 0.008 * 7.95 + 14.7 * 0.008**2 / 2), rtol=0, atol=1e-4)


def test_parameters_of_their_own_and_the_offset_are_those_of_the_dynamics(load: Load, load64: Load) -> None:
    """The dynamics are read at x + offset; the cost is the nominal one at x."""
    problem = Problem(load("double_pendulum"))
    x, u = inner(problem, 8)
    theta = problem.theta * torch.linspace(0.9, 1.1, 8)[:, None]
    for offset in (0.0, 0.1):
        before = x.clone()
        found = integrate_period(problem, x, u, theta, torch.full_like(x, offset) if offset else None)
        end, cost = exact(load64("double_pendulum"), x, u, problem.control_step, theta, offset)
        np.testing.assert_allclose(found.x, end, atol=2e-4)
        np.testing.assert_allclose(found.state_cost, cost, rtol=1e-4)
        assert torch.equal(x, before)


def test_an_input_that_follows_the_state_is_held_for_a_step(load: Load) -> None:
    """As friction does: each of the steps asks for it once, at the state where it begins."""
    problem, seen = Problem(load("pendulum")), []

    def brake(x: Tensor) -> Tensor:
        seen.append(x.clone())
        return -0.2 * x[:, 1:]

    x = torch.tensor([[1.0, 2.0]])
    found = integrate_period(problem, x, brake, steps=4)
    at, cost = x, 0.0
    quarter = SimpleNamespace(**{**vars(problem), "control_step": 0.002, "substeps": 1})
    for name in ("state_cost", "confine_in_place"):
        setattr(quarter, name, getattr(problem, name))
    for k in range(4):
        assert_close(seen[k], at)
        at, part = integrate_period(quarter, at, -0.2 * at[:, 1:])  # type: ignore[arg-type]
        cost += float(part[0])
    assert len(seen) == 4
    assert_close(found.x, at)
    assert float(found.state_cost[0]) == pytest.approx(cost, rel=1e-6)


def test_a_state_that_is_not_finite_stays_so(load: Load) -> None:
    for scheme in ("rk4", "euler"):
        x = torch.tensor([[math.nan, 0.0], [0.1, 0.0]])
        found = integrate_period(Problem(load("pendulum"), scheme=scheme), x, torch.zeros(2, 1))
        assert torch.isfinite(found.x).all(1).tolist() == [False, True]
        assert torch.isfinite(found.state_cost).tolist() == [False, True]
