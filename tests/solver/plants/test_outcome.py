"""Outcome of rollouts: the success rule, statistics, and the digits of a printed return."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata, Task
from solver.plants.outcome import (
    Outcome,
    decimals,
    rollouts,
    sample_starts,
    succeeded,
    summary,
    until_rest,
    without_input,
)
from solver.plants.plant import Nominal
from solver.problem import Problem
from solver.training.solution import load_solution

Load = Callable[[str], CompiledRobot]


def with_task(robot: CompiledRobot, task: Task) -> Any:
    """The robot with another task."""
    return Changed(robot, dataclasses.replace(robot.metadata, task=task))


class Changed:
    """Robot with other metadata."""

    def __init__(self, robot: CompiledRobot, metadata: Metadata) -> None:
        self._robot, self.metadata = robot, metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robot, name)


DEGREE = math.radians(1.0)


def ends(problem: Problem, *ended: list[float]) -> Tensor:
    """States (64, N, n) of rollouts at rest at the target, followed by the given last states."""
    x = problem.target.repeat(64, len(ended), 1)
    x[-1] = torch.tensor(ended)
    return x


def test_success_of_a_continuous_joint_needs_five_degrees_and_half_a_radian_per_second(load: Load) -> None:
    problem = Problem(load("pendulum"))  # 5 % of a half turn are 9 degrees, and of 8 rad/s 0.4 rad/s
    near = [[4.9 * DEGREE, 0.49], [-4.9 * DEGREE, -0.49]]
    far = [[5.1 * DEGREE, 0.0], [0.0, 0.51], [0.0, -0.51], [math.pi, 0.0]]
    assert succeeded(problem, ends(problem, *near, *far)).tolist() == [True] * 2 + [False] * 4


@pytest.mark.parametrize(
    ("name", "tolerances"),
    [
        ("furuta", [0.1, 5 * DEGREE, 1.5, 2.0]),  # limits 2 rad, none, 30 and 40 rad/s
        ("cartpole", [0.025, 5 * DEGREE, 0.25, 1.0]),  # 0.5 m, none, 5 m/s, 20 rad/s
        ("ball_on_beam", [0.025, 5 * DEGREE, 0.1, 0.5]),  # 0.5 m, 0.8 rad, 2 m/s, 5 rad/s
    ],
)
def test_success_needs_every_coordinate_and_rate_within_its_tolerance(
    load: Load, name: str, tolerances: list[float]
) -> None:
    """5 % of the limit; for angles at least five degrees and half a radian per second."""
    problem = Problem(load(name))
    for share, success in ((0.98, True), (-0.98, True), (1.02, False), (-1.02, False)):
        x = ends(problem, *(share * torch.diag(torch.tensor(tolerances)) + problem.target).tolist())
        assert succeeded(problem, x).tolist() == [success] * 4


def test_success_needs_the_last_half_second_at_the_target(load: Load) -> None:
    """At 125 Hz these are the last 62 periods (0.496 s), and the state at their start."""
    problem = Problem(load("pendulum"))
    for before_the_end, success in ((0, False), (30, False), (62, False), (63, True), (100, True)):
        x = problem.target.repeat(126, 1, 1)
        x[125 - before_the_end, 0, 0] = 0.2
        assert succeeded(problem, x).tolist() == [success], before_the_end
    passes = torch.stack([torch.linspace(-1.0, 0.0, 126), torch.full((126,), 0.1)], 1)[:, None]
    assert not succeeded(problem, passes)  # it ends at the target, but has just arrived
    assert succeeded(problem, problem.target.repeat(3, 1, 1)).tolist() == [True]  # all of a shorter rollout counts
    assert succeeded(problem, x[1:3]).tolist() == [True]


def test_success_of_a_short_task_needs_its_last_fifth_at_the_target(load: Load) -> None:
    """The task has 0.4 s at 125 Hz: the last 0.08 s are ten periods."""
    robot = load("pendulum")
    problem = Problem(with_task(robot, dataclasses.replace(robot.metadata.task, horizon=0.4)))
    for before_the_end, success in ((0, False), (10, False), (11, True)):
        x = problem.target.repeat(51, 1, 1)
        x[50 - before_the_end, 0, 0] = 0.2
        assert succeeded(problem, x).tolist() == [success], before_the_end


def test_rollout_with_a_state_at_its_limit_is_not_a_success(load: Load) -> None:
    """The end stop of the cart is within the tolerance of its target. The seam of an angle is not a limit."""
    robot = load("cartpole")
    target = (0.49, math.pi - 0.01, 0.0, 0.0)
    task = dataclasses.replace(robot.metadata.task, target=target)
    problem = Problem(with_task(robot, task))
    x = ends(problem, [0.499, math.pi - 0.01, 0.0, 0.0], [0.5, math.pi - 0.01, 0.0, 0.0], [0.49, -math.pi, 0.0, 0.0])
    assert succeeded(problem, x).tolist() == [True, False, True]


def test_free_states_of_a_success_may_have_any_value_except_their_limit(load: Load) -> None:
    robot = load("cartpole")
    base = robot.metadata.task
    x = torch.tensor([[0.3, 0.0, 0.0, 0.0], [0.3, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]])[None]
    successes = {
        free: succeeded(Problem(with_task(robot, dataclasses.replace(base, free=free))), x).tolist()
        for free in ((), ("cart",), ("cart", "cart_rate"), ("pole",))
    }
    assert successes == {
        (): [False, False, False, False],
        ("cart",): [True, False, False, False],
        ("cart", "cart_rate"): [True, True, False, False],
        ("pole",): [False, False, True, False],
    }


def test_success_of_the_reaction_wheel_allows_any_angle_of_its_wheel(load: Load) -> None:
    problem = Problem(load("reaction_wheel"))
    x = ends(problem, [0.05, 2.9, 0.1, 49.0], [0.05, 2.9, 0.1, 51.0], [0.1, 0.0, 0.0, 0.0])  # 5 % of 1 000 rad/s are 50
    assert succeeded(problem, x).tolist() == [True, False, False]


def test_rollout_with_nan_is_not_a_success(load: Load) -> None:
    problem = Problem(load("pendulum"))
    assert succeeded(problem, torch.full((5, 2, 2), math.nan)).tolist() == [False, False]
    assert succeeded(problem, ends(problem, [math.nan, 0.0], [0.0, math.nan])).tolist() == [False, False]


def test_summary_has_the_statistics_of_known_rollouts() -> None:
    result = Outcome(
        torch.tensor([-1.0, -3.0]),
        torch.tensor([-0.5, -0.5]),
        torch.tensor([True, False]),
        torch.tensor([[False, True], [False, False]]),
    )
    spread = 1.96 * math.sqrt(2.0)
    expected = dict(return_mean=-2.5, return_spread=spread, return_worst=-3.5, success_rate=0.5, limit_rate=0.5)
    assert summary(result) == pytest.approx(expected | dict(state_reward=-2.0, action_reward=-0.5))


def test_return_spread_of_one_rollout_is_zero() -> None:
    one = torch.tensor([-1.0])
    assert summary(Outcome(one, one, one > 0.0, one[None] > 0.0))["return_spread"] == 0.0


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.018654, "-0.0187"), (-1.2345, "-1.23"), (-30.6123, "-30.61"), (-6339.1, "-6339.10"), (0.0, "0.00")],
)
def test_returns_of_any_size_are_printed_with_three_digits(value: float, text: str) -> None:
    assert f"{value:.{decimals(value)}f}" == text
    assert len(f"{value:.{decimals(value, least=1)}f}") == len(text) - 1


def test_return_that_is_nan_is_printed() -> None:
    assert f"{float('nan'):.{decimals(float('nan'))}f}" == "nan"


@pytest.mark.slow
def test_rollouts_until_rest_are_paid_as_those_of_the_whole_horizon() -> None:
    """On robots with other masses, which rest beside the target or arrive later."""
    solution = load_solution("ball_on_beam-cfvi")
    problem, act, starts = solution.problem, solution.controller(), sample_starts(solution.problem, 16, 3)
    theta = problem.theta * torch.linspace(0.9, 1.1, 16)[:, None]
    whole, found = rollouts(problem, act, starts, Nominal(problem, theta)), until_rest(problem, act, starts, theta)
    assert bool(whole.success.all() and found.success.all())
    assert float(found.seconds.mean()) < 0.6 * problem.horizon
    assert float(found.returns.mean()) == pytest.approx(float(whole.returns.mean()), rel=1e-3)
    assert torch.allclose(found.returns, whole.returns, rtol=0.0, atol=0.01 * float(whole.returns.abs().max()))


@pytest.mark.slow
def test_a_robot_that_drifts_away_slowly_does_not_rest(load: Load) -> None:
    """A satellite without torque turns at a constant rate: by 0.03 rad and by 0.3 rad in its 15 s."""
    problem = Problem(load("satellite"))
    x = problem.target.repeat(3, 1)
    x[:, 4] = torch.tensor([0.0, 0.002, 0.02])
    whole, found = rollouts(problem, without_input(problem), x), until_rest(problem, without_input(problem), x)
    assert whole.success.tolist() == found.success.tolist() == [True, True, False]
    assert found.seconds[0] < found.seconds[2] == pytest.approx(problem.horizon)
