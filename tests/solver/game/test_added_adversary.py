"""A new adversary takes one file and one line in a table: this file adds one on the gain of the control matrix."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.game import ClosedFormPolicy, Game
from solver.game.adversaries import ADVERSARIES, Adversary, Box, Disturbed, Hamiltonian, Modulation, make_adversaries
from solver.oracles.grid import solve
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.training.schedule import Schedule
from solver.training.session import Session, workers_of
from solver.training.settings import Settings
from tests.solver.small_trainings import unjudged

pytestmark = pytest.mark.slow

Load = Callable[[str], CompiledRobot]
robots = pytest.mark.parametrize("name", ["pendulum", "furuta", "double_pendulum"])


@dataclass(frozen=True)
class GainAdversary(Adversary):
    """xdot = a + B (1 + xi) u: every drive is weaker or stronger by at most the share alpha."""

    name: ClassVar[str] = "gain"
    usual: ClassVar[float] = 0.2
    most: ClassVar[float] = 1.0
    radius_in_time: ClassVar = "constant"

    def direction(self, hamiltonian: Hamiltonian) -> Tensor:
        """(B^T dV/dx) u (N, m), component by component."""
        return hamiltonian.dH_du * hamiltonian.u

    def admissible_set(self, problem: Problem, radius: Tensor | float) -> Box:
        """|xi_i| <= alpha."""
        share = radius * torch.ones_like(problem.input_limits)
        return Box(-share, share, 0.0 * share)

    def disturb(self, disturbed: Disturbed, choice: Tensor) -> Disturbed:
        """Scale the input that reaches the robot."""
        return replace(disturbed, u=disturbed.u * (1.0 + choice))


@pytest.fixture
def with_gain() -> Iterator[None]:
    """Adds the line to the table."""
    ADVERSARIES.append(GainAdversary)
    yield
    ADVERSARIES.remove(GainAdversary)


@robots
def test_move_of_the_added_adversary_is_the_worst_of_its_set(load: Load, load64: Load, name: str) -> None:
    problem, robot = Problem(load(name)), load64(name)
    generator = torch.Generator().manual_seed(3)
    x = problem.sample_domain(30, generator)
    costate = torch.randn(x.shape, generator=generator) / problem.state_limits
    game = Game(problem, [GainAdversary(0.3)])
    move = game.move(x, costate, ClosedFormPolicy(problem), Modulation("wiener", 0.01, generator))
    _, control_matrix = robot.affine_dynamics(x.double().numpy())
    for i in range(len(x)):
        u, p = move.u[i].double().numpy(), costate[i].double().numpy()

        def hamiltonian(xi: Tensor, i: int = i, u: Any = u, p: Any = p) -> float:
            return float(p @ control_matrix[i] @ ((1.0 + xi.double().numpy()) * u))

        grid = itertools.product(torch.linspace(-0.3, 0.3, 7).tolist(), repeat=len(u))
        worst = min(hamiltonian(torch.tensor(xi)) for xi in grid)
        assert hamiltonian(move.choices["gain"][i]) == pytest.approx(worst, rel=1e-4, abs=1e-6)
    end, _ = game.advance(x, move, 1)
    scaled = move.u * (1.0 + move.choices["gain"])
    torch.testing.assert_close(end, integrate_period(problem, x, scaled).x)
    assert not torch.allclose(end, integrate_period(problem, x, move.u).x)


@pytest.mark.usefixtures("with_gain")
def test_adversary_in_the_table_plays_in_training_and_on_the_grid(load: Load, tiny: Callable[..., Settings]) -> None:
    steps = list(Schedule(tiny(adversary_ramp=(0.2, 0.6), adversaries={"gain": 0.2})))
    assert [[adversary.alpha for adversary in step.adversaries] for step in steps[:3]] == [[], [0.1], [0.2]]

    def target_mean(radii: dict[str, float]) -> float:
        settings = tiny(adversaries=radii, iterations=1)
        with unjudged(), workers_of(settings) as workers:
            (row,) = Session(load("pendulum"), settings).rows(workers)
        return row["target_mean"]

    assert target_mean({"gain": 0.2}) < target_mean({"gain": 1e-6})  # of the same states
    problem, x = Problem(load("pendulum")), torch.tensor([[0.4, 0.0], [1.0, -1.0], [3.0, 0.5]])
    values = [
        solve(Game(problem, make_adversaries(radii)), (41, 41), seconds=1.0)(x)[0] for radii in ({}, {"gain": 0.3})
    ]
    assert bool((values[1] < values[0]).all())
