"""Rollouts of the game against the game's own single steps, and against rollouts without an adversary."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.fvi.play import play
from solver.fvi.targets import Trace
from solver.game.adversaries import make_adversaries
from solver.game.adversaries.paper import ActionAdversary
from solver.game.game import Game, Modulation
from solver.game.policies import ClosedFormPolicy, make_policy
from solver.plants.rollouts import controller, rollouts
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem

Load = Callable[[str], CompiledRobot]


class Bowl:
    """V = -|x|^2."""

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V and its gradient."""
        return -(x * x).sum(1), -2.0 * x


def starts(game: Game) -> Tensor:
    return game.problem.sample_domain(6, torch.Generator().manual_seed(3))


def test_without_an_adversary_it_is_the_policys_own_rollout(load: Load) -> None:
    game = Game(Problem(load("furuta")))
    x = starts(game)
    played = play(game, Bowl(), x.clone(), Trace(0.9, 0.1, 1), "wiener", torch.Generator())
    own = rollouts(game.problem, controller(game.problem, Bowl()), x.clone()).x[1:]
    assert played.shape == (625, 6, 4)
    torch.testing.assert_close(played[:100], own[:100], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sampled", [0.0, 2.0])
def test_every_step_is_the_games(load: Load, sampled: float) -> None:
    """Stationary radii, two periods a step: each state follows from the one before by both players' held moves."""
    game = Game(
        Problem(load("furuta")),
        make_adversaries({"state": 0.05, "action": 0.3, "observation": 0.02, "parameters": 0.1}),
    )
    trace = Trace(0.9, 0.1, 2, sampled)
    played = play(game, Bowl(), starts(game), trace, "stationary", torch.Generator())
    assert played.shape == (312, 6, 4)
    policy = make_policy(game.problem, Bowl(), 3.0 if sampled else 0.0)
    modulation = Modulation("stationary", 2 * game.problem.control_step, torch.Generator())
    for before, after in ((10, 11), (200, 201)):
        x = played[before].clone()
        expected, _ = game.advance(x, game.move(x, Bowl()(x)[1], policy, modulation), 2)
        torch.testing.assert_close(played[after], expected)


def test_the_modulation_starts_anew_with_every_look_ahead(load: Load) -> None:
    """By hand with the same draws: the first step after a look-ahead moves by its own draw, not by the walk."""
    game, trace = Game(Problem(load("pendulum")), [ActionAdversary(0.5)]), Trace(0.9, 0.1, 1)
    x = starts(game)[:, :2].clone()
    played = play(game, Bowl(), x.clone(), trace, "wiener", torch.Generator().manual_seed(8))
    generator = torch.Generator().manual_seed(8)
    drawn = torch.stack([torch.randn(6, 1, generator=generator) for _ in range(trace.steps + 1)])
    force = drawn[-1].abs() * 0.5 / 1.96 * game.problem.control_step**0.5
    before = played[trace.steps - 1].clone()
    u, _, w = ClosedFormPolicy(game.problem).respond(before, Bowl()(before)[1])
    torch.testing.assert_close(
        played[trace.steps], integrate_period(game.problem, before, u - force * torch.sign(w), None).x
    )
