"""Sensing of a robot: errors of the measured positions and rates, and the delay of the inputs.

It is all that the observer knows about the sensors and drives of a plant or of a real robot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.problem.problem import Problem

COUNTS_PER_TURN = 2048  # of a usual encoder of an angle: 512 lines in quadrature
LENGTH_COUNT = 2.5e-5  # m, resolution of a usual encoder of a length


@dataclass(frozen=True)
class Sensing:
    """Standard deviations of the measurements in units of the states, and the delay of the inputs."""

    deviation: Tensor  # (q,) of the positions, or (n,) of all states if rates are measured
    delay: int = 0  # control periods between a measurement and the effect of the input computed from it


def usual_counts(problem: Problem, level: float = 1.0) -> Tensor:
    """Resolution (q,) of usual encoders of the positions, times `level`. A turn has an integer number of counts."""
    turn = 2.0 * math.pi / max(1, round(COUNTS_PER_TURN / level))
    states = problem.robot.metadata.states[: problem.robot.metadata.nq]
    return problem.target.new_tensor([turn if state.unit == "rad" else LENGTH_COUNT * level for state in states])


def make_sensing(
    problem: Problem,
    counts: Tensor | None = None,
    noise: Tensor | None = None,
    delay: int = 0,
    rates: Tensor | None = None,
) -> Sensing:
    """Sensing from the resolution of encoders and the standard deviations of white noise.

    counts: (q,) resolution of the encoders. noise: (q,) deviation of the positions. rates: (n - q,) deviation of the
    rates, if they are measured. delay: in control periods.

    The error of an encoder is uniform, with the variance counts^2/12. A measurement without error has the rounding
    error of float32.
    """
    limits = problem.state_limits[: problem.robot.metadata.nq]
    variance = torch.zeros_like(limits)
    if counts is not None:
        variance = variance + counts**2 / 12.0
    if noise is not None:
        variance = variance + noise**2
    if rates is not None:
        variance, limits = torch.cat([variance, rates**2]), problem.state_limits
    return Sensing(variance.sqrt().clamp_min(torch.finfo(limits.dtype).eps * limits), delay)
