"""Action cost g of a robot's task on Torch tensors. The formulas are kernels of the artifact."""

from __future__ import annotations

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot


class TensorActionCost:
    """Action cost g(u) and the gradient of its convex conjugate, grad g~(w), of tensors (..., m) in the robot's dtype.

    g is zero, with zero slope, at `trim` (m,).

    The input u = grad g~(w) with w = B^T dV/dx maximises dV/dx . (a + B u) - g(u) (paper, eq. 10). The leading axes are
    arbitrary. Autograd does not differentiate through these functions.
    """

    def __init__(self, robot: CompiledRobot, device: torch.device | str = "cpu") -> None:
        self._robot = robot
        self.trim = torch.as_tensor(robot.trim, device=device)  # (m,)

    def policy(self, w: Tensor) -> Tensor:
        """Optimal input u = grad g~(w) (..., m) for w (..., m); |u| <= input limit."""
        u: Tensor = self._robot.optimal_input(_rows(w))
        return u.view(w.shape)

    def cost_of_policy(self, w: Tensor) -> Tensor:
        """Action cost g (...) of the optimal input for w (..., m).

        It is more accurate than `cost(policy(w))`: near its limit, u in float32 has lost the digits that g depends on.
        """
        g: Tensor = self._robot.optimal_input_cost(_rows(w))
        return g.view(w.shape[:-1])

    def cost(self, u: Tensor) -> Tensor:
        """Action cost g (...) of inputs u (..., m) within the limits."""
        g: Tensor = self._robot.action_cost(_rows(u))[0]
        return g.view(u.shape[:-1])

    def slopes(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """First derivatives of g and the diagonal of its Hessian, both (..., m), at inputs u (..., m)."""
        _, first, second = self._robot.action_cost(_rows(u))
        return first.view(u.shape), second.view(u.shape)


def _rows(values: Tensor) -> Tensor:
    """The same numbers in the form that kernels take: (N, m), contiguous."""
    return values.reshape(-1, values.shape[-1]).contiguous()
