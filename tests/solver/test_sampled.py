"""The sampled policy against brute force over the inputs, and beside the closed form where that one buzzes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import solver
from modelgen.loader import CompiledRobot
from solver.cli import main
from solver.evaluation import Controller, controller, rollouts
from solver.game import NO_ADVERSARY, Game
from solver.sampled import sampled_controller

Load = Callable[[str], CompiledRobot]


class Valley:
    """V = -steepness |rates + slope * positions|^2: every policy of it is a sliding mode when it is steep."""

    def __init__(self, steepness: float, slope: float = 2.0) -> None:
        self.steepness, self.slope = steepness, slope

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and its gradient (N, n)."""
        positions, rates = x.chunk(2, 1)
        off = rates + self.slope * positions
        return -self.steepness * (off * off).sum(1), -2.0 * self.steepness * torch.cat([self.slope * off, off], 1)


def worth(game: Game, value: Valley, x: Tensor, u: Tensor) -> Tensor:
    """What a held input is worth: -h g(u) + V at the period's end."""
    return value(game.hold(x, u, None))[0] - game.control_step * game.action_cost.cost(u)


@pytest.mark.parametrize(("name", "nodes"), [("pendulum", 4001), ("double_pendulum", 161)])
def test_the_input_is_the_best_on_a_grid_of_inputs(load: Load, name: str, nodes: int) -> None:
    game, value = Game(load(name), NO_ADVERSARY), Valley(5.0)
    x = 0.02 * game.sample_domain(12, torch.Generator().manual_seed(1))
    axes = [torch.linspace(-0.99, 0.99, nodes) * limit for limit in game.input_limits]
    inputs = torch.cartesian_prod(*axes).reshape(-1, len(axes))
    sampled, closed = (make(game, value)(x)[0] for make in (sampled_controller, controller))
    for i in range(len(x)):
        best = worth(game, value, x[i : i + 1].repeat(len(inputs), 1), inputs).max()
        idle = worth(game, value, x[i : i + 1], torch.zeros_like(sampled[:1]))[0]
        reached = [
            float((best - worth(game, value, x[i : i + 1], u[i : i + 1])[0]) / (best - idle)) for u in (sampled, closed)
        ]
        assert reached[0] < 0.02, i
        assert reached[0] < reached[1] + 1e-3, i


def test_where_v_is_steep_the_closed_form_buzzes_and_the_sampled_policy_rests(load: Load) -> None:
    game, value = Game(load("pendulum"), NO_ADVERSARY), Valley(300.0)
    starts = torch.tensor([[0.1, 0.0], [-0.05, 0.2]])

    def last_second(act: Controller) -> tuple[Tensor, Tensor]:
        found = rollouts(game, act, starts.clone(), seconds=3.0)
        return found.x[-125:].abs().amax(0), found.u[-125:].diff(dim=0).abs().mean()

    (_, buzz), (x, calm) = (last_second(make(game, value)) for make in (controller, sampled_controller))
    assert buzz > 1.0
    assert calm < 1e-2
    assert (x < 0.01).all()


def test_it_is_the_closed_form_when_the_period_goes_to_zero(load: Load) -> None:
    game, value = Game(load("furuta"), NO_ADVERSARY), Valley(0.1)
    x = game.sample_domain(50, torch.Generator().manual_seed(2))
    closed, closed_cost = controller(game, value)(x)
    assert float((sampled_controller(game, value)(x)[0] - closed).abs().max()) > 0.1
    game.control_step = 1e-6
    sampled, cost = sampled_controller(game, value)(x)
    torch.testing.assert_close(sampled, closed, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(cost, closed_cost, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("name", ["pendulum", "double_pendulum"])
def test_a_broken_state_is_nan_and_spoils_no_other(load: Load, name: str) -> None:
    game, value = Game(load(name), NO_ADVERSARY), Valley(5.0)
    x = game.sample_domain(3, torch.Generator().manual_seed(4))
    whole = sampled_controller(game, value)(x.clone())[0]
    x[1, -1] = torch.nan
    found = sampled_controller(game, value)(x)[0]
    assert bool(found[1].isnan().all())
    torch.testing.assert_close(found[[0, 2]], whole[[0, 2]])


def test_runs_are_evaluated_with_it(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(finished_run), "--episodes", "4", "--sampled", "--json"]) == 0
    sampled = json.loads(capsys.readouterr().out)
    assert main(["evaluate", str(finished_run), "--episodes", "4", "--json"]) == 0
    closed = json.loads(capsys.readouterr().out)
    assert (sampled["sampled"], closed["sampled"]) == (True, False)
    assert sampled["label"] == closed["label"] + " sampled"
    assert sampled["return_mean"] != closed["return_mean"]


def test_the_python_policy_is_the_same(finished_run: Path) -> None:
    solution = solver.policy.load_solution(finished_run)
    x = solution.game.sample_domain(7, torch.Generator().manual_seed(0))
    expected = sampled_controller(solution.game, solution.value)(x.clone())[0]
    np.testing.assert_array_equal(solver.load_policy(finished_run, sampled=True)(x.numpy()), expected)
    assert not np.array_equal(solver.load_policy(finished_run)(x.numpy()), expected)


def test_ranges_are_measured_with_it(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(finished_run), "--parameter", "mass", "--from", "1", "--to", "1.2", "--points", "2", "--episodes", "4"]
    found = {}
    for flag in ((), ("--sampled",)):
        assert main(["robustness", *words, *flag, "--out", str(tmp_path / "x")]) == 0
        found[flag] = json.loads((tmp_path / "x.json").read_text())
    capsys.readouterr()
    closed, sampled = found[()], found[("--sampled",)]
    assert sampled["groups"][0]["label"] == closed["groups"][0]["label"] + " sampled"
    assert sampled["groups"][0]["worst"] != closed["groups"][0]["worst"]
