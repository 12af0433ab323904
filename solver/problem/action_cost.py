"""The action cost of a robot's task on Torch tensors; its formulas are kernels of the artifact."""

from __future__ import annotations

from torch import Tensor

from modelgen.loader import CompiledRobot


class ActionCost:
    """g(u) and grad g~(w), w = B^T dV/dx, of tensors (..., m) in the robot's dtype.

    The input u = grad g~(w) maximises the Hamiltonian dV/dx . (a + B u) - g(u) (paper, eq. 10). No gradient flows.
    """

    def __init__(self, robot: CompiledRobot) -> None:
        self._robot = robot

    def policy(self, w: Tensor) -> Tensor:
        """w (..., m) -> the optimal input u = grad g~(w) (..., m), |u| <= limit."""
        u: Tensor = self._robot.optimal_input(_rows(w))
        return u.view(w.shape)

    def cost_of_policy(self, w: Tensor) -> Tensor:
        """w (..., m) -> g (...) of the optimal input, with the digits that a saturated u no longer has."""
        g: Tensor = self._robot.optimal_input_cost(_rows(w))
        return g.view(w.shape[:-1])

    def cost(self, u: Tensor) -> Tensor:
        """u (..., m) within the limits -> g(u) (...)."""
        g: Tensor = self._robot.action_cost(_rows(u))[0]
        return g.view(u.shape[:-1])

    def slopes(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """u (..., m) within the limits -> dg/du and the diagonal of its Hessian, both (..., m)."""
        _, first, second = self._robot.action_cost(_rows(u))
        return first.view(u.shape), second.view(u.shape)


def _rows(values: Tensor) -> Tensor:
    """The same numbers as kernels take them: (N, m), contiguous."""
    return values.reshape(-1, values.shape[-1]).contiguous()
