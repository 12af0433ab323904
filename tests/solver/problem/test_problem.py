"""Problem: domain, limits, start distributions, costs and time steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import solver
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.problem import Problem
from tests.closeness import assert_close

Load = Callable[[str], CompiledRobot]


def test_confine_wraps_continuous_angles_and_clips_other_states(load: Load) -> None:
    problem = Problem(load("furuta"))  # arm 2 rad, pendulum wraps, rates 30 and 40
    before = torch.tensor([[2.5, math.pi + 0.1, -31.0, 41.0], [-9.0, -7.0, 5.0, -100.0]])
    x = problem.confine(before)
    expected = [[2.0, 0.1 - math.pi, -30.0, 40.0], [-2.0, 2.0 * math.pi - 7.0, 5.0, -40.0]]
    np.testing.assert_allclose(x, expected, atol=1e-5)
    assert before[1, 0] == -9.0  # its argument stays as it was
    problem.confine_in_place(before)
    assert_close(before, x)
    assert problem.at_limit(x).tolist() == [[True, False, True, True], [True, False, False, True]]


@pytest.mark.parametrize("name", ["pendulum", "furuta", "double_pendulum"])
def test_domain_samples_are_uniform(load: Load, name: str) -> None:
    problem = Problem(load(name))
    x = problem.sample_domain(20000, torch.Generator().manual_seed(0)) / problem.state_limits
    assert bool((x.abs() <= 1.0).all())
    np.testing.assert_allclose(x.mean(0), 0.0, atol=0.02)
    np.testing.assert_allclose(x.std(0), 1.0 / math.sqrt(3.0), rtol=0.02)


def test_starts_have_the_mean_and_deviation_of_the_task(load: Load) -> None:
    problem = Problem(load("cartpole"))
    task = problem.robot.metadata.task
    x = problem.sample_starts(20000, torch.Generator().manual_seed(0))
    error = (x - torch.tensor(task.start_mean)).double().numpy()
    for i in problem.continuous:
        error[:, i] = (error[:, i] + math.pi) % (2.0 * math.pi) - math.pi
    np.testing.assert_allclose(error.std(0), task.start_deviation, rtol=0.05, atol=1e-6)
    np.testing.assert_allclose(error.mean(0), 0.0, atol=0.05 * max(task.start_deviation))


def test_rates_are_the_derivatives_of_the_coordinates(load: Load) -> None:
    problem = Problem(load("furuta"))
    np.testing.assert_allclose(problem.rates(torch.tensor([[0.1, 0.2, 3.0, -4.0]])), [[3.0, -4.0]])
    np.testing.assert_allclose(problem.largest_rates, [30.0, 40.0])


def test_state_cost_of_angles_beyond_the_seam_is_periodic(load: Load) -> None:
    """A stage of the integrator may pass the seam. The cart-pole's barrier on the pole is not periodic."""
    past = math.pi + 0.2
    for name, unwrapped in (("cartpole", [1]), ("pendulum", []), ("double_pendulum", []), ("planar_arm2", [])):
        problem = Problem(load(name))
        assert problem.unwrapped_costs == unwrapped
        for i in problem.continuous:
            x = problem.sample_domain(20, torch.Generator().manual_seed(i))
            x[:, i] = past - 2.0 * math.pi
            expected = problem.state_cost(x)
            x[:, i] = past
            before = x.clone()
            torch.testing.assert_close(problem.state_cost(x), expected, rtol=1e-4, atol=1e-4)
            assert torch.equal(x, before)
    x = torch.tensor([[0.0, past, 0.0, 0.0]])
    cost = load("cartpole").state_cost(x)[0]  # as in the model file: it rises towards the barrier at 1.1 pi
    assert float(cost) > 1.05 * float(Problem(load("cartpole")).state_cost(x))


def test_time_steps_and_discount_follow_from_the_task(load: Load) -> None:
    problem = Problem(load("furuta"))
    assert (problem.control_step, problem.substeps) == (pytest.approx(0.008), 2)
    authors = problem.integrated_by("euler")
    assert (authors.control_step, authors.substeps) == (pytest.approx(0.008), 4)  # at 500 Hz
    assert problem.discount(625) == pytest.approx(0.65)  # the weight at the horizon of 5 s


def test_a_name_is_no_robot_and_a_robot_no_problem(load: Load) -> None:
    robot: Any = load("pendulum")
    name: Any = "pendulum"
    for words, call in (
        (r"robot is 'pendulum'.*modelgen\.load", lambda: solver.Problem(name)),
        ("scheme is 'rk5'; give 'rk4'", lambda: solver.Problem(robot, scheme="rk5")),  # type: ignore[arg-type]
        ("give a Problem", lambda: solver.Game(robot)),
        (r"adversaries\[0\] is 0\.3", lambda: solver.Game(Problem(robot), [0.3])),  # type: ignore[list-item]
    ):
        with pytest.raises(SolverError, match=words):
            call()
