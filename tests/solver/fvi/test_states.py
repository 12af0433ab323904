"""States of an iteration: shares of the domain, the starts and the buffer of the policy's own rollouts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.fvi.states import PARTS, StateSource, disturbed
from solver.problem.problem import Problem
from solver.training.settings import Settings

Load = Callable[[str], CompiledRobot]


def idle(x: Tensor) -> tuple[Tensor, Tensor]:
    """A controller that does nothing."""
    return torch.zeros(len(x), 1), torch.zeros(len(x))


def source(load: Load, **changes: float) -> StateSource:
    problem = Problem(load("pendulum"))
    return StateSource(problem, Settings(states=1000, rollouts=4, **changes))  # type: ignore[arg-type]


def test_shares_of_the_states(load: Load) -> None:
    """The idle pendulum hangs: its rollouts and its starts lie at the bottom, uniform states do not."""
    quiet = source(load, start_share=0.2, start_spread=0.0, on_policy_share=0.3, exploration_noise=0.0)
    x = quiet.draw(idle, torch.Generator().manual_seed(0))
    at_bottom = ((x[:, 0].abs() > 2.8) & (x[:, 1].abs() < 0.6)).float()
    assert x.shape == (1000, 2)
    assert at_bottom[500:].mean() == 1.0
    assert at_bottom[:500].mean() < 0.05
    assert torch.equal(source(load, start_share=0.2).draw(idle, torch.Generator().manual_seed(0))[:500], x[:500])


def test_starts_are_spread_by_a_share_of_the_limits(load: Load) -> None:
    spread = source(load, start_share=1.0, start_spread=0.05).draw(idle, torch.Generator().manual_seed(0))
    angle = torch.remainder(spread[:, 0], 2.0 * torch.pi) - torch.pi
    assert spread[:, 0].abs().max() <= torch.pi
    torch.testing.assert_close(angle.std(), torch.tensor(0.05 * torch.pi), rtol=0.1, atol=0.0)
    torch.testing.assert_close(spread[:, 1].std(), torch.tensor(0.05 * 8.0), rtol=0.1, atol=0.0)


def test_states_around_the_target_have_every_scale(load: Load) -> None:
    near = source(load, start_share=0.0, target_share=1.0, target_spread=0.15)
    x = near.draw(idle, torch.Generator().manual_seed(0)) / near.problem.state_limits
    torch.testing.assert_close(x.std(0), torch.full((2,), 0.15 / math.sqrt(3.0)), rtol=0.1, atol=0.0)
    inner = (x.norm(dim=1) < 0.01).float().mean()
    assert inner > 5.0 * (1.0 - math.exp(-0.5 * (0.01 / 0.15) ** 2))  # of a Gaussian of the full spread


def test_visited_states_are_spread(load: Load) -> None:
    """The idle pendulum's rollouts stay at the bottom, at 0.6 rad/s or less."""
    settings = {"start_share": 0.0, "on_policy_share": 1.0, "exploration_noise": 0.0}
    bare, spread = (source(load, **settings, on_policy_spread=s) for s in (0.0, 0.2))
    rates = [each.draw(idle, torch.Generator().manual_seed(0))[:, 1] for each in (bare, spread)]
    assert rates[0].abs().max() < 0.6
    torch.testing.assert_close(rates[1].std(), torch.tensor(0.2 * 8.0 / math.sqrt(3.0)), rtol=0.1, atol=0.0)
    assert torch.equal(bare.visited, spread.visited)


def test_shares_beyond_the_whole_are_refused() -> None:
    with pytest.raises(SolverError, match="start_share, target_share, on_policy_share is above 1"):
        Settings(start_share=0.4, target_share=0.3, on_policy_share=0.4)


def test_dynamic_programming_visits_nothing(load: Load) -> None:
    uniform = source(load)
    uniform.draw(idle, torch.Generator().manual_seed(0))
    assert len(uniform.visited) == 0


