"""Grid of physical parameters, over which the robustness of policies is measured."""

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
    """Equidistant changes of one parameter, from `start` to `end`."""

    parameter: str
    start: float
    end: float
    points: int
    added: bool  # the changes are added to the nominal value; otherwise they multiply it


@dataclass(frozen=True)
class GridAxis:
    """One axis of a grid: a parameter and its changes."""

    parameter: str
    unit: str
    nominal: float
    added: bool  # as in ParameterRange
    changes: tuple[float, ...]
    values: tuple[float, ...]  # of the parameter after the change, in the unit


@dataclass(frozen=True)
class ParameterGrid:
    """Combinations of the changes of one or two parameters. The last parameter changes fastest."""

    axes: tuple[GridAxis, ...]
    theta: torch.Tensor  # (points, p)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(len(axis.changes) for axis in self.axes)


def make_grid(problem: Problem, ranges: Sequence[ParameterRange]) -> ParameterGrid:
    """Grid of one or two ranges.

    Raises SolverError for another number of ranges, unknown parameters and impossible values.
    """
    names = [entry.parameter for entry in ranges]
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise SolverError(f"the parameters are {' '.join(names) or 'none'}; give one, or two different ones")
    for entry in ranges:
        if entry.points < 2 or not math.isfinite(entry.start) or not entry.start < entry.end < math.inf:
            raise SolverError(
                f"{entry.points} points from {entry.start:g} to {entry.end:g} are no range of {entry.parameter}; "
                "give at least two points, and a --from that is less than --to"
            )
    spread = [np.linspace(entry.start, entry.end, entry.points).tolist() for entry in ranges]
    relative = [
        [Relative(added=change) if entry.added else Relative(factor=change) for change in changes]
        for entry, changes in zip(ranges, spread, strict=True)
    ]
    theta = torch.stack([changed_parameters(problem, dict(zip(names, row, strict=True))) for row in product(*relative)])
    axes = []
    for entry, changes in zip(ranges, spread, strict=True):
        parameter = next(known for known in problem.robot.metadata.parameters if known.name == entry.parameter)
        values = tuple(parameter.value + change if entry.added else parameter.value * change for change in changes)
        axes.append(GridAxis(parameter.name, parameter.unit, parameter.value, entry.added, tuple(changes), values))
    return ParameterGrid(tuple(axes), theta)
