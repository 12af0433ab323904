"""Which of the value functions of a training is kept: the best by rollouts that the final evaluation does not use.

The last V is not always the best: the targets of later iterations may lose what earlier ones found. Of two value
functions the one with more successes is better, and of two with as many, the one with the larger return.

cFVI is judged on the nominal robot. rFVI is judged on it first. Then other robots count, each rollout with parameters
of its own: by the quarters of them that succeed. Between equals a V that was made against adversaries of full size is
better. Then the return decides: the mean of that on the nominal robot and of that of the worst quarter of the others.
The worst quarter alone chose by its noise: on the reaction wheel it took a V of -28.4 and -25.4 nominal for one of
-29.1 and -21.9. Where fewer than three quarters succeed, as with the swing-up of a two-link robot, the worst are
failures and tell nothing; the nominal robot's return counts alone.
"""

from __future__ import annotations

import math
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
WORST = 0.25  # share of the rollouts on other robots whose mean counts


@dataclass(frozen=True, order=True)
class Score:
    """How good a value function is; scores compare as they are listed."""

    successes: float  # share of the rollouts on the nominal robot
    quarters: float  # of the rollouts on other robots that succeed, a whole number of quarters; 1 where there are none
    adversary: float  # 1 where it was made against adversaries of full size, else 0
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

    def judge(self, act: Controller, x: Tensor, adversary: bool) -> tuple[Score, Rollouts]:
        """The score of a policy, and its rollouts from further states x (K, n) on the nominal robot.

        adversary: if its V was made against adversaries of full size. All rollouts are made together: the time of a
        rollout hardly depends on how many there are.
        """
        begin = [x, self.starts]
        robots = None
        if self.theta is not None:
            begin.append(self.starts)
            robots = torch.cat([self.problem.theta.expand(len(x) + len(self.starts), -1), self.theta])
        result = rollouts(self.problem, act, torch.cat(begin), Nominal(self.problem, robots))
        ends = len(x), len(x) + len(self.starts)
        seen, nominal, others = (result.part(slice(*rows)) for rows in ((0, ends[0]), ends, (ends[1], None)))
        quarters, value = 1.0, float(_sorted(nominal).mean())
        if self.theta is not None:
            quarters = math.floor(4.0 * float(others.success.float().mean())) / 4.0
            if quarters >= 1.0 - WORST:
                value = (value + float(_sorted(others)[: round(WORST * len(self.starts))].mean())) / 2.0
        return Score(float(nominal.success.float().mean()), quarters, float(adversary), value), seen


def _sorted(result: Rollouts) -> Tensor:
    """The returns, the worst first."""
    return torch.nan_to_num(result.returns, nan=-torch.inf).sort().values
