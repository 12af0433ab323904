"""Which of the value functions of a training is kept: the best by rollouts that the final evaluation does not use.

The last V is not always the best: the targets of later iterations may lose what earlier ones found. Of two value
functions the one with more successes is better, and of two with as many, the one with the larger return. cFVI's
return is the mean on the nominal robot. rFVI's is the mean of the worst quarter, each rollout on a robot with
parameters of its own, and successes are counted on those robots.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from solver.fvi.settings import Settings
from solver.game.adversaries.parameters import ParameterAdversary
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts
from solver.plants.rollouts import Controller, rollouts
from solver.problem.problem import Problem
from solver.streams import Purpose, stream

ROLLOUTS = 64
SPREAD = 0.15  # of every parameter: the half width of the box that rFVI's robots are drawn from, if not identified
WORST = 0.25  # share of the rollouts whose mean counts


@dataclass(frozen=True, order=True)
class Score:
    """How good a value function is; scores compare as they are listed."""

    successes: float  # share of the rollouts
    value: float  # mean return of those that count


class Selection:
    """The starts and robots on which the value functions of one training are compared."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.robust = problem, settings.algorithm == "rfvi"
        generator = torch.Generator(device=settings.device).manual_seed(stream(settings.seed, 0, Purpose.SELECTION))
        self.starts = problem.sample_starts(ROLLOUTS, generator)
        self.theta: Tensor | None = None
        if self.robust:
            share = 2.0 * torch.rand(ROLLOUTS, len(problem.theta), generator=generator, device=settings.device) - 1.0
            if problem.identified is None:
                spread = problem.theta + SPREAD * share * problem.theta.abs()
            else:  # on the boundary of the ellipsoid, where the adversary plays
                spread = ParameterAdversary(1.0).admissible_set(problem, 1.0).extreme_point(share)
            self.theta = spread.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])

    def judge(self, act: Controller, x: Tensor) -> tuple[Score, Rollouts]:
        """The score of a policy, and its rollouts from further states x (K, n) on the nominal robot.

        All are made together: the time of a rollout hardly depends on how many there are.
        """
        robots = None if self.theta is None else torch.cat([self.problem.theta.expand(len(x), -1), self.theta])
        result = rollouts(self.problem, act, torch.cat([x, self.starts]), Nominal(self.problem, robots))
        own, others = result.part(slice(len(x), None)), result.part(slice(len(x)))
        count = round(WORST * ROLLOUTS) if self.robust else ROLLOUTS
        worst = torch.nan_to_num(own.returns, nan=-torch.inf).sort().values[:count]
        return Score(float(own.success.float().mean()), float(worst.mean())), others
