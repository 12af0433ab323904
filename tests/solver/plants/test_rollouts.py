"""Evaluation: the success rule, changed parameters, and returns against a simulation written here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from torch import Tensor

import modelgen
from modelgen.loader import CompiledRobot
from modelgen.metadata import Metadata, Task
from solver.cli import main
from solver.commands.changes import read_changes
from solver.errors import SolverError
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts, succeeded, summary
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.parameters import changed_parameters
from solver.problem.problem import Problem

Load = Callable[[str], CompiledRobot]


def with_task(robot: CompiledRobot, task: Task) -> Any:
    """The robot under another task."""
    return Changed(robot, dataclasses.replace(robot.metadata, task=task))


class Changed:
    """A robot with other metadata."""

    def __init__(self, robot: CompiledRobot, metadata: Metadata) -> None:
        self._robot, self.metadata = robot, metadata

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robot, name)


def linear(problem: Problem) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A policy that is easy to write twice: 3 sin(angle) - rate, clipped to 2.4."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.clamp(3.0 * torch.sin(x[:, :1]) - x[:, 1:2], -2.4, 2.4)
        return u, problem.action_cost.cost(u)

    return act


def simulate(starts: NDArray[np.float64], mass: float) -> tuple[NDArray[np.float64], ...]:
    """The pendulum's 5 s from its textbook equation and its cost, by an adaptive method of eighth order.

    State reward (N,), action reward (N,), last angle (N,), last rate (N,). No rate reaches its limit from these starts.
    """
    angle, rate = starts.T
    state_reward, action_reward = np.zeros(len(starts)), np.zeros(len(starts))
    a, beta = 2.501, 4.0 * 2.5**2 * 0.5 / math.pi
    for _ in range(625):
        u = np.clip(3.0 * np.sin(angle) - rate, -2.4, 2.4)
        action_reward += 0.008 * 2.0 * beta * a / math.pi * np.log(np.cos(math.pi * u / (2.0 * a)))

        def flow(_: float, y: NDArray[np.float64], u: NDArray[np.float64] = u) -> NDArray[np.float64]:
            th, w = y.reshape(3, -1)[:2]
            cost = (math.pi * np.sin(th / 2)) ** 2 + 0.1 * w**2
            return np.concatenate([w, 1.5 * 9.81 * np.sin(th) + 3.0 * u / mass, cost])

        begun = np.concatenate([angle, rate, 0.0 * angle])
        found = solve_ivp(flow, (0.0, 0.008), begun, method="DOP853", rtol=1e-9, atol=1e-9)
        angle, rate, cost = found.y[:, -1].reshape(3, -1)
        assert abs(rate).max() < 8.0
        state_reward -= cost
    return state_reward, action_reward, (angle + math.pi) % (2.0 * math.pi) - math.pi, rate


@pytest.mark.parametrize("mass", [1.0, 1.4])
def test_returns_equal_an_independent_simulation(load: Load, mass: float) -> None:
    problem = Problem(load("pendulum"))
    starts = torch.tensor([[2.9, 0.0], [0.1, 0.0], [-1.0, 2.0], [-3.0, -4.0]])
    result = rollouts(problem, linear(problem), starts, Nominal(problem, torch.tensor([mass, 1.0])))
    expected = np.stack(simulate(starts.double().numpy(), mass), 1)
    np.testing.assert_allclose(result.state_reward, expected[:, 0], rtol=2e-5)
    np.testing.assert_allclose(result.action_reward, expected[:, 1], rtol=2e-5)
    np.testing.assert_allclose(result.returns, expected[:, 0] + expected[:, 1], rtol=2e-5)
    np.testing.assert_allclose(result.x[-1], expected[:, 2:], atol=1e-4)
    assert result.x.shape == (626, 4, 2)
    assert result.u.shape == (625, 4, 1)


DEGREE = math.radians(1.0)


def ends(problem: Problem, *ended: list[float]) -> Tensor:
    """(64, N, n): rollouts at rest at the target, the last state of each as given."""
    x = problem.target.repeat(64, len(ended), 1)
    x[-1] = torch.tensor(ended)
    return x


def test_success_of_a_joint_that_wraps_needs_five_degrees_and_half_a_radian_per_second(load: Load) -> None:
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
def test_success_counts_every_coordinate_and_its_rate(load: Load, name: str, tolerances: list[float]) -> None:
    """Five degrees or half a radian per second for angles, or 5 % of the limit where that is more."""
    problem = Problem(load(name))
    for share, success in ((0.98, True), (-0.98, True), (1.02, False), (-1.02, False)):
        x = ends(problem, *(share * torch.diag(torch.tensor(tolerances)) + problem.target).tolist())
        assert succeeded(problem, x).tolist() == [success] * 4


def test_success_counts_the_last_half_second(load: Load) -> None:
    """At 125 Hz: the state that ends the period before, and those of 62 periods (0.496 s)."""
    problem = Problem(load("pendulum"))
    for before_the_end, success in ((0, False), (30, False), (62, False), (63, True), (100, True)):
        x = problem.target.repeat(126, 1, 1)
        x[125 - before_the_end, 0, 0] = 0.2
        assert succeeded(problem, x).tolist() == [success], before_the_end
    passes = torch.stack([torch.linspace(-1.0, 0.0, 126), torch.full((126,), 0.1)], 1)[:, None]
    assert not succeeded(problem, passes)  # ends at the target, but has just arrived
    assert succeeded(problem, problem.target.repeat(3, 1, 1)).tolist() == [True]  # a shorter rollout counts whole
    assert succeeded(problem, x[1:3]).tolist() == [True]


def test_success_of_a_short_task_counts_its_last_fifth(load: Load) -> None:
    """A task of 0.4 s at 125 Hz: the last 0.08 s are ten periods."""
    robot = load("pendulum")
    problem = Problem(with_task(robot, dataclasses.replace(robot.metadata.task, horizon=0.4)))
    for before_the_end, success in ((0, False), (10, False), (11, True)):
        x = problem.target.repeat(51, 1, 1)
        x[50 - before_the_end, 0, 0] = 0.2
        assert succeeded(problem, x).tolist() == [success], before_the_end


def test_a_state_at_its_limit_is_no_success(load: Load) -> None:
    """A cart whose end stop is within reach of its target; the seam of an angle is no limit."""
    robot = load("cartpole")
    target = (0.49, math.pi - 0.01, 0.0, 0.0)
    task = dataclasses.replace(robot.metadata.task, target=target)
    problem = Problem(with_task(robot, task))
    x = ends(problem, [0.499, math.pi - 0.01, 0.0, 0.0], [0.5, math.pi - 0.01, 0.0, 0.0], [0.49, -math.pi, 0.0, 0.0])
    assert succeeded(problem, x).tolist() == [True, False, True]


def test_free_states_may_end_anywhere_but_not_at_their_limit(load: Load) -> None:
    robot = load("cartpole")
    base = robot.metadata.task
    x = torch.tensor([[0.3, 0.0, 0.0, 0.0], [0.3, 0.0, 1.0, 0.0], [0.0, 0.2, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]])[None]
    found = {
        free: succeeded(Problem(with_task(robot, dataclasses.replace(base, free=free))), x).tolist()
        for free in ((), ("cart",), ("cart", "cart_rate"), ("pole",))
    }
    assert found == {
        (): [False, False, False, False],
        ("cart",): [True, False, False, False],
        ("cart", "cart_rate"): [True, True, False, False],
        ("pole",): [False, False, True, False],
    }


def test_the_wheel_of_the_reaction_wheel_may_stop_anywhere(load: Load) -> None:
    problem = Problem(load("reaction_wheel"))
    x = ends(problem, [0.05, 2.9, 0.1, 49.0], [0.05, 2.9, 0.1, 51.0], [0.1, 0.0, 0.0, 0.0])  # 5 % of 1 000 rad/s are 50
    assert succeeded(problem, x).tolist() == [True, False, False]


def test_nan_is_no_success(load: Load) -> None:
    problem = Problem(load("pendulum"))
    assert succeeded(problem, torch.full((5, 2, 2), math.nan)).tolist() == [False, False]
    assert succeeded(problem, ends(problem, [math.nan, 0.0], [0.0, math.nan])).tolist() == [False, False]


def test_rollouts_judge_their_own_end(load: Load) -> None:
    """Balanced by feedback from near the top; pushed away in the last 0.1 s; let hang."""
    problem = Problem(load("pendulum"))
    periods = iter(range(250))

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.clamp(-20.0 * x[:, :1] - 5.0 * x[:, 1:], -2.4, 2.4)
        if next(periods) >= 238:
            u[1] = 2.4
        u[2] = 0.0
        return u, torch.zeros(len(x))

    x = torch.tensor([[0.1, 0.0], [0.1, 0.0], [math.pi, 0.0]])
    assert rollouts(problem, act, x, seconds=2.0).success.tolist() == [True, False, False]


def test_starts_follow_the_task(load: Load) -> None:
    problem = Problem(load("cartpole"))
    x = sample_starts(problem, 20000, 0).double()
    x[:, 1] = torch.remainder(x[:, 1], 2.0 * math.pi)  # hanging is at the seam
    np.testing.assert_allclose(x.mean(0), [0.0, math.pi, 0.0, 0.0], atol=0.01)
    np.testing.assert_allclose(x.std(0), [1e-3**0.5, 5e-2**0.5, 1e-3, 1e-3], rtol=0.03)
    assert torch.equal(sample_starts(problem, 7, 3), sample_starts(problem, 7, 3))
    assert not torch.equal(sample_starts(problem, 7, 3), sample_starts(problem, 7, 4))
    everywhere = sample_starts(problem, 5000, 1)
    assert bool((everywhere.abs() <= problem.state_limits + 1e-5).all())


def test_a_rollout_that_the_simulation_stopped_at_a_limit_is_marked(load: Load) -> None:
    """The second falls from 1.2 rad at 7.9 rad/s and passes 8 rad/s. The angle's seam at pi is no limit."""
    problem = Problem(load("pendulum"))
    starts = torch.tensor([[3.1, 0.5], [1.2, 7.9]])
    result = rollouts(problem, linear(problem), starts, seconds=1.0)
    assert bool((result.x[:, 0, 0].diff().abs() > 6.0).any())  # the first crosses the seam
    assert result.at_limit.tolist() == [[False, False], [False, True]]
    assert summary(result)["limit_rate"] == 0.5
    assert not rollouts(
        problem, linear(problem), torch.tensor([[3.1, 8.0]]), seconds=0.008
    ).at_limit.any()  # slows at once


