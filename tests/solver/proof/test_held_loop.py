"""One control period, enclosed: SciPy's integrator and finite differences lie within the bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.game.policies import make_policy
from solver.proof.balls import Balls
from solver.proof.held_loop import HeldLoop
from solver.training.solution import Solution, load_solution

ROBOTS = ["pendulum-rfvi", "cartpole-rfvi", "planar_arm2-cfvi"]  # one input, four states, two inputs
WIDTH = 1e-3  # half width of the boxes, of the distance from the target


def commanded(solution: Solution, x: Array) -> Array:
    """Inputs (N, m) of the shipped policy at states (N, n)."""
    policy = make_policy(solution.problem, solution.value, solution.run.settings.reaction_periods)
    states = torch.as_tensor(x, dtype=torch.float32)
    return np.asarray(policy.respond(states, solution.value(states)[1]).u, np.float64)


def after(robot: CompiledRobot, x: Array, u: Array, theta: Array, seconds: float) -> Array:
    """State (n,) after a period, by SciPy's method of eighth order."""

    def rate(_: float, at: Array) -> Array:
        return np.asarray(robot.dynamics(at[None], u[None], theta[None])[0])

    return np.asarray(solve_ivp(rate, (0.0, seconds), x, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1])


@pytest.mark.parametrize("name", ROBOTS)
def test_trajectories_of_wrong_robots_lie_within_the_bounds(name: str) -> None:
    solution, generator = load_solution(name), np.random.default_rng(0)
    loop = HeldLoop(solution)
    robot = solution.problem.robot.with_kernels()
    nominal = loop.nominal.middle
    reach = 0.2 * np.sqrt(loop.level / np.diag(loop.cost))
    e = reach * generator.uniform(-1, 1, (20, len(reach)))
    theta = nominal * generator.uniform(0.97, 1.03, (20, len(nominal)))
    u = commanded(solution, loop.target + e)
    wrong = loop.with_parameters(Balls(nominal, 0.03 * np.abs(nominal)))
    period = wrong.period(Balls(e + WIDTH * reach * 0.5, np.broadcast_to(WIDTH * reach, e.shape).copy()))
    assert period.known.all()
    ends = np.array([after(robot, loop.target + e[k], u[k], theta[k], loop.step) for k in range(20)])
    change = ends - loop.target - e
    rounding = 1e-5 * (period.by_input.largest @ loop.limit)
    assert (np.abs(change - period.change.middle) <= period.change.radius + rounding + 1e-12).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_derivatives_lie_within_the_bounds_of_the_box(name: str) -> None:
    """The difference of the changes of two states in a box is a matrix of the bounds times their difference."""
    solution, generator = load_solution(name), np.random.default_rng(1)
    loop = HeldLoop(solution)
    reach = 0.2 * np.sqrt(loop.level / np.diag(loop.cost))
    middle = reach * generator.uniform(-1, 1, (50, len(reach)))
    half = 0.05 * reach
    period = loop.period(Balls(middle, np.broadcast_to(half, middle.shape).copy()))
    shifts = half * generator.uniform(-1, 1, (2, *middle.shape))
    first, second = (loop.period(Balls.exact(middle + shift)).change.middle for shift in shifts)
    between = (shifts[0] - shifts[1])[..., None]
    expected = (period.by_error.middle @ between)[..., 0]
    bound = (period.by_error.radius @ np.abs(between))[..., 0]
    assert (np.abs(first - second - expected) <= bound + 1e-12).all()


def test_bounds_at_one_state_are_narrow() -> None:
    """Otherwise every enclosure would be right."""
    loop = HeldLoop(load_solution("cartpole-rfvi"))
    period = loop.period(Balls.exact(0.1 * np.sqrt(loop.level / np.diag(loop.cost))[None]))
    assert (period.change.radius < 1e-3 * np.abs(period.change.middle)).all()
