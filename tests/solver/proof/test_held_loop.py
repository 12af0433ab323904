"""One control period, enclosed: SciPy's integrator, the shipped policy and wrong robots lie within the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from sympy import Abs, Expr, cos, pi, sign, sin

import modelgen
from modelgen import LogCos, Robot
from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.problem import Problem
from solver.proof.held_loop import HeldLoop
from solver.proof.motion import HeldPolicy, Step
from solver.proof.period import Cells, one_period
from solver.training.solution import Solution, load_solution

ROBOTS = ["pendulum-rfvi", "cartpole-rfvi", "planar_arm2-cfvi"]  # one input, four states, two inputs
COUNT = 20


def commanded(solution: Solution, x: Array) -> Array:
    """Inputs (N, m) of the shipped policy at states (N, n)."""
    policy = solution.run.settings.hold.policy(solution.problem, solution.value)
    states = torch.as_tensor(x, dtype=torch.float32)
    return np.asarray(policy.respond(states, solution.value(states)[1]).u, np.float64)


@pytest.mark.parametrize("name", ["cartpole_quanser-rfvi", "planar_quadrotor-rfvi"])
def test_numbers_of_a_proof_are_those_of_the_model(name: str) -> None:
    loop = HeldLoop(load_solution(name))  # the policy itself has them in single precision
    assert loop.nominal.tolist() == [parameter.value for parameter in loop.robot.metadata.parameters]
    assert loop.trim.tolist() == [entry.trim for entry in loop.robot.metadata.inputs]


def after(robot: CompiledRobot, x: Array, u: Array, theta: Array, seconds: float) -> Array:
    """State (n,) after a period, by SciPy's method of eighth order."""

    def rate(_: float, at: Array) -> Array:
        return np.asarray(robot.dynamics(at[None], u[None], theta[None])[0])

    return np.asarray(solve_ivp(rate, (0.0, seconds), x, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1])


@pytest.mark.parametrize("width", [1e-3, 0.05])
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.slow
def test_trajectories_of_wrong_robots_lie_within_the_bounds(name: str, width: float) -> None:
    """(1 + C) y and the disturbance contain y after a period, also with the symbols at the cell's own values."""
    solution, generator = load_solution(name), np.random.default_rng(0)
    loop = HeldLoop(solution)
    robot = solution.problem.robot.with_kernels()
    n = len(loop.target)
    back, radius = np.linalg.inv(np.linalg.cholesky(loop.cost)).T, 0.4 * float(np.sqrt(loop.level))
    y = generator.normal(size=(COUNT, n))
    y *= radius * generator.uniform(0.2, 0.9, (COUNT, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
    frame = loop.frame(back)
    r = frame.basis.shape[1]
    theta = loop.nominal * generator.uniform(0.97, 1.03, (COUNT, len(loop.nominal)))
    at = np.hstack([y @ frame.basis, theta])
    reach = np.concatenate([np.full(r, radius), 0.5 * np.abs(loop.nominal)])
    middle = at + width * reach * generator.uniform(-1, 1, at.shape)
    period = one_period(loop, Cells(middle - width * reach, middle + width * reach), frame, radius, 1e-5 * loop.limit)
    assert period.known.all()
    e = y @ back.T
    u = commanded(solution, loop.target + e)
    ends = np.array([after(robot, loop.target + e[k], u[k], theta[k], loop.step) for k in range(COUNT)])
    change = np.linalg.solve(back, (ends - loop.target - e).T).T
    t = (at - middle) / (width * reach)
    slopes, known = period.change.slopes, at.shape[1]  # the chords' symbols are not known
    centre = period.change.middle + np.einsum("ks,ksij->kij", t, slopes[:, :known])
    spread = period.change.rest + np.abs(slopes[:, known:]).sum(1)
    missed = np.abs(change - np.einsum("kij,kj->ki", centre, y))
    bound = np.einsum("kij,kj->ki", spread, np.abs(y)) + period.disturbance[:, None]
    assert (missed <= bound + 1e-11).all()


@pytest.mark.slow
def test_bounds_at_one_state_are_narrow() -> None:
    """Otherwise every enclosure would be right."""
    loop = HeldLoop(load_solution("planar_arm2-rfvi"))
    back, radius = np.linalg.inv(np.linalg.cholesky(loop.cost)).T, 1e-3 * float(np.sqrt(loop.level))
    frame = loop.frame(back)
    at = np.concatenate([0.5 * radius * frame.basis[0], loop.nominal])[None]
    period = one_period(loop, Cells(at, at), frame, radius, 0.0 * loop.limit)
    assert period.known.all()
    assert (period.change.rest < 1e-3 * np.abs(period.change.middle).max()).all()


def rubbing(friction: Callable[[Expr], Expr]) -> Solution:
    """The shipped pendulum's policy on a pendulum with another friction."""
    robot = Robot("rubbing", "A rod with friction")
    angle = robot.revolute("angle", continuous=True, rate_limit=8)
    mass = robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2))
    length = robot.parameter("length", 1.0, "m", bounds=(0.5, 2))
    torque = robot.input("torque", 2.5, "N m")
    robot.body(mass, mass * length**2 / 12, (length / 2 * sin(angle), length / 2 * cos(angle)), angle)
    robot.apply(angle, torque + friction(angle.rate))
    robot.task(
        state_cost=angle.rate**2 + sin(angle / 2) ** 2,
        action_cost=LogCos(0.5),
        start={"angle": (pi, 0.1)},
        horizon=5,
        weight_at_horizon=0.65,
        control_rate=125,
    )
    problem = Problem(modelgen.compile(robot, dtype="float32"))
    return replace(load_solution("pendulum-rfvi"), problem=problem)


@pytest.mark.filterwarnings("ignore::modelgen.errors.ReliabilityWarning")
@pytest.mark.slow
def test_a_force_that_jumps_is_refused() -> None:
    """The slope of a sign is zero, so that the formulas would leave the friction out."""
    with pytest.raises(SolverError, match="sign"):
        HeldLoop(rubbing(lambda rate: -0.2 * sign(rate)))


@pytest.mark.slow
def test_a_kink_is_refused_where_taylor_s_formula_is_used() -> None:
    """Its third derivative by time is no number at the kink."""
    solution = rubbing(lambda rate: -0.2 * Abs(rate) * rate)
    loop = HeldLoop(solution)
    with pytest.raises(SolverError, match="Abs"):
        Step(HeldPolicy(solution, loop, patched=True), [(1.0, 0.0)] * 2, 0.0)
