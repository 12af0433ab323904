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
    """Standard deviations of the measurements' errors in units of the states, and the delay of the inputs.

    A measured rotation has three errors, of small turns.
    """

    deviation: Tensor  # (nv,) of the errors of positions, or (nt,) of all states if rates are measured
    entries: int  # first states that are measured: nq, or n
    delay: int = 0  # control periods between a measurement and the effect of the input computed from it


def usual_counts(problem: Problem, level: float = 1.0) -> Tensor:
    """Resolution (nv,) of usual encoders of the positions, times `level`. A turn has an integer number of counts.

    A rotation has that of three angles.
    """
    turn = 2.0 * math.pi / max(1, round(COUNTS_PER_TURN / level))
    entries = problem.tangent.entries[: problem.robot.metadata.nv]
    return problem.target.new_tensor([turn if unit == "rad" else LENGTH_COUNT * level for _, unit, _ in entries])


def make_sensing(
    problem: Problem,
    counts: Tensor | None = None,
    noise: Tensor | None = None,
    delay: int = 0,
    rates: Tensor | None = None,
) -> Sensing:
    """Sensing from the resolution of encoders and the standard deviations of white noise.

    counts: (nv,) resolution of the encoders. noise: (nv,) deviation of the positions. rates: (nt - nv,) deviation of
    the rates, if they are measured. delay: in control periods.

    The error of an encoder is uniform, with the variance counts^2/12. A measurement without error has the rounding
    error of float32.
    """
    metadata = problem.robot.metadata
    limits, entries = problem.tangent_limits[: metadata.nv], metadata.nq
    variance = torch.zeros_like(limits)
    if counts is not None:
        variance = variance + counts**2 / 12.0
    if noise is not None:
        variance = variance + noise**2
    if rates is not None:
        variance, limits, entries = torch.cat([variance, rates**2]), problem.tangent_limits, len(problem.target)
    return Sensing(variance.sqrt().clamp_min(torch.finfo(limits.dtype).eps * limits), entries, delay)
