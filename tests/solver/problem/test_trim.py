"""A robot whose target needs an input within two limits: linearisation by hand, SciPy's Riccati equation, limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import solve_continuous_are
from sympy import cos, sin

import modelgen
from modelgen import LogCos, Quadratic, Robot
from modelgen.builder import build_artifact
from solver.game.policies import Hold, _contracted, _one_input, _semidefinite
from solver.gym.environment import RobotEnv
from solver.local.basin import cost_to_go, find_basin
from solver.local.linearization import linearization
from solver.oracles.search import random_motions, straight
from solver.oracles.trajectory import NonlinearProgram
from solver.plants.harsh import Harsh, Harshness
from solver.plants.outcome import controller, rollouts, without_input
from solver.preflight import _obstacle
from solver.preflight.warnings import _not_at_rest
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.value.family import Basin

G, MASS, WEIGHT, HORIZON = 9.81, 2.0, 0.002, 5.0
RHO = -np.log(0.65) / HORIZON


def lander() -> Robot:
    robot = Robot("lander")
    height = robot.prismatic("height", limit=5, rate_limit=6)
    mass = robot.parameter("mass", MASS, "kg", tolerance=0.2)
    robot.point_mass(mass, (0, height))
    robot.apply(height, robot.input("thrust", (0, 80), "N"))
    robot.task(
        state_cost=height**2 + 0.1 * height.rate**2,
        action_cost=Quadratic(WEIGHT),
        start={"height": (1, 0.3)},
        horizon=HORIZON,
        weight_at_horizon=0.65,
        control_rate=50,
    )
    return robot


def quadrotor() -> Robot:
    robot = Robot("rotors")
    across, height = (robot.prismatic(name, limit=2, rate_limit=5) for name in ("across", "height"))
    pitch = robot.revolute("pitch", continuous=True, rate_limit=15)
    robot.body(robot.parameter("mass", 0.5, "kg", tolerance=0.3), 4e-3, (across, height), pitch)
    right, left = (robot.input(name, (0, 4.7), "N") for name in ("right", "left"))
    robot.apply(across, (right + left) * sin(pitch))
    robot.apply(height, (right + left) * cos(pitch))
    robot.apply(pitch, 0.25 * (left - right))
    rates = across.rate**2 + height.rate**2 + pitch.rate**2
    robot.task(
        state_cost=across**2 + height**2 + sin(pitch / 2) ** 2 + 0.1 * rates,
        action_cost=LogCos(0.2),
        start={"across": (0, 0.5)},
        horizon=HORIZON,
        weight_at_horizon=0.65,
        control_rate=100,
    )
    return robot


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("generated")
    for robot in (lander(), quadrotor()):
        build_artifact(robot, folder)
    return str(folder)


@pytest.fixture(scope="module")
def problem(generated: str) -> Problem:
    return Problem(load_robot("lander", "cpu", generated))


@pytest.mark.slow
def test_the_linearisation_at_the_trim_has_the_slope_of_the_thrust(generated: str) -> None:
    """A rotor's thrust of m g/2 turns with the body: the horizontal acceleration is g pitch."""
    robot = load_robot("rotors", "cpu", generated)
    local = linearization(robot)
    np.testing.assert_allclose(robot.trim, 0.5 * G / 2, rtol=1e-6)
    np.testing.assert_allclose(local.drift, 0.0, atol=1e-5)
    expected = np.zeros((6, 6))
    expected[[0, 1, 2], [3, 4, 5]] = 1.0
    expected[3, 2] = G
    np.testing.assert_allclose(local.A, expected, atol=1e-5)


