"""Action cost g of a robot's task on Torch tensors. The formulas are kernels of the artifact."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot


class TensorActionCost:
    """Action cost g(u) and the gradient of its convex conjugate, grad g~(w), of tensors (..., m) in the robot's dtype.

    g is zero, with zero slope, at `trim` (m,), or at (N, m) trims of N samples.

    The input u = grad g~(w) with w = B^T dV/dx maximises dV/dx . (a + B u) - g(u) (paper, eq. 10). The leading axes are
    arbitrary. Autograd does not differentiate through these functions.
    """

    def __init__(self, robot: CompiledRobot, device: torch.device | str = "cpu") -> None:
        self._robot = robot
        self.trim = torch.as_tensor(robot.trim, device=device)  # (m,)
        self.slope: Tensor | None = None  # (m,) or (N, m) of the kernel's cost at another trim
        self.level = torch.zeros(())  # of the kernel's cost there

    def about(self, trim: Tensor) -> TensorActionCost:
        """The cost measured from another trim u0 (m,) or (N, m): the Bregman distance g(u) - g(u0) - g'(u0) . (u - u0).

        It has the curvature of g, and is zero with zero slope at u0.
        """
        other = copy.copy(self)
        other.slope, other.level = None, torch.zeros_like(self.level)
        first = other.slopes(trim)[0]
        other.level, other.slope, other.trim = other.cost(trim), first, trim
        return other

    def _kernel_argument(self, w: Tensor) -> Tensor:
        """Argument of the kernels (..., m), whose cost has another slope at the trim."""
        return w if self.slope is None else w + self.slope

    def _measured(self, g: Tensor, u: Tensor) -> Tensor:
        """Cost (...) from that of the kernels at inputs u (..., m). It is at least 0 but for rounding."""
        if self.slope is None:
            return g
        return (g - self.level - (self.slope * (u - self.trim)).sum(-1)).clamp_min(0.0)

    def policy(self, w: Tensor) -> Tensor:
        """Optimal input u = grad g~(w) (..., m) for w (..., m); |u| <= input limit."""
        u: Tensor = self._robot.optimal_input(_rows(self._kernel_argument(w)))
        return u.view(w.shape)

    def cost_of_policy(self, w: Tensor) -> Tensor:
        """Action cost g (...) of the optimal input for w (..., m).

        It is more accurate than `cost(policy(w))`: near its limit, u in float32 has lost the digits that g depends on.
        """
        g: Tensor = self._robot.optimal_input_cost(_rows(self._kernel_argument(w)))
        g = g.view(w.shape[:-1])
        return g if self.slope is None else self._measured(g, self.policy(w))

    def cost(self, u: Tensor) -> Tensor:
        """Action cost g (...) of inputs u (..., m) within the limits."""
        g: Tensor = self._robot.action_cost(_rows(u))[0]
        return self._measured(g.view(u.shape[:-1]), u)

    def slopes(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """First derivatives of g and the diagonal of its Hessian, both (..., m), at inputs u (..., m)."""
        _, first, second = self._robot.action_cost(_rows(u))
        first = first.view(u.shape)
        return first if self.slope is None else first - self.slope, second.view(u.shape)


def _rows(values: Tensor) -> Tensor:
    """The same numbers in the form that kernels take: (N, m), contiguous."""
    return values.reshape(-1, values.shape[-1]).contiguous()
