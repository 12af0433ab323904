"""The policy of continuous time: u = grad g~(B(x)^T dV/dx), which maximises dV/dx . (a + B u) - g_c(u) (eq. 10)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solver.problem.problem import Problem


class Response(NamedTuple):
    """What a policy does at N states."""

    u: Tensor  # (N, m)
    cost: Tensor  # (N,) g_c(u)
    w: Tensor  # (N, m) B^T dV/dx at the states


class ClosedFormPolicy:
    """The input as a function of the state and of the costate dV/dx."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def respond(self, x: Tensor, costate: Tensor) -> Response:
        """The input at x (N, n) for the costate (N, n)."""
        _, control_matrix = self.problem.robot.affine_dynamics(x)
        w = torch.einsum("bnm,bn->bm", control_matrix, costate)
        argument, cost = self._argument(x, control_matrix, w), self.problem.action_cost
        return Response(cost.policy(argument), cost.cost_of_policy(argument), w)

    def argument(self, x: Tensor, costate: Tensor) -> Tensor:
        """What grad g~ is evaluated at for the input at x (N, n), (N, m)."""
        _, control_matrix = self.problem.robot.affine_dynamics(x)
        return self._argument(x, control_matrix, torch.einsum("bnm,bn->bm", control_matrix, costate))

    def _argument(self, _x: Tensor, _control_matrix: Tensor, w: Tensor) -> Tensor:
        """What grad g~ is evaluated at, (N, m)."""
        return w
