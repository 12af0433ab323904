"""What a robot measures: positions with an error, perhaps rates too, and inputs that act late.

Whoever simulates or drives a robot states its `Sensing`; the observer is told nothing else about it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.problem.problem import Problem

COUNTS_PER_TURN = 2048  # of the encoder of an angle: 512 lines in quadrature
LENGTH_COUNT = 2.5e-5  # m, of the encoder of a length


@dataclass(frozen=True)
class Sensing:
    """The errors of what is measured, and the delay of the inputs."""

    deviation: Tensor  # standard deviation of each error, in its unit: (q,) of positions, (n,) where rates are measured
    delay: int = 0  # control periods from the measurement until the input that was computed from it acts


def usual_counts(problem: Problem, level: float = 1.0) -> Tensor:
    """The smallest step (q,) of the positions that usual encoders measure, times `level`; whole counts close a turn."""
    turn = 2.0 * math.pi / max(1, round(COUNTS_PER_TURN / level))
    states = problem.robot.metadata.states[: len(problem.robot.metadata.coordinates)]
    return problem.target.new_tensor([turn if state.unit == "rad" else LENGTH_COUNT * level for state in states])


def make_sensing(
    problem: Problem,
    counts: Tensor | None = None,
    noise: Tensor | None = None,
    delay: int = 0,
    rates: Tensor | None = None,
) -> Sensing:
    """The sensing of positions in whole `counts` (q,), with white noise of the deviation `noise` (q,), and where rates
    are measured with that of `rates` (n - q,).

    The error of a count is uniform, of variance counts^2/12. What is measured without any error has the rounding error
    of float32.
    """
    limits = problem.state_limits[: len(problem.robot.metadata.coordinates)]
    variance = torch.zeros_like(limits)
    if counts is not None:
        variance = variance + counts**2 / 12.0
    if noise is not None:
        variance = variance + noise**2
    if rates is not None:
        variance, limits = torch.cat([variance, rates**2]), problem.state_limits
    return Sensing(variance.sqrt().clamp_min(torch.finfo(limits.dtype).eps * limits), delay)
