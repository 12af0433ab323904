"""States of an iteration: shares of the domain, the starts and the buffer of the policy's own rollouts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.fvi.states import MIXTURES, Mixture, StateSource
from solver.problem import Problem
from solver.value.family import Basin

Load = Callable[[str], CompiledRobot]


def idle(x: Tensor) -> tuple[Tensor, Tensor]:
    """A controller that does nothing."""
    return torch.zeros(len(x), 1), torch.zeros(len(x))


def source(load: Load, starts: float = 0.0, target: float = 0.0, rollouts: float = 0.0, **changes: Any) -> StateSource:
    """A source of states of the pendulum: shares of a mixture, and fields of the source."""
    mixture = Mixture(starts, target, rollouts, changes.pop("spread", 0.0))
    return StateSource(Problem(load("pendulum")), mixture, **{"new_rollouts": 4, **changes})


def drawn(states: StateSource, policy: Any = idle, seed: int = 0) -> Tensor:
    """A thousand states."""
    return states.draw(policy, 1000, torch.Generator().manual_seed(seed))


def test_the_shares_of_starts_and_rollouts_lie_at_the_bottom(load: Load) -> None:
    """The idle pendulum hangs: its rollouts and its starts lie at the bottom, uniform states do not."""
    x = drawn(source(load, starts=0.2, rollouts=0.3, start_spread=0.0, noise=0.0))
    at_bottom = ((x[:, 0].abs() > 2.8) & (x[:, 1].abs() < 0.6)).float()
    assert x.shape == (1000, 2)
    assert at_bottom[500:].mean() == 1.0
    assert at_bottom[:500].mean() < 0.05


def test_starts_are_spread_by_a_share_of_the_limits(load: Load) -> None:
    spread = drawn(source(load, starts=1.0, start_spread=0.05))
    angle = torch.remainder(spread[:, 0], 2.0 * torch.pi) - torch.pi
    assert spread[:, 0].abs().max() <= torch.pi
    torch.testing.assert_close(angle.std(), torch.tensor(0.05 * torch.pi), rtol=0.1, atol=0.0)
    torch.testing.assert_close(spread[:, 1].std(), torch.tensor(0.05 * 8.0), rtol=0.1, atol=0.0)


def test_states_around_the_target_have_every_scale(load: Load) -> None:
    near = source(load, target=1.0, target_spread=0.15)
    x = drawn(near) / near.problem.state_limits
    torch.testing.assert_close(x.std(0), torch.full((2,), 0.15 / math.sqrt(3.0)), rtol=0.1, atol=0.0)
    inner = (x.norm(dim=1) < 0.01).float().mean()
    assert inner > 5.0 * (1.0 - math.exp(-0.5 * (0.01 / 0.15) ** 2))  # of a Gaussian of the full spread


@pytest.mark.parametrize(("target", "share"), [(0.1, 0.3), (0.4, 0.4), (0.0, 0.0)])
def test_more_states_lie_around_the_target_where_the_basin_is_empty(target: float, share: float, load: Load) -> None:
    """Their levels reach up to 3e-3 here. A mixture without such states, as that of the paper, stays without."""
    problem = Problem(load("pendulum"))
    empty = Basin(problem.target, problem.geometry.continuous, torch.eye(2), 0.0, unit=1e-4)
    states = drawn(source(load, target=target, basin=empty))
    near = (empty.distance(states) < 1e-2).float().mean()
    assert float(near) == pytest.approx(share, abs=0.01)


def test_states_of_rollouts_are_spread(load: Load) -> None:
    """The idle pendulum's rollouts stay at the bottom, at 0.6 rad/s or less."""
    bare, spread = (source(load, rollouts=1.0, noise=0.0, spread=share) for share in (0.0, 0.2))
    rates = [drawn(states)[:, 1] for states in (bare, spread)]
    assert rates[0].abs().max() < 0.6
    torch.testing.assert_close(rates[1].std(), torch.tensor(0.2 * 8.0 / math.sqrt(3.0)), rtol=0.1, atol=0.0)
    assert torch.equal(bare.visited, spread.visited)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_shares_of_a_mixture_are_at_most_one(name: str) -> None:
    mixture = MIXTURES[name]
    assert 0.0 <= mixture.starts + mixture.target + mixture.rollouts <= 1.0


def test_dynamic_programming_visits_nothing(load: Load) -> None:
    uniform = source(load)
    drawn(uniform)
    assert len(uniform.visited) == 0


def test_the_oldest_states_leave_the_buffer_first(load: Load) -> None:
    own = source(load, rollouts=1.0, buffer=3000)
    generator = torch.Generator().manual_seed(0)
    own.draw(idle, 1000, generator)
    first = own.visited.clone()
    more = 4 * own.parts * (1 + round(625 / own.parts))  # a part of 5 s at 125 Hz each, its start included
    assert len(first) == more
    states = own.draw(idle, 1000, generator)  # four begin at the starts, the others where these passed
    assert len(own.visited) == 3000
    assert torch.equal(own.visited[: 3000 - more], first[len(first) + more - 3000 :])
    assert {tuple(row) for row in states.tolist()} <= {tuple(row) for row in own.visited.tolist()}


def test_a_horizon_of_two_periods_is_rolled_out_in_whole_periods(load: Load) -> None:
    own = source(load, rollouts=1.0)
    metadata = own.problem.robot.metadata
    short = dataclasses.replace(
        metadata, task=dataclasses.replace(metadata.task, horizon=2.0 / metadata.task.control_rate)
    )
    own.problem.robot.metadata = short
    for seed in (0, 1):
        drawn(own, seed=seed)
    own.problem.robot.metadata = metadata
    assert len(own.visited) == 2 * 4 * own.parts * 2


def test_exploration_noise_has_its_deviation_and_correlation(load: Load) -> None:
    def watched(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(x), 1), torch.zeros(len(x))

    own = source(load, rollouts=1.0, new_rollouts=4000, noise=0.1)
    noisy = own._noisy(watched, torch.Generator().manual_seed(1))
    inputs = [noisy(torch.zeros(4000, 2))[0][:, 0] / own.problem.input_limits for _ in range(40)]
    assert torch.stack(inputs).std() == pytest.approx(0.1, rel=0.02)
    correlation = float((inputs[0] * inputs[25]).mean() / 0.1**2)
    assert correlation == pytest.approx(math.e ** (-25 * 0.008 / 0.1), abs=0.05)
    strong = source(load, rollouts=1.0, noise=10.0)._noisy(watched, torch.Generator())
    assert float(strong(torch.zeros(4000, 2))[0].abs().max()) == pytest.approx(2.5)


def test_later_rollouts_begin_at_the_starts_or_where_earlier_ones_passed(load: Load) -> None:
    own, begun = source(load, rollouts=1.0), []

    def watching(x: Tensor) -> tuple[Tensor, Tensor]:
        begun.append(x.clone())
        return idle(x)

    drawn(own, watching, seed=0)
    before, periods = own.visited.clone(), len(begun)
    drawn(own, watching, seed=1)
    first = begun[periods]
    assert first.shape == (4 * own.parts, 2)
    assert (first[:4, 0].abs() > 2.8).all()
    passed = {tuple(row) for row in before.tolist()}
    assert all(tuple(row) in passed for row in first[4:].tolist())
    assert len(begun) - periods == round(625 / own.parts)
