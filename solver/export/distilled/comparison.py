"""Comparison of a distilled policy with the run's policy, from the same starts on the same plants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from solver.errors import SolverError
from solver.plants import make_plant
from solver.plants.outcome import Controller, rollouts, sample_starts, summary
from solver.problem.parameters import left_all_bounds
from solver.problem.problem import Problem
from solver.streams import EVALUATION_SEED

EPISODES = 100
CHANGE = 0.2  # largest relative change of every parameter
HARSH = "harsh"


@dataclass(frozen=True)
class Comparison:
    """Statistics of both policies on a plant, with the names of `solver.plants.outcome.summary`."""

    plant: str
    own: dict[str, float]
    distilled: dict[str, float]

    @property
    def loss(self) -> float:
        """Loss of mean return, as a share of its size; negative if the distilled policy is better."""
        own = self.own["return_mean"]
        return (own - self.distilled["return_mean"]) / max(abs(own), 1e-9)


def compare(
    problem: Problem, own: Controller, distilled: Controller, observed: bool = False, estimate: Sequence[str] = ()
) -> list[Comparison]:
    """Comparisons on the nominal robot, with changed parameters, and on the harsh plant.

    Changed parameters are drawn for every rollout within CHANGE of their nominal values. observed: both policies get
    the states of the observer on the harsh plant. estimate: parameters that it estimates. Raises SolverError for
    rollouts that are not finite.
    """
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    draw = 2.0 * torch.rand(EPISODES, len(problem.theta), generator=generator) - 1.0
    plants = {
        "nominal": make_plant("nominal", problem),
        f"parameters +-{100 * CHANGE:.0f} %": make_plant("nominal", problem, problem.theta * (1.0 + CHANGE * draw)),
        HARSH: make_plant("harsh", problem, seed=EVALUATION_SEED),
    }
    starts, comparisons = sample_starts(problem, EPISODES, EVALUATION_SEED), []
    for name, plant in plants.items():
        through = observed and name == HARSH
        options = (None, through, None, estimate if through else ())
        both = [summary(rollouts(problem, act, starts, plant, *options)) for act in (own, distilled)]
        if not all(math.isfinite(value) for statistics in both for value in statistics.values()):
            raise left_all_bounds(problem, problem.theta)
        comparisons.append(Comparison(f"{name}, observer" if through else name, *both))
    return comparisons


def table(comparisons: list[Comparison]) -> list[str]:
    """Lines of text: the run's policy -> the distilled policy."""
    lines = [f"{'':<18}{'return':^22}{'loss':>8}   {'worst':^22}{'success':^16}".rstrip()]
    for row in comparisons:
        mean, worst = (
            f"{row.own[name]:9.3f} -> {row.distilled[name]:9.3f}" for name in ("return_mean", "return_worst")
        )
        success = f"{100 * row.own['success_rate']:3.0f} -> {100 * row.distilled['success_rate']:3.0f} %"
        lines.append(f"{row.plant:<18}{mean}{100 * row.loss:7.2f} %   {worst}  {success}")
    return lines


def require_small_loss(comparison: Comparison, most: float, budget: str) -> None:
    """Raises SolverError if the loss of return or of successes is larger than `most`."""
    fewer = comparison.own["success_rate"] - comparison.distilled["success_rate"]
    if comparison.loss <= most and fewer <= most:
        return
    raise SolverError(
        f"the distilled policy that fits --budget {budget} loses {100 * comparison.loss:.1f} % of the return and "
        f"{100 * fewer:.0f} % of the successes on the {comparison.plant} robot, and --max-loss allows {100 * most:g} "
        "%; no file is written. Give more time, allow a larger loss, or try another --seed."
    )