def test_the_oldest_states_leave_the_buffer_first(load: Load) -> None:
    own = source(load, start_share=0.0, on_policy_share=1.0, buffer=3000)
    generator = torch.Generator().manual_seed(0)
    own.draw(idle, generator)
    first = own.visited.clone()
    assert len(first) == 4 * 626  # a rollout of 5 s at 125 Hz, its start included
    drawn = own.draw(idle, generator)
    more = 4 * PARTS * (1 + round(625 / PARTS))  # four begin at the starts, the others where the first ones passed
    assert len(own.visited) == 3000
    assert torch.equal(own.visited[: 3000 - more], first[len(first) + more - 3000 :])
    assert {tuple(row) for row in drawn.tolist()} <= {tuple(row) for row in own.visited.tolist()}


def test_a_horizon_of_two_periods_is_played_in_whole_periods(load: Load) -> None:
    """A quarter of it would be none."""
    own = source(load, start_share=0.0, on_policy_share=1.0)
    metadata = own.problem.robot.metadata
    short = dataclasses.replace(
        metadata, task=dataclasses.replace(metadata.task, horizon=2.0 / metadata.task.control_rate)
    )
    own.problem.robot.metadata = short
    for seed in (0, 1):
        own.draw(idle, torch.Generator().manual_seed(seed))
    own.problem.robot.metadata = metadata
    assert len(own.visited) == 4 * 3 + 4 * PARTS * 2


def test_exploration_noise_has_its_deviation_and_correlation(load: Load) -> None:
    problem = Problem(load("pendulum"))
    act = disturbed(idle, problem, 0.1, torch.Generator().manual_seed(1))
    x = torch.zeros(4000, 2)
    inputs = torch.stack([act(x)[0][:, 0] for _ in range(40)]) / problem.input_limits
    assert inputs.std() == pytest.approx(0.1, rel=0.02)
    correlation = float((inputs[0] * inputs[25]).mean() / 0.1**2)
    assert correlation == pytest.approx(math.e ** (-25 * 0.008 / 0.1), abs=0.05)
    assert float(disturbed(idle, problem, 10.0, torch.Generator())(x)[0].abs().max()) == pytest.approx(2.5)


def test_a_buffer_of_another_robot_is_refused(load: Load) -> None:
    with pytest.raises(SolverError, match=r"buffer has shape \(5, 4\); give \(N, 2\)"):
        source(load).restore(torch.zeros(5, 4))


def test_the_game_feeds_its_share_of_the_rollouts(load: Load) -> None:
    """Of four rollouts one is of the game: its states, as they are, and three times 626 of the policy's own."""
    own = source(load, start_share=0.0, on_policy_share=1.0, adversarial_share=0.25, exploration_noise=0.0)
    given: list[Tensor] = []

    def play(starts: Tensor) -> Tensor:
        given.append(starts)
        return torch.full((10, len(starts), 2), 7.0)

    own.draw(idle, torch.Generator().manual_seed(0), play)
    assert [len(starts) for starts in given] == [1]
    assert given[0][0, 0].abs() > 2.8
    assert len(own.visited) == 3 * 626 + 10
    assert (own.visited == 7.0).all(1).sum() == 10
    own.draw(idle, torch.Generator().manual_seed(1))
    assert len(own.visited) == 3 * 626 + 10 + 4 * PARTS * (1 + round(625 / PARTS))


def test_later_rollouts_begin_at_the_starts_or_where_earlier_ones_passed(load: Load) -> None:
    own, begun = source(load, start_share=0.0, on_policy_share=1.0), []

    def watching(x: Tensor) -> tuple[Tensor, Tensor]:
        begun.append(x.clone())
        return idle(x)

    own.draw(watching, torch.Generator().manual_seed(0))
    before, periods = own.visited.clone(), len(begun)
    own.draw(watching, torch.Generator().manual_seed(1))
    first = begun[periods]
    assert first.shape == (4 * PARTS, 2)
    assert (first[:4, 0].abs() > 2.8).all()
    passed = {tuple(row) for row in before.tolist()}
    assert all(tuple(row) in passed for row in first[4:].tolist())
    assert len(begun) - periods == round(625 / PARTS)
