"""What a distilled policy loses against the run's own: both from the same starts on the same plants."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from solver.errors import SolverError
from solver.plants import make_plant
from solver.plants.outcome import summary
from solver.plants.rollouts import Controller, rollouts, sample_starts
from solver.problem.parameters import left_all_bounds
from solver.problem.problem import Problem
from solver.streams import EVALUATION_SEED

EPISODES = 100
CHANGE = 0.2  # of every parameter, at most
HARSH = "harsh"


@dataclass(frozen=True)
class Comparison:
    """The statistics of both policies on one plant, as `solver.plants.outcome.summary` names them."""

    plant: str
    own: dict[str, float]
    distilled: dict[str, float]

    @property
    def loss(self) -> float:
        """Of the mean return, as a share of its size; negative where the distilled policy is better."""
        own = self.own["return_mean"]
        return (own - self.distilled["return_mean"]) / max(abs(own), 1e-9)


def compare(problem: Problem, own: Controller, distilled: Controller, observed: bool = False) -> list[Comparison]:
    """On the nominal robot first, then with changed parameters, and on the harsh plant.

    Changed: every parameter of every rollout is drawn within CHANGE of its nominal value. observed: on the harsh plant
    both policies get the states of the observer, as they will on the robot. Raises SolverError where rollouts are not
    finite.
    """
    generator = torch.Generator().manual_seed(EVALUATION_SEED)
    draw = 2.0 * torch.rand(EPISODES, len(problem.theta), generator=generator) - 1.0
    plants = {
        "nominal": make_plant("nominal", problem),
        f"parameters +-{100 * CHANGE:.0f} %": make_plant("nominal", problem, problem.theta * (1.0 + CHANGE * draw)),
        HARSH: make_plant("harsh", problem, seed=EVALUATION_SEED),
    }
    starts, found = sample_starts(problem, EPISODES, EVALUATION_SEED), []
    for name, plant in plants.items():
        through = observed and name == HARSH
        both = [summary(rollouts(problem, act, starts, plant, observed=through)) for act in (own, distilled)]
        if not all(math.isfinite(value) for each in both for value in each.values()):
            raise left_all_bounds(problem, problem.theta)
        found.append(Comparison(f"{name}, observer" if through else name, *both))
    return found


def table(comparisons: list[Comparison]) -> list[str]:
    """Lines of text: the run's own policy -> the distilled one."""
    lines = [f"{'':<18}{'return':^22}{'loss':>8}   {'worst':^22}{'success':^16}".rstrip()]
    for each in comparisons:
        mean, worst = (
            f"{each.own[name]:9.3f} -> {each.distilled[name]:9.3f}" for name in ("return_mean", "return_worst")
        )
        success = f"{100 * each.own['success_rate']:3.0f} -> {100 * each.distilled['success_rate']:3.0f} %"
        lines.append(f"{each.plant:<18}{mean}{100 * each.loss:7.2f} %   {worst}  {success}")
    return lines


def require_small_loss(comparison: Comparison, most: float, budget: str) -> None:
    """SolverError where the distilled policy loses more than the share `most` of return or of successes."""
    fewer = comparison.own["success_rate"] - comparison.distilled["success_rate"]
    if comparison.loss <= most and fewer <= most:
        return
    raise SolverError(
        f"the distilled policy that fits --budget {budget} loses {100 * comparison.loss:.1f} % of the return and "
        f"{100 * fewer:.0f} % of the successes on the {comparison.plant} robot, and --max-loss allows {100 * most:g} "
        "%; nothing is written. Give it more time, allow a larger loss, or try another --seed."
    )