@pytest.mark.slow
def test_the_cost_to_go_is_that_of_scipys_riccati_equation(problem: Problem) -> None:
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1 / MASS]])
    expected = solve_continuous_are(A - RHO / 2 * np.eye(2), B, np.diag([1.0, 0.1]), np.array([[WEIGHT]]))
    found = cost_to_go(problem)
    assert found is not None
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    basin = find_basin(problem, Hold(1.0))
    assert isinstance(basin, Basin)
    x = torch.tensor([[0.1, 0.0]])

    def value(at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return -basin.distance(at), -2.0 * basin.error(at) @ basin.cost

    held = rollouts(problem, controller(problem, value, Hold(1.0)), x)
    P = solve_continuous_are(A, B, np.diag([1.0, 0.1]), np.array([[WEIGHT]]))
    assert -float(held.returns[0]) == pytest.approx(float(P[0, 0]) * 0.01, rel=0.1)
    np.testing.assert_allclose(held.u[-1], problem.trim[None], rtol=1e-3)
    assert not _obstacle(linearization(problem.robot))
    assert not _not_at_rest(problem)


@pytest.mark.slow
def test_an_optimal_motion_is_the_regulators_and_within_both_limits(generated: str) -> None:
    program = NonlinearProgram(modelgen.load("lander", backend="casadi", directory=generated))
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1 / MASS]])
    P = solve_continuous_are(A, B, np.diag([1.0, 0.1]), np.array([[WEIGHT]]))
    near = program.solve(np.array([0.1, 0.0]), straight(program, np.array([0.1, 0.0])))
    assert near is not None
    assert -near.reward == pytest.approx(float(P[0, 0]) * 0.01, rel=0.02)
    start = np.array([4.0, 0.0])
    far = program.solve(start, random_motions(program, start, 1, 0)[0])
    assert far is not None
    assert far.u.min() == pytest.approx(0.0, abs=1e-3)  # it falls freely at first
    assert far.u.max() <= 80 + 1e-6
    np.testing.assert_allclose(far.u[-30:], MASS * G, rtol=0.05)


def test_the_environments_actions_span_the_range(generated: str) -> None:
    for action, thrust in ((-1.0, 0.0), (0.0, 40.0), (1.0, 80.0)):
        env = RobotEnv("lander", generated=generated)
        env.reset(seed=0)
        x = env.episodes.x.clone()
        env.step(np.array([action], np.float32))
        gained = (env.episodes.x - x)[0, 1] / env.episodes.problem.control_step
        steps = env.episodes.hold
        assert float(gained) / steps == pytest.approx(thrust / MASS - G, rel=1e-3)


def test_plants_and_controllers_keep_to_both_limits(problem: Problem) -> None:
    x = torch.zeros(3, 2)
    idle = rollouts(problem, without_input(problem), x)
    assert float(idle.x.abs().max()) < 1e-4  # the trim holds the robot
    assert float(idle.returns.abs().max()) < 1e-6
    plant = Harsh(problem, Harshness(saturation=1.0, delay=2.0)).begin(x)
    plant.step(torch.full((3, 1), 80.0))
    torch.testing.assert_close(plant.x, x, atol=1e-5, rtol=0.0)  # delayed: the trim acts
    for sent, acts in ((80.0, 72.0), (-5.0, 0.0), (50.0, 50.0)):
        plant = Harsh(problem, Harshness(saturation=1.0)).begin(x)
        plant.step(torch.full((3, 1), sent))
        rate = float(plant.x[0, 1]) / problem.control_step
        assert rate == pytest.approx(acts / MASS - G, rel=1e-4)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_held_inputs_satisfy_their_fixed_point_about_the_trim(generated: str, side: float) -> None:
    """u = grad g~(w - P (u - u0)) for one input and for two."""
    for name in ("lander", "rotors"):
        problem = Problem(load_robot(name, "cpu", generated))
        cost, m = problem.action_cost, len(problem.trim)
        generator = torch.Generator().manual_seed(8)
        p = 0.3 * _semidefinite(torch.randn(200, m, m, generator=generator))
        w = side * torch.rand(200, m, generator=generator)
        argument = _one_input(cost, cost.policy(w) - cost.trim, w, p[:, 0]) if m == 1 else _contracted(cost, w, p)
        u = cost.policy(argument)
        again = cost.policy(w - torch.einsum("bij,bj->bi", p, u - problem.trim))
        assert float(((u - again) / problem.input_limits).abs().max()) < 1e-3
        assert float((u - problem.trim).abs().max()) > 0.1
