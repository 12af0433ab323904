"""The last iterations of nominal training, where V is still rough: many more states, and each fit to its end.

A policy follows the slope of V. Where V is rough, the slope is off by a little everywhere: no rollout fails, and the
robot pays some per cent too much. Then V differs from what its policy is paid, too, and that is seen without a known
optimum. Tasks of many swings are like that; others are not, and are not polished.

cFVI is polished at the end of its schedule, rFVI before its adversaries grow. Each of these iterations begins with a
fresh optimiser, at a learning rate that falls to its end on the targets of this iteration: a fit that is left half done
hands its noise to the next targets.
"""

from __future__ import annotations

import math

import torch

from solver.plants.outcome import Rollouts
from solver.problem.problem import Problem
from solver.training.settings import Settings
from solver.value.frozen import ValueFunction

STATES, PASSES, RATE = 6, 2, 1.5  # times the setting: states, epochs, and learning rate of the first of these
MISMATCH = 0.03  # above which a V is rough
LEAST_GAIN = 0.05  # of the idle robot's return: what a policy gains at least, to compare a difference with


def polish_at(settings: Settings) -> int:
    """The iteration before which V is polished: all others before it are nominal."""
    return settings.iterations if settings.algorithm == "cfvi" else settings.refinement


def learning_rates(settings: Settings) -> tuple[float, ...]:
    """Those of the passes of a polishing fit, on half a cosine."""
    passes, last = PASSES * settings.epochs, settings.final_learning_rate
    fall = (0.5 * (1.0 + math.cos(math.pi * i / passes)) for i in range(passes))
    return tuple(last + (RATE * settings.learning_rate - last) * share for share in fall)


@torch.no_grad()
def value_mismatch(problem: Problem, value: ValueFunction, result: Rollouts, idle_return: float) -> float:
    """Mean |V(x_0) - J(x_0)| of rollouts on the nominal robot, as a share of what they gain over the idle robot.

    J: what the policy is paid, discounted, and V where the rollout ends. The state cost of a period is that at its
    beginning.
    """
    periods = len(result.u)
    elapsed = problem.control_step * torch.arange(periods, device=result.u.device)
    weight = torch.exp(-problem.discount_rate * elapsed) * problem.control_step  # (T,)
    paid = torch.zeros_like(result.returns)
    for x, u, share in zip(result.x, result.u, weight, strict=False):  # x has one row more, the end
        paid -= share * (problem.state_cost(x) + problem.action_cost.cost(u))
    paid += math.exp(-problem.discount_rate * problem.control_step * periods) * value(result.x[-1])[0]
    gain = max(float(result.returns.mean()) - idle_return, LEAST_GAIN * abs(idle_return))
    return float((value(result.x[0])[0] - paid).abs().mean()) / gain
