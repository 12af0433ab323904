"""A plant from outside takes one module and one line in the table of plants."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

import solver
from solver.plants import PLANTS, all_effects, make_plant
from solver.plants.plant import Nominal, Plant, Simulation
from solver.problem import Problem
from solver.runs.kinds import load_rollout_policy
from tests.closeness import assert_close


class Windy:
    """Nominal robot with a constant wind added to its input."""

    def __init__(self, problem: Problem, theta: Tensor | None, wind: float) -> None:
        self.nominal, self.wind = Nominal(problem, theta), wind
        self.sensing, self.theta = self.nominal.sensing, self.nominal.theta

    def begin(self, x: Tensor) -> Simulation:
        """Start rollouts from x (N, n)."""
        simulation, wind = self.nominal.begin(x), self.wind
        step = simulation.step
        simulation.step = lambda u: step(u + wind)  # type: ignore[method-assign]
        return simulation


def make(problem: Problem, theta: Tensor | None, effects: Sequence[str], seed: int) -> Plant:
    """Plant with a wind of 0.1 N m for each effect."""
    assert seed == 3
    return Windy(problem, theta, 0.1 * len(effects))


@pytest.fixture
def windy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the line to the table."""
    monkeypatch.setitem(sys.modules, "windy", SimpleNamespace(EFFECTS=("gust", "breeze"), make=make))
    monkeypatch.setitem(PLANTS, "windy", "windy")


@pytest.mark.usefixtures("windy")
def test_plant_in_the_table_is_used_by_solver_evaluate_with_its_effects(finished_run: Path) -> None:
    options = {"run": finished_run, "episodes": 4, "seed": 3}
    nominal = solver.evaluate(finished_run, episodes=4, seed=3)
    calm = solver.evaluate(**options, plant="windy", harsh=["gust"])  # type: ignore[arg-type]
    assert calm.harsh == ("gust",)
    assert calm.statistics["return_mean"] != nominal.statistics["return_mean"]
    assert all_effects("windy", []) == ["gust", "breeze"]
    problem = load_rollout_policy(finished_run)[0]
    x = torch.tensor([[0.1, 0.2]])
    moved, expected = make_plant("windy", problem, None, ["gust"], 3).begin(x), Nominal(problem).begin(x)
    moved.step(torch.zeros(1, 1))
    expected.step(torch.full((1, 1), 0.1))
    assert_close(moved.x, expected.x)
