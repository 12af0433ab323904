"""The basin: states near the target where V is a quadratic form, the solution of the Riccati equation.

V = -e^T P e with the error e = x - target of `solver.problem.geometry`, where e^T P e < level. A network fits V over
the whole domain. Near the target its error is large compared with V, and there V decides whether a robot balances.
`solver.local.basin` computes P and the level. docs/concepts/basin.md explains both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from modelgen.metadata import Rotation
from solver.problem.geometry import TURN, Geometry
from solver.value.features import times

__all__ = ["TURN", "Basin"]


@dataclass(frozen=True)
class Basin:
    """Sublevel set of a quadratic form, e^T P e < level. A level of 0 makes the basin empty.

    The basin of N contexts has P (N, n, n) and N levels, one for each of the N states that its methods take.
    """

    target: Tensor  # (n,)
    continuous: Tensor  # (n,) bool, True for continuous angles
    cost: Tensor  # (nt, nt) or (N, nt, nt) P
    level: float | Tensor  # or (N,)
    rotations: tuple[Rotation, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is no basin."""
        return isinstance(self.level, float) and self.level == 0.0

    def at(self, rows: Tensor) -> Basin:  # noqa: ARG002
        """This basin, which is the same for all rows (N, n + k)."""
        return self

    def error(self, x: Tensor) -> Tensor:
        """Error e (N, nt) of x (N, n)."""
        return self.geometry.error(x, self.target)

    @cached_property
    def geometry(self) -> Geometry:
        """The errors of states."""
        return Geometry(self.continuous, self.rotations)

    def distance(self, x: Tensor) -> Tensor:
        """e^T P e (N,) of x (N, n)."""
        e = self.error(x)
        return (times(e, self.cost) * e).sum(1)

    def quadratic(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the quadratic form at x (N, n), and a mask (N,) of the states in the basin."""
        e = self.error(x)
        slope = times(e, self.cost)
        distance = (slope * e).sum(1)
        return -distance, self.geometry.pull_back(x, self.target, -2.0 * slope), distance < self.level

    def overlaid(self, x: Tensor, value: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at x (N, n): the quadratic form in the basin, `value` and `gradient` outside."""
        if self.empty:
            return value, gradient
        quadratic, slope, inside = self.quadratic(x)
        return torch.where(inside, quadratic, value), torch.where(inside[:, None], slope, gradient)