def test_summary_of_known_rollouts() -> None:
    result = Rollouts(
        torch.zeros(1),
        torch.zeros(1),
        torch.tensor([-1.0, -3.0]),
        torch.tensor([-0.5, -0.5]),
        torch.tensor([True, False]),
        torch.tensor([[False, True], [False, False]]),
    )
    spread = 1.96 * math.sqrt(2.0)
    expected = dict(return_mean=-2.5, return_spread=spread, return_worst=-3.5, success_rate=0.5, limit_rate=0.5)
    assert summary(result) == pytest.approx(expected | dict(state_reward=-2.0, action_reward=-0.5))


def test_spread_of_one_rollout_is_zero() -> None:
    one = torch.tensor([-1.0])
    assert summary(Rollouts(one, one, one, one, one > 0.0, one[None] > 0.0))["return_spread"] == 0.0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], [1.0, 1.0]),
        (["mass=1.3x"], [1.3, 1.0]),
        (["mass=+0.05", "length=-0.25"], [1.05, 0.75]),
        (["mass=2"], [2.0, 1.0]),
        ([" length = 0.5 "], [1.0, 0.5]),
    ],
)
def test_changed_parameters(load: Load, changes: list[str], expected: list[float]) -> None:
    problem = Problem(load("pendulum"))
    np.testing.assert_allclose(changed_parameters(problem, read_changes(changes)), expected, rtol=1e-6)
    np.testing.assert_allclose(problem.theta, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("mas=1", "Did you mean `mass`"),
        ("colour=1", "Parameters: mass, length"),
        ("mass", "cannot read 'mass'"),
        ("mass=", "cannot read"),
        ("mass=x", "cannot read"),
        ("mass=heavy", "cannot read"),
        ("mass=nan", "cannot read"),
        ("mass=1e39", "not finite"),
        ("mass=1_5", "cannot read"),
        ("mass=１.5", "cannot read"),
    ],
)
def test_unreadable_changes(load: Load, change: str, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        changed_parameters(Problem(load("pendulum")), read_changes([change]))


NUMBERS = st.floats().map(str) | st.text(max_size=8)
CHANGES = st.builds("{}{}{}{}".format, st.sampled_from(["mass", "length", "m"]), st.sampled_from(["=", "", "=+"]),
                    NUMBERS, st.sampled_from(["", "x"]))  # fmt: skip


@given(st.lists(CHANGES | st.text(max_size=12), max_size=3))
def test_any_text_ends_in_finite_parameters_or_a_solver_error(changes: list[str]) -> None:
    problem = Problem(modelgen.load("pendulum", dtype="float32", parallel=False))
    try:
        theta = changed_parameters(problem, read_changes(changes))
    except SolverError:
        return
    assert theta.shape == (2,)
    assert bool(torch.isfinite(theta).all())


def test_only_the_owner_of_the_process_sets_the_threads_of_torch(
    load: Load, finished_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rollouts leave them alone; `solver evaluate` works on one thread and puts the old number back."""
    problem, seen = Problem(load("pendulum")), []

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(torch.get_num_threads())
        return linear(problem)(x)

    monkeypatch.setattr("solver.evaluation.evaluation.load_controller", lambda *_: (problem, act, "linear"))
    torch.set_num_threads(2)
    try:
        rollouts(problem, act, sample_starts(problem, 3, 0), seconds=0.04)
        assert set(seen) == {2}
        seen.clear()
        assert main(["evaluate", str(finished_run), "--episodes", "2"]) == 0
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    capsys.readouterr()


def test_rollouts_can_be_changed_and_differentiated(load: Load) -> None:
    """They are made in Torch's inference mode, whose own tensors refuse both."""
    problem = Problem(load("pendulum"))
    found = rollouts(problem, linear(problem), sample_starts(problem, 3, 0), seconds=0.1)
    for each in (found.x, found.u, found.state_reward, found.action_reward):
        each += 1.0
        assert not each.is_inference()
