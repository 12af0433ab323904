"""Grid over one or two physical parameters, on which the robustness of policies is measured."""

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
    added: bool  # True: the changes are added to the nominal value; False: they multiply it


@dataclass(frozen=True)
class Axis:
    """One axis of a grid: a parameter and its changes."""

    parameter: str
    unit: str
    nominal: float
    added: bool  # see ParameterRange
    changes: tuple[float, ...]
    values: tuple[float, ...]  # of the parameter after the changes, in its unit


@dataclass(frozen=True)
class ParameterBox:
    """Grid of all combinations of the values of one or two parameters. The last parameter changes fastest."""

    axes: tuple[Axis, ...]
    theta: torch.Tensor  # (points, p) all parameters at every point

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points on every axis."""
        return tuple(len(axis.changes) for axis in self.axes)


def make_box(problem: Problem, ranges: Sequence[ParameterRange]) -> ParameterBox:
    """Grid of one or two ranges.

    Raises SolverError for another number of ranges, an unknown parameter, an empty range, and values that
    `changed_parameters` rejects.
    """
    names = [interval.parameter for interval in ranges]
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise SolverError(f"the parameters are {' '.join(names) or '(none)'}; give one, or two different ones")
    for interval in ranges:
        if interval.points < 2 or not math.isfinite(interval.start) or not interval.start < interval.end < math.inf:
            raise SolverError(
                f"{interval.points} points from {interval.start:g} to {interval.end:g} are not a range of "
                f"{interval.parameter}; give at least two points and a --from below the --to"
            )
    references = [name for name in names if name in problem.robot.metadata.references]
    if references:
        raise SolverError(
            f"{references[0]} is a reference, which the policy is always told, and every rollout draws another one. "
            f"Write `solver evaluate RUN --set {references[0]}=...` for one value, or name a parameter of the robot"
        )
    spread = [np.linspace(interval.start, interval.end, interval.points).tolist() for interval in ranges]
    relative = [
        [Relative(added=change) if interval.added else Relative(factor=change) for change in changes]
        for interval, changes in zip(ranges, spread, strict=True)
    ]
    theta = torch.stack([changed_parameters(problem, dict(zip(names, row, strict=True))) for row in product(*relative)])
    axes = []
    for interval, changes in zip(ranges, spread, strict=True):
        name, added = interval.parameter, interval.added
        parameter = next(known for known in problem.robot.metadata.parameters if known.name == name)
        values = [parameter.value + change if added else parameter.value * change for change in changes]
        axes.append(Axis(name, parameter.unit, parameter.value, added, tuple(changes), tuple(values)))
    return ParameterBox(tuple(axes), theta)
