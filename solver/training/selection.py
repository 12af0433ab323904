"""Which of the value functions of a training is kept: the best by rollouts that the final evaluation does not use.

The last V is not always the best: the targets of later iterations may lose what earlier ones found. Of two value
functions the one with more successes is better, and of two with as many, the one with the larger return. A success that
the simulation held at a limit on its way counts for less, HELD: the limit braked it for nothing. It counts for
something: a policy that met the limit of a rate for a hundredth of a second and always arrived was thrown away for one
that fell in one rollout of ten.

cFVI is judged on the nominal robot. rFVI is judged on it first: by its successes, and by whether it pays for its
robustness at most PRICE of what the best V of the training gains over the idle robot. Then other robots count, each
rollout with parameters of its own: by the quarters of them that succeed. Between equals a V that was made against
larger adversaries is better. Then the return decides: the mean of that on the nominal robot and of that of the worst
quarter of the others. The worst quarter alone chose by its noise: on the reaction wheel it took a V of -28.4 and -25.4
nominal for one of -29.1 and -21.9.

Where fewer than three quarters of the others succeed, as with the swing-up of a two-link robot, their share and the
size of the adversaries tell nothing. Then the return on the nominal robot decides: the mean of that from the task's
starts and of that from anywhere in the state domain. On the contest's acrobot the V against the largest adversaries was
as robust as those before it, and fell from most states that its starts do not lead to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from solver.game.adversaries.paper import ParameterAdversary
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts
from solver.plants.rollouts import Controller, rollouts, without_input
from solver.problem.problem import Problem
from solver.streams import Purpose, stream
from solver.training.settings import Settings

ROLLOUTS = 64
SPREAD = 0.15  # of every parameter: the half width of the box that rFVI's robots are drawn from, if not identified
PRICE = 0.05  # of the gain over the idle robot, that robustness may cost on the nominal robot
HELD = 2.0 / 3.0  # of a success: what one counts for that met a limit
WORST = 0.25  # share of the rollouts on other robots whose mean counts


@dataclass(frozen=True)
class Score:
    """How good a value function is."""

    successes: float  # share of the rollouts on the nominal robot that succeed, HELD of those that met a limit
    quarters: float  # of the rollouts on other robots that succeed: 0, 3 or 4 quarters; 1 where there are none
    adversary: float  # the share of their full size that the adversaries had when it was made
    value: float  # mean return of those that count
    nominal: float  # mean return on the nominal robot

    def rank(self, least: float) -> tuple[float, ...]:
        """What compares: larger is better. least: the nominal return that robustness may lower it to."""
        shown = self.adversary if self.quarters else 0.0
        return self.successes, float(self.nominal >= least), self.quarters, shown, self.value


class Selection:
    """The starts and robots on which the value functions of one training are compared."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.robust = problem, settings.algorithm == "rfvi"
        generator = torch.Generator(device=settings.device).manual_seed(stream(settings.seed, 0, Purpose.SELECTION))
        self.starts = problem.sample_starts(ROLLOUTS, generator)
        idle = rollouts(problem, without_input(problem), self.starts)
        self.idle_return = float(torch.nan_to_num(idle.returns, nan=-torch.inf).mean())
        self.theta: Tensor | None = None
        if self.robust:
            share = 2.0 * torch.rand(ROLLOUTS, len(problem.theta), generator=generator, device=settings.device) - 1.0
            if problem.identified is None:
                spread = problem.theta + SPREAD * share * problem.theta.abs()
            else:  # on the boundary of the ellipsoid, where the adversary plays
                spread = ParameterAdversary(1.0).admissible_set(problem, 1.0).extreme_point(share)
            self.theta = spread.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
            self.anywhere = problem.sample_domain(ROLLOUTS, generator)

    def least(self, best: float) -> float:
        """The nominal return that robustness may cost, where the best V of the training has `best`."""
        return best - PRICE * max(best - self.idle_return, 0.0)

    def judge(self, act: Controller, x: Tensor, adversary: float) -> tuple[Score, Rollouts]:
        """The score of a policy, and its rollouts from further states x (K, n) on the nominal robot.

        adversary: the share of their full size that the adversaries had when its V was made. All rollouts are made
        together: the time of a rollout hardly depends on how many there are.
        """
        begin = [x, self.starts]
        robots = None
        if self.theta is not None:
            begin.append(self.anywhere)
            robots = torch.cat([self.problem.theta.expand(sum(map(len, begin)), -1), self.theta])
            begin.append(self.starts)
        result = rollouts(self.problem, act, torch.cat(begin), Nominal(self.problem, robots))
        ends = accumulate(map(len, begin), initial=0)
        seen, nominal, *rest = (result.part(slice(*rows)) for rows in pairwise(ends))
        quarters, mean = 1.0, float(_sorted(nominal).mean())
        value = mean
        if rest:
            anywhere, others = rest
            quarters = math.floor(4.0 * float(others.success.float().mean())) / 4.0
            if quarters >= 1.0 - WORST:
                value = (value + float(_sorted(others)[: round(WORST * len(self.starts))].mean())) / 2.0
            else:
                quarters, value = 0.0, (value + float(_sorted(anywhere).mean())) / 2.0
        successes = nominal.success * torch.where(nominal.at_limit.any(1), HELD, 1.0)
        return Score(float(successes.mean()), quarters, adversary, value, mean), seen


def _sorted(result: Rollouts) -> Tensor:
    """The returns, the worst first."""
    return torch.nan_to_num(result.returns, nan=-torch.inf).sort().values
