"""n-step targets against a recursion that simulates every R_n anew, and their independence of the threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.fvi.targets import Lookahead, chunk_targets, value_targets
from solver.game import ClosedFormPolicy, Game
from solver.game.adversaries import Adversary, Modulation, make_adversaries
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

Load = Callable[[str], CompiledRobot]
ADVERSARIES = make_adversaries({"state": 0.05, "action": 0.3, "observation": 0.05, "parameters": 0.15})


def make_value(game: Game) -> FrozenValue:
    states = game.problem.robot.metadata.states
    generator = torch.Generator().manual_seed(0)
    scale = [1.0 / s.limit for s in states]
    return FrozenValue(Ensemble([s.continuous for s in states], [0.0] * len(states), scale, 2, 2, 8, generator))


def start_states(game: Game, size: int) -> Tensor:
    return game.problem.sample_domain(size, torch.Generator().manual_seed(5))


@pytest.mark.parametrize(
    "lookahead", [Lookahead(0.85, 1e-4, 1), Lookahead(0.97, 1e-2, 4), Lookahead(0.5, 0.9, 1), Lookahead(0.0, 0.1, 2)]
)
def test_weights_are_geometric_and_sum_to_one(lookahead: Lookahead) -> None:
    weights = list(lookahead.weights())
    assert len(weights) == lookahead.steps
    assert sum(weights) == pytest.approx(1.0, abs=1e-12)
    decay = lookahead.decay
    for n, weight in enumerate(weights[:-1]):
        assert weight == pytest.approx((1.0 - decay) * decay**n)
    assert weights[-1] == pytest.approx(decay ** (len(weights) - 1))


@pytest.mark.parametrize(("decay", "floor", "periods"), [(0.85, 1e-4, 1), (0.97, 1e-2, 1), (0.97, 1e-2, 4)])
def test_the_target_ends_where_the_next_weight_is_below_the_floor(decay: float, floor: float, periods: int) -> None:
    *_, last = Lookahead(decay, floor, periods).weights()
    assert last * decay <= floor < last


def test_the_trace_has_as_many_steps_as_the_authors() -> None:
    """Their N, where (1 - lambda) lambda^N falls to 1e-4: 45 for the pendulum and 66 for the others."""
    assert [Lookahead(decay, 1e-4 / (1.0 - decay), 1).steps for decay in (0.85, 0.9)] == [45, 66]


def naive_targets(x: Tensor, value: FrozenValue, game: Game, lookahead: Lookahead, rho: float) -> np.ndarray:
    """Each R_n from its own simulation, in float64 sums; stationary adversaries."""
    decay, dt, total = lookahead.decay, game.problem.control_step, np.zeros(len(x))
    for n in range(1, lookahead.steps + 1):
        y, reward, time = x.clone(), np.zeros(len(x)), 0.0
        for _ in range(n):
            modulation = Modulation("stationary", lookahead.step_periods * dt, torch.Generator())
            move = game.move(y, value(y)[1], ClosedFormPolicy(game.problem), modulation)
            undergone = move.disturbed
            for _ in range(lookahead.step_periods):
                y, cost = integrate_period(game.problem, y, undergone.u, undergone.theta, undergone.offset)
                reward -= math.exp(-rho * time) * (cost + dt * move.cost).double().numpy()
                time += dt
            if undergone.displacement is not None:
                y = game.problem.confine(y + undergone.displacement)
        n_step = np.minimum(reward + math.exp(-rho * time) * value(y)[0].double().numpy(), 0.0)
        weight = decay ** (n - 1) * (1.0 if n == lookahead.steps else 1.0 - decay)
        total += weight * n_step
    return total


@pytest.mark.parametrize("adversaries", [(), ADVERSARIES], ids=["cfvi", "rfvi"])
@pytest.mark.parametrize("name", ["pendulum", "double_pendulum"])
@pytest.mark.slow
def test_targets_equal_separate_simulations_of_every_n(
    load: Load, name: str, adversaries: tuple[Adversary, ...]
) -> None:
    game = Game(Problem(load(name)), adversaries)
    value, lookahead, x = make_value(game), Lookahead(0.8, 0.1, 2), start_states(game, 9)
    rho = -math.log(game.problem.robot.metadata.task.weight_at_horizon) / game.problem.robot.metadata.task.horizon
    target = chunk_targets(game, value, x, lookahead, 0)
    np.testing.assert_allclose(target, naive_targets(x, value, game, lookahead, rho), rtol=2e-4, atol=1e-4)
    assert lookahead.steps > 3


class Constant:
    """A value function that is the same everywhere."""

    def __init__(self, level: float) -> None:
        self.level = level

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The level and a zero gradient."""
        return torch.full((len(x),), self.level), torch.zeros_like(x)


def test_every_n_step_return_is_clamped_at_zero(load: Load) -> None:
    game = Game(Problem(load("pendulum")))
    x = torch.zeros(4, 2)
    target = chunk_targets(game, Constant(5.0), x, Lookahead(0.8, 0.1, 1), 0)
    assert torch.equal(target, torch.zeros(4))
    below = chunk_targets(game, Constant(-5.0), x, Lookahead(0.0, 0.1, 1), 0)
    np.testing.assert_allclose(below, -5.0 * 0.65 ** (0.008 / 5.0), rtol=1e-6)


@pytest.mark.slow
def test_targets_do_not_depend_on_the_number_of_threads(load: Load) -> None:
    game = Game(Problem(load("furuta")), ADVERSARIES)
    value, lookahead, x = make_value(game), Lookahead(0.8, 0.1, 2, modulation="wiener"), start_states(game, 203)
    results = []
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as workers:
            results.append(value_targets(game, value, x, lookahead, 7, workers, chunk=20))
    assert torch.equal(*results)
    assert results[0].shape == (203,)


@pytest.mark.parametrize("chunk", [1, 7, 50, 1000])
def test_chunks_change_nothing_without_modulation(load: Load, chunk: int) -> None:
    game = Game(Problem(load("double_pendulum")), ADVERSARIES)
    value, lookahead, x = make_value(game), Lookahead(0.5, 0.1, 1), start_states(game, 50)
    with ThreadPoolExecutor(1) as workers:
        whole = value_targets(game, value, x, lookahead, 0, workers, chunk=50)
        parts = value_targets(game, value, x, lookahead, 0, workers, chunk=chunk)
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-4)


def test_chunks_draw_their_own_modulation(load: Load) -> None:
    game = Game(Problem(load("pendulum")), ADVERSARIES)
    value, lookahead = make_value(game), Lookahead(0.5, 0.1, 1, modulation="wiener")
    x = torch.tensor([[2.0, 1.0]]).repeat(40, 1)
    with ThreadPoolExecutor(1) as workers:
        target = value_targets(game, value, x, lookahead, 0, workers, chunk=20)
        other = value_targets(game, value, x, lookahead, 1000, workers, chunk=20)
    assert len(target.unique()) > 30
    assert not torch.equal(target, other)
