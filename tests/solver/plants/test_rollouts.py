"""Evaluation: the success rule, changed parameters, and returns against a simulation written here."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import modelgen
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.errors import SolverError
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts, succeeded, summary
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.parameters import changed_parameters
from solver.problem.problem import Problem

Load = Callable[[str], CompiledRobot]


def linear(problem: Problem) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A policy that is easy to write twice: 3 sin(angle) - rate, clipped to 2.4."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.clamp(3.0 * torch.sin(x[:, :1]) - x[:, 1:2], -2.4, 2.4)
        return u, problem.action_cost.cost(u)

    return act


def simulate(angle: float, rate: float, mass: float) -> tuple[float, float, float, float]:
    """The pendulum's 5 s from its textbook equation: state reward, action reward, last angle, last rate."""
    state_reward = action_reward = 0.0
    a, beta = 2.501, 4.0 * 2.5**2 * 0.5 / math.pi
    for _ in range(625):
        u = min(2.4, max(-2.4, 3.0 * math.sin(angle) - rate))
        state_reward -= 0.008 * ((math.pi * math.sin(angle / 2)) ** 2 + 0.1 * rate**2)
        action_reward += 0.008 * 2.0 * beta * a / math.pi * math.log(math.cos(math.pi * u / (2.0 * a)))
        for _ in range(4):
            acceleration = 1.5 * 9.81 * math.sin(angle) + 3.0 * u / mass
            angle, rate = angle + 0.002 * rate, max(-8.0, min(8.0, rate + 0.002 * acceleration))
            angle = (angle + math.pi) % (2.0 * math.pi) - math.pi
    return state_reward, action_reward, angle, rate


@pytest.mark.parametrize("mass", [1.0, 1.4])
def test_returns_equal_an_independent_simulation(load: Load, mass: float) -> None:
    problem = Problem(load("pendulum"))
    starts = [[2.9, 0.0], [0.1, 0.0], [-1.0, 2.0], [-3.0, -4.0]]
    result = rollouts(problem, linear(problem), torch.tensor(starts), Nominal(problem, torch.tensor([mass, 1.0])))
    expected = np.array([simulate(angle, rate, mass) for angle, rate in starts])
    np.testing.assert_allclose(result.state_reward, expected[:, 0], rtol=2e-3)
    np.testing.assert_allclose(result.action_reward, expected[:, 1], rtol=2e-3)
    np.testing.assert_allclose(result.returns, expected[:, 0] + expected[:, 1], rtol=2e-3)
    np.testing.assert_allclose(result.x[-1], expected[:, 2:], atol=2e-2)
    assert result.x.shape == (626, 4, 2)
    assert result.u.shape == (625, 4, 1)


def test_success_needs_five_degrees_and_half_a_radian_per_second(load: Load) -> None:
    problem = Problem(load("pendulum"))
    degree = math.radians(1.0)
    x = torch.tensor([[4.9 * degree, 0.49], [-4.9 * degree, -0.49], [5.1 * degree, 0.0], [0.0, 0.51], [math.pi, 0.0]])
    assert succeeded(problem, x).tolist() == [True, True, False, False, False]


def test_success_counts_every_continuous_joint_and_its_own_rate(load: Load) -> None:
    problem = Problem(load("double_pendulum"))
    x = torch.zeros(5, 4)
    for i in range(4):
        x[i + 1, i] = 0.6
    assert succeeded(problem, x).tolist() == [True, False, False, False, False]
    furuta = Problem(load("furuta"))  # the arm and its rate may be anywhere
    x = torch.tensor([[1.5, 0.01, 9.0, 0.1], [0.0, 0.2, 0.0, 0.0], [0.0, 0.0, 0.0, 0.6]])
    assert succeeded(furuta, x).tolist() == [True, False, False]


def test_nan_is_no_success(load: Load) -> None:
    assert succeeded(Problem(load("pendulum")), torch.full((2, 2), math.nan)).tolist() == [False, False]


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
    np.testing.assert_allclose(changed_parameters(problem, changes), expected, rtol=1e-6)
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
        ("mass=1e39", "cannot read"),
    ],
)
def test_unreadable_changes(load: Load, change: str, message: str) -> None:
    with pytest.raises(SolverError, match=message):
        changed_parameters(Problem(load("pendulum")), [change])


NUMBERS = st.floats().map(str) | st.text(max_size=8)
CHANGES = st.builds("{}{}{}{}".format, st.sampled_from(["mass", "length", "m"]), st.sampled_from(["=", "", "=+"]),
                    NUMBERS, st.sampled_from(["", "x"]))  # fmt: skip


@given(st.lists(CHANGES | st.text(max_size=12), max_size=3))
def test_any_text_ends_in_finite_parameters_or_a_solver_error(changes: list[str]) -> None:
    problem = Problem(modelgen.load("pendulum", dtype="float32", parallel=False))
    try:
        theta = changed_parameters(problem, changes)
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

    monkeypatch.setattr("solver.studies.evaluation.load_controller", lambda *_: (problem, act, "linear"))
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
