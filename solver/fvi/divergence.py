"""Checks of the targets and of the fit, which end an iteration that explodes before its checkpoint is written."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.errors import DivergenceError
from solver.fvi.step import Step
from solver.value.frozen import ValueFunction

LARGE = 0.5  # share of the targets that V^k had before, at which V is the cause
BEYOND = 3.0  # times the lowest value: no mean is so low, unless V explodes


def require_targets(target: Tensor, value: ValueFunction, x: Tensor, lowest: float, step: Step) -> None:
    """Check of the targets (N,) of an iteration at its states x (N, n + k). value: V^k.

    Raises DivergenceError if one is not finite, or if their mean is far below the lowest value.
    """
    if not bool(torch.isfinite(target).all()):
        raise DivergenceError(
            f"iteration {step.number}: {int((~torch.isfinite(target)).sum())} of {len(target)} value targets are not "
            "finite. The dynamics blow up within a time step, or the value function did. Raise the task's control_rate "
            "or lower the learning_rate. The last good checkpoint is kept."
        )
    mean = float(target.mean())
    if mean < BEYOND * lowest:
        cause = _cause(mean, float(value(x)[0].mean()))
        raise DivergenceError(
            f"iteration {step.number}: the value targets exploded to a mean of {mean:.3g}. The costliest behaviour in "
            f"the state domain is worth {lowest:.3g}. {cause} The last good checkpoint is kept."
        )


def _cause(mean: float, before: float) -> str:
    """Cause of targets with this mean, if V^k had the mean `before`, and what to change."""
    if before < LARGE * mean:
        return f"V itself had fallen to {before:.3g} before, likely by the learning_rate: lower it."
    return (
        f"V was worth {before:.3g} before, so the cost is paid within the look-ahead, by states that move beyond their "
        "limits and are clipped: raise the task's control_rate, widen these limits, or lower limit_cost."
    )


def require_fit(mean: float, loss: float, lowest: float, step: Step) -> None:
    """Check of a fit: the mean V at its states, and its loss.

    Raises DivergenceError if one is not finite, or if the mean is far below the lowest value.
    """
    if not math.isfinite(loss + mean) or mean < BEYOND * lowest:
        raise DivergenceError(
            f"iteration {step.number}: the fit left a mean value of {mean:.3g} and a loss of {loss:.3g}. The costliest "
            f"behaviour in the state domain is worth {lowest:.3g}. The likely cause is the learning_rate, now "
            f"{step.learning_rates[0]:.2g}: lower it. The checkpoint of the iteration before is kept."
        )
