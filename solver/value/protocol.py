"""What a policy, a target or a rollout needs of a value function."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class ValueFunction(Protocol):
    """V of N states and its gradient, without autograd: `FrozenValue`, a solution on a grid, a formula."""

    def __call__(self, x: Tensor, /) -> tuple[Tensor, Tensor]:
        """x (N, n) in SI units -> V (N,), dV/dx (N, n)."""
