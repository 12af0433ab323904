"""The states around the target where V is the solution of the Riccati equation.

V = -e^T P e with e = x - target, where e^T P e < level. A network fits V over the whole domain, and its error beside the
target is small against V at the start, yet large against V itself there, which decides whether a robot balances.
`solver.fvi.basin` finds P and the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Basin:
    """A sublevel set of a quadratic form. level 0: empty."""

    target: Tensor  # (n,)
    wraps: Tensor  # (n,) 2 pi for continuous angles, infinity for the others
    cost: Tensor  # (n, n) P
    level: float

    def error(self, x: Tensor) -> Tensor:
        """x - target (N, n), the short way round."""
        away = x - self.target
        return away - torch.nan_to_num(self.wraps * torch.round(away / self.wraps), nan=0.0)

    def distance(self, x: Tensor) -> Tensor:
        """e^T P e (N,)."""
        e = self.error(x)
        return ((e @ self.cost) * e).sum(1)

    def overlaid(self, x: Tensor, value: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at x, those of the quadratic form inside and the ones given outside."""
        if self.level == 0.0:
            return value, gradient
        e = self.error(x)
        slope = e @ self.cost
        distance = (slope * e).sum(1)
        inside = distance < self.level
        return torch.where(inside, -distance, value), torch.where(inside[:, None], -2.0 * slope, gradient)


def wraps_of(continuous: list[bool]) -> Tensor:
    """`Basin.wraps` (n,)."""
    return torch.tensor([2.0 * math.pi if wraps else math.inf for wraps in continuous])
