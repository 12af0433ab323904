"""Refuse a training that explodes, in its targets or in its fit, before the last good checkpoint is written over."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.errors import DivergenceError
from solver.problem.problem import Problem
from solver.training.settings import Settings

BEYOND = 3.0  # times the worst value: no mean is so low, unless V explodes


def worst_value(problem: Problem, settings: Settings) -> float:
    """A lower bound on every V: the discounted cost of paying the largest cost rate in the domain for ever."""
    generator = torch.Generator(device=settings.device).manual_seed(0)
    x = problem.sample_domain(65536, generator)
    state_cost = (1.0 + settings.limit_cost) * float(
        problem.state_cost(torch.cat([x, problem.state_limits[None]])).max()
    )
    action_cost = float(problem.action_cost.cost(0.99 * problem.input_limits[None]).max())
    return -(state_cost + 2.0 * action_cost) / max(problem.discount_rate, 1e-3)


def require_targets(target: Tensor, worst: float, iteration: int) -> None:
    """Raise DivergenceError for targets (N,) that are not finite, or whose mean is beyond the worst value."""
    if not bool(torch.isfinite(target).all()):
        raise DivergenceError(
            f"iteration {iteration}: {int((~torch.isfinite(target)).sum())} of {len(target)} value targets are not "
            "finite. The dynamics blow up within a time step, or the value function did; raise the task's control_rate "
            "or lower --learning-rate. The last good checkpoint is kept."
        )
    mean = float(target.mean())
    if mean < BEYOND * worst:
        raise DivergenceError(
            f"iteration {iteration}: the value targets exploded to a mean of {mean:.3g}, while the costliest behaviour "
            f"in the state domain is worth {worst:.3g}. The learning rate is the likely cause; lower --learning-rate. "
            "The last good checkpoint is kept."
        )


def require_fit(fitted: float, loss: float, worst: float, iteration: int, learning_rate: float) -> None:
    """Raise DivergenceError for a mean V, or a loss, that is not finite, and for a mean beyond the worst value."""
    if not math.isfinite(loss + fitted) or fitted < BEYOND * worst:
        raise DivergenceError(
            f"iteration {iteration}: the fit left a mean value of {fitted:.3g} and a loss of {loss:.3g}, while the "
            f"costliest behaviour in the state domain is worth {worst:.3g}. The learning rate {learning_rate:.2g} is "
            "the likely cause; train again with a smaller --learning-rate. The checkpoint of the iteration before is "
            "kept."
        )
