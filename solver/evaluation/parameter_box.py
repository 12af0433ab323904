"""A box of physical parameters: the grid over which the robustness of policies is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from solver.errors import SolverError
from solver.problem.parameters import Relative, changed_parameters
from solver.problem.problem import Problem


@dataclass(frozen=True)
class ParameterRange:
    """Evenly spaced changes of one parameter, from `start` to `end`."""

    parameter: str
    start: float
    end: float
    points: int
    added: bool  # to the nominal value, in its unit; else the changes are multiples of it


@dataclass(frozen=True)
class Axis:
    """One axis of a box: a parameter and its changes."""

    parameter: str
    unit: str
    nominal: float
    added: bool  # as in ParameterRange
    changes: tuple[float, ...]
    values: tuple[float, ...]  # the parameter after the change, in the unit


@dataclass(frozen=True)
class Box:
    """The grid of all combinations of one or two parameters, the last one fastest."""

    axes: tuple[Axis, ...]
    theta: torch.Tensor  # (points, p)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(len(axis.changes) for axis in self.axes)


def make_box(problem: Problem, ranges: Sequence[ParameterRange]) -> Box:
    """The grid of one or two ranges.

    Raises SolverError for another number of ranges, unknown parameters and impossible values.
    """
    names = [each.parameter for each in ranges]
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise SolverError(f"the parameters are {' '.join(names) or 'none'}; give one, or two different ones")
    for each in ranges:
        if each.points < 2 or not math.isfinite(each.start) or not each.start < each.end < math.inf:
            raise SolverError(
                f"{each.points} points from {each.start:g} to {each.end:g} are not a range of {each.parameter}; give "
                "at least two points and a --from below the --to"
            )
    spread = [np.linspace(each.start, each.end, each.points).tolist() for each in ranges]
    relative = [
        [Relative(added=change) if each.added else Relative(factor=change) for change in changes]
        for each, changes in zip(ranges, spread, strict=True)
    ]
    theta = torch.stack([changed_parameters(problem, dict(zip(names, row, strict=True))) for row in product(*relative)])
    axes = []
    for each, changes in zip(ranges, spread, strict=True):
        parameter = next(known for known in problem.robot.metadata.parameters if known.name == each.parameter)
        values = [parameter.value + change if each.added else parameter.value * change for change in changes]
        axes.append(Axis(each.parameter, parameter.unit, parameter.value, each.added, tuple(changes), tuple(values)))
    return Box(tuple(axes), theta)
