"""Checks of the targets and of the fit, which end an iteration that explodes before its checkpoint is written."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from solver.errors import DivergenceError
from solver.fvi.step import Step

BEYOND = 3.0  # times the lowest value: no mean is so low, unless V explodes


def require_targets(target: Tensor, lowest: float, step: Step) -> None:
    """Check of the targets (N,) of an iteration.

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
        raise DivergenceError(
            f"iteration {step.number}: the value targets exploded to a mean of {mean:.3g}. The costliest behaviour in "
            f"the state domain is worth {lowest:.3g}. The likely cause is the learning_rate: lower it. The last good "
            "checkpoint is kept."
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
