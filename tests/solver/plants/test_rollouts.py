"""Rollouts: returns, compared with a simulation by SciPy; starts, success, limits, threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.plants.plant import Nominal
from solver.problem import Problem

Load = Callable[[str], CompiledRobot]


def linear(problem: Problem) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Controller 3 sin(angle) - rate, clipped to 2.4."""

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        u = torch.clamp(3.0 * torch.sin(x[:, :1]) - x[:, 1:2], -2.4, 2.4)
        return u, problem.action_cost.cost(u)

    return act


def simulate(starts: NDArray[np.float64], mass: float) -> tuple[NDArray[np.float64], ...]:
    """Rollouts of 5 s of the pendulum from its textbook equation and cost, by an adaptive method of eighth order.

    Returns state reward, action reward, last angle and last rate, (N,) each. No rate may reach its limit.
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

        start = np.concatenate([angle, rate, 0.0 * angle])
        solution = solve_ivp(flow, (0.0, 0.008), start, method="DOP853", rtol=1e-9, atol=1e-9)
        angle, rate, cost = solution.y[:, -1].reshape(3, -1)
        assert abs(rate).max() < 8.0
        state_reward -= cost
    return state_reward, action_reward, (angle + math.pi) % (2.0 * math.pi) - math.pi, rate


@pytest.mark.parametrize("mass", [1.0, 1.4])
@pytest.mark.slow
def test_returns_agree_with_an_independent_simulation(load: Load, mass: float) -> None:
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


def test_success_depends_on_the_end_of_a_rollout(load: Load) -> None:
    """The first is balanced by feedback, the second is pushed away in the last 0.1 s, the third hangs."""
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


def test_starts_have_the_distribution_of_the_task_and_depend_on_the_seed(load: Load) -> None:
    problem = Problem(load("cartpole"))
    x = sample_starts(problem, 20000, 0).double()
    x[:, 1] = torch.remainder(x[:, 1], 2.0 * math.pi)  # hanging is at the seam
    np.testing.assert_allclose(x.mean(0), [0.0, math.pi, 0.0, 0.0], atol=0.01)
    np.testing.assert_allclose(x.std(0), [1e-3**0.5, 5e-2**0.5, 1e-3, 1e-3], rtol=0.03)
    assert torch.equal(sample_starts(problem, 7, 3), sample_starts(problem, 7, 3))
    assert not torch.equal(sample_starts(problem, 7, 3), sample_starts(problem, 7, 4))
    everywhere = sample_starts(problem, 5000, 1)
    assert bool((everywhere.abs() <= problem.state_limits + 1e-5).all())


def test_rollout_with_a_state_clipped_at_its_limit_is_marked(load: Load) -> None:
    """The second falls from 1.2 rad at 7.9 rad/s and passes 8 rad/s. The seam of an angle at pi is not a limit."""
    problem = Problem(load("pendulum"))
    starts = torch.tensor([[3.1, 0.5], [1.2, 7.9]])
    result = rollouts(problem, linear(problem), starts, seconds=1.0)
    assert bool((result.x[:, 0, 0].diff().abs() > 6.0).any())  # the first crosses the seam
    assert result.at_limit.tolist() == [[False, False], [False, True]]
    assert summary(result)["limit_rate"] == 0.5
    assert not rollouts(
        problem, linear(problem), torch.tensor([[3.1, 8.0]]), seconds=0.008
    ).at_limit.any()  # slows at once


@pytest.mark.slow
def test_rollouts_do_not_change_the_threads_of_torch_and_the_command_restores_them(
    load: Load, finished_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`solver evaluate` works on one thread."""
    problem, threads = Problem(load("pendulum")), []

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        threads.append(torch.get_num_threads())
        return linear(problem)(x)

    monkeypatch.setattr("solver.runs.kinds.load_rollout_policy", lambda *_, **__: (problem, act, "linear"))
    torch.set_num_threads(2)
    try:
        rollouts(problem, act, sample_starts(problem, 3, 0), seconds=0.04)
        assert set(threads) == {2}
        threads.clear()
        assert main(["evaluate", str(finished_run), "--episodes", "2"]) == 0
        assert set(threads) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    capsys.readouterr()


def test_rollouts_can_be_changed_and_differentiated(load: Load) -> None:
    """They are computed in Torch's inference mode, whose tensors allow neither."""
    problem = Problem(load("pendulum"))
    result = rollouts(problem, linear(problem), sample_starts(problem, 3, 0), seconds=0.1)
    for tensor in (result.x, result.u, result.state_reward, result.action_reward):
        tensor += 1.0
        assert not tensor.is_inference()
