"""The states around the target where V is the solution of the Riccati equation.

V = -e^T P e with e = x - target, where e^T P e < level. A network fits V over the whole domain. Its error beside the
target is small against V at the start, but large against V beside the target, where V decides whether a robot balances.
`solver.local.basin` finds P and the level. docs/concepts/basin.md explains both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

TURN = 2.0 * math.pi


@dataclass(frozen=True)
class Basin:
    """A sublevel set of a quadratic form. level 0: the basin is empty."""

    target: Tensor  # (n,)
    continuous: Tensor  # (n,) bool, which states are angles that wrap
    cost: Tensor  # (n, n) P
    level: float

    def error(self, x: Tensor) -> Tensor:
        """x - target (N, n), continuous angles the short way round."""
        away = x - self.target
        return torch.where(self.continuous, away - TURN * torch.round(away / TURN), away)

    def distance(self, x: Tensor) -> Tensor:
        """e^T P e (N,)."""
        e = self.error(x)
        return ((e @ self.cost) * e).sum(1)

    def quadratic(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the quadratic form at x (N, n), and which of the states are inside, (N,) bool."""
        e = self.error(x)
        slope = e @ self.cost
        distance = (slope * e).sum(1)
        return -distance, -2.0 * slope, distance < self.level

    def overlaid(self, x: Tensor, value: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at x (N, n): inside of the basin those of the quadratic form, else the ones given."""
        if self.level == 0.0:
            return value, gradient
        quadratic, slope, inside = self.quadratic(x)
        return torch.where(inside, quadratic, value), torch.where(inside[:, None], slope, gradient)
