"""Integrator, compared with adaptive integration of high order, with conservation of energy, and with the authors' loop
written in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

import modelgen
from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game import Game
from solver.game.adversaries import ParameterAdversary
from solver.observer import Observer, make_sensing
from solver.oracles.trajectory import NonlinearProgram
from solver.plants.episodes import Episodes
from solver.plants.harsh import Harsh, Harshness
from solver.plants.plant import Nominal
from solver.problem import Problem
from solver.problem.integrator import Euler, RungeKutta, integrate_period, steps_for
from solver.problem.parameters import resolve
from tests.closeness import assert_close
from tests.modelgen.support.declared import TASK, cart

Load = Callable[[str], CompiledRobot]


def wrapped(angle: Any) -> Any:
    """The angle in [-pi, pi)."""
    return (angle + math.pi) % (2.0 * math.pi) - math.pi


def exact(
    robot: CompiledRobot, x: Tensor, u: Tensor, seconds: float, theta: Tensor | None = None, offset: float = 0.0
) -> tuple[Array, Array]:
    """States (N, n) after `seconds`, and the integral (N,) of the nominal state cost, in float64."""
    start, acting = x.double().numpy(), u.double().numpy()
    given = () if theta is None else (theta.double().numpy(),)
    size = start.shape

    def flow(_: float, y: Array) -> Array:
        at = y[: start.size].reshape(size)
        rate = robot.dynamics(at + offset, acting, *given)
        return np.concatenate([np.asarray(rate).ravel(), np.asarray(robot.state_cost(at)[0])])

    augmented = np.concatenate([start.ravel(), np.zeros(size[0])])
    end = solve_ivp(flow, (0.0, seconds), augmented, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    return end[: start.size].reshape(size), end[start.size :]


def inner(problem: Problem, size: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """States in the inner domain, where a period meets neither a limit nor a seam, and inputs."""
    generator = torch.Generator().manual_seed(seed)
    x = 0.7 * problem.sample_domain(size, generator)
    u = (2.0 * torch.rand(size, len(problem.input_limits), generator=generator) - 1.0) * problem.input_limits
    return x, u


@pytest.mark.parametrize("name", ["pendulum", "cartpole", "furuta", "double_pendulum", "planar_quadrotor"])
def test_period_agrees_with_adaptive_integration_of_state_and_cost(load: Load, load64: Load, name: str) -> None:
    problem = Problem(load(name))
    x, u = inner(problem, 50)
    end, cost = exact(load64(name), x, u, problem.control_step)
    period = integrate_period(problem, x, u)
    assert float((np.abs(period.x.numpy() - end) / problem.state_limits.numpy()).max()) < 2e-5
    np.testing.assert_allclose(period.state_cost, cost, rtol=1e-4, atol=1e-5)
    authors = integrate_period(problem.integrated_by("euler"), x, u)
    assert float((np.abs(authors.x.numpy() - end) / problem.state_limits.numpy()).max()) > 5e-5
    np.testing.assert_allclose(authors.state_cost, load64(name).state_cost(x.double().numpy())[0] * 0.008, rtol=1e-4)


def test_runge_kutta_is_of_fourth_order_and_euler_of_first(load64: Load) -> None:
    """Half the step divides the errors of state and cost by 16, or by 2 with explicit Euler, in float64."""
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
    """Energy (N,) of the double pendulum at x (N, 4): uniform rods of 1 and 0.6 kg, 0.5 and 0.4 m; 0 when upright."""
    first, second, one, two = x[:, 0], x[:, 0] + x[:, 1], x[:, 2], x[:, 2] + x[:, 3]
    turning = 0.5 * (0.5**2 / 3 * one**2 + 0.6 * 0.5**2 * one**2 + 0.6 * 0.4**2 / 3 * two**2)
    coupling = 0.6 * 0.5 * 0.2 * one * two * np.cos(first - second)
    depth = (0.25 + 0.6 * 0.5) * (1.0 - np.cos(first)) + 0.6 * 0.2 * (1.0 - np.cos(second))
    total: Array = turning + coupling - 9.81 * depth
    return total


@pytest.mark.slow
def test_runge_kutta_conserves_energy_and_explicit_euler_adds_it(load: Load) -> None:
    """A double pendulum without friction swings for 5 s from rest, across the seams of both angles.

    The potential energy varies by 16.5 J.
    """
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
    """Four steps of the textbook equation with another mass and length, a wrapped angle, and the rate clipped at 8.

    The cost of the period is the cost of its first state.
    """
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
    period = integrate_period(problem, torch.tensor(starts), torch.tensor(torques)[:, None], torch.tensor(theta))
    np.testing.assert_allclose(period.x, expected, atol=2e-5)
    np.testing.assert_allclose(period.state_cost, costs, rtol=1e-5)
    assert expected[0][0] < 0.0  # the first start crosses the seam


def test_state_is_wrapped_at_the_seam_and_clipped_at_a_limit(load: Load) -> None:
    """The cart-pole's pole turns past pi, where the cost of its model file grows. The pendulum meets its 8 rad/s."""
    problem, x = Problem(load("cartpole")), torch.tensor([[0.1, math.pi - 0.02, 0.3, 19.0], [0.0, 3.1, 0.0, 15.0]])
    period = integrate_period(problem, x, torch.zeros(2, 1))
    turned = x - torch.tensor([0.0, 2.0 * math.pi, 0.0, 0.0])
    assert bool((period.x[:, 1] < 0.0).all())
    same = integrate_period(problem, turned, torch.zeros(2, 1))
    torch.testing.assert_close(period.x, same.x, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(period.state_cost, same.state_cost, rtol=1e-4, atol=0.0)
    pendulum = Problem(load("pendulum"))
    period = integrate_period(pendulum, torch.tensor([[1.5, 7.95]]), torch.zeros(1, 1))
    assert float(period.x[0, 1]) == 8.0
    torch.testing.assert_close(
        period.x[0, 0], torch.tensor(1.5 + 0.008 * 7.95 + 14.7 * 0.008**2 / 2), rtol=0, atol=1e-4
    )


def test_parameters_and_offset_change_the_dynamics_and_not_the_cost(load: Load, load64: Load) -> None:
    """The dynamics are evaluated at x + offset, the cost at x and the nominal parameters."""
    problem = Problem(load("double_pendulum"))
    x, u = inner(problem, 8)
    theta = problem.theta * torch.linspace(0.9, 1.1, 8)[:, None]
    for offset in (0.0, 0.1):
        before = x.clone()
        period = integrate_period(problem, x, u, theta, torch.full_like(x, offset) if offset else None)
        end, cost = exact(load64("double_pendulum"), x, u, problem.control_step, theta, offset)
        np.testing.assert_allclose(period.x, end, atol=2e-4)
        np.testing.assert_allclose(period.state_cost, cost, rtol=1e-4)
        assert torch.equal(x, before)


def test_input_given_as_a_function_is_evaluated_once_in_each_step(load: Load) -> None:
    """Friction uses it. The function is called with the state at the start of the step."""
    problem, states = Problem(load("pendulum")), []

    def brake(x: Tensor) -> Tensor:
        states.append(x.clone())
        return -0.2 * x[:, 1:]

    x = torch.tensor([[1.0, 2.0]])
    period = integrate_period(problem, x, brake, steps=4)
    at, cost = x, 0.0
    quarter = SimpleNamespace(**{**vars(problem), "control_step": 0.002, "substeps": 1})
    for name in ("state_cost", "confine_in_place"):
        setattr(quarter, name, getattr(problem, name))
    for k in range(4):
        assert_close(states[k], at)
        at, part = integrate_period(quarter, at, -0.2 * at[:, 1:])  # type: ignore[arg-type]
        cost += float(part[0])
    assert len(states) == 4
    assert_close(period.x, at)
    assert float(period.state_cost[0]) == pytest.approx(cost, rel=1e-6)


def test_state_that_is_not_finite_stays_so_and_spares_the_others(load: Load) -> None:
    for scheme in ("rk4", "euler"):
        x = torch.tensor([[math.nan, 0.0], [0.1, 0.0]])
        period = integrate_period(Problem(load("pendulum"), scheme=scheme), x, torch.zeros(2, 1))
        assert torch.isfinite(period.x).all(1).tolist() == [False, True]
        assert torch.isfinite(period.state_cost).tolist() == [False, True]


@pytest.mark.slow
def test_steps_suffice_for_the_parameters_that_are_integrated() -> None:
    """A cart whose friction is ten times the nominal one: the steps of the nominal cart diverge.

    Its rate approaches u/damping as exp(-damping t).
    """
    robot, s, mass, force = cart()
    damping = robot.parameter("damping", 150.0, "N s/m", bounds=(50, 1500))
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.damp(s, damping)
    robot.task(**{**TASK, "state_cost": s**2})
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    stiff = torch.tensor([1.0, 1500.0])
    x, u = torch.tensor([[0.0, 2.0]]), torch.tensor([[3.0]])
    rate = 3.0 / 1500.0 + (2.0 - 3.0 / 1500.0) * math.exp(-1500.0 * problem.control_step)
    assert abs(float(integrate_period(problem, x, u, stiff).x[0, 1]) - rate) > 1.0

    plant = Nominal(problem, stiff).begin(x)
    plant.step(u)
    assert abs(float(plant.x[0, 1]) - rate) < 2e-4 * 2.0
    observer = Observer(problem, make_sensing(problem), [1])
    counts = {
        "plant": steps_for(problem, stiff),
        "rows": Harsh(problem, Harshness(), torch.stack([problem.theta, stiff])).smooth_steps,
        "nominal": Problem(problem.robot.with_nominal(stiff.tolist())).substeps,
        "told": Problem(problem.robot, given=resolve(problem.robot, ["damping"])).substeps,
        "estimated": observer.problem.substeps,
        "limit": NonlinearProgram(problem.robot.with_kernels("casadi"), stiff.double().numpy(), seconds=0.1).steps,
    }
    both = Game(problem, [ParameterAdversary(0.9)]).steps  # half of the mass, and nearly twice the damping
    assert both == Episodes(problem, 1, "gaussian", 0.9, None, 1).steps > problem.substeps
    assert Game(problem, [ParameterAdversary(9.0)]).steps == 2 * counts["plant"]  # half of the mass
    assert set(counts.values()) == {counts["plant"]}, counts
    for none_changed in (None, problem.theta, problem.theta.expand(3, -1)):
        assert steps_for(problem, none_changed) == problem.robot.metadata.task.integration_steps < counts["plant"]


def test_parameters_that_no_number_of_steps_resolves_are_refused(load: Load) -> None:
    problem = Problem(load("furuta"))
    with pytest.raises(SolverError, match="moves too fast to be simulated: 64 Runge-Kutta steps"):
        steps_for(problem, problem.theta * 1e-6)
