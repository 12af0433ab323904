"""The paper's policy of a value function in continuous time, in closed form: u = grad g~(B^T dV/dx) (eq. 10).

`solver.game.policies` has its form for an input under a zero-order hold, which the robots of the gallery use.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solver.problem.action_cost import TensorActionCost
from solver.problem.problem import Problem


class Response(NamedTuple):
    """Input of a policy at N states, and its cost."""

    u: Tensor  # (N, m) input
    cost: Tensor  # (N,) action cost g_c(u)
    w: Tensor  # (N, m) B^T dV/dx at the states


class ClosedFormPolicy:
    """Policy of continuous time, u = grad g~(B(x)^T dV/dx), which maximises dV/dx . (a + B u) - g_c(u) (eq. 10)."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def respond(self, x: Tensor, costate: Tensor) -> Response:
        """Input at the rows x (N, n + k) for the costate dV/dx (N, n), its cost, and w."""
        control_matrix = self._control_matrix(x)
        w = torch.einsum("bnm,bn->bm", control_matrix, costate)
        cost = self.problem.cost_at(x)
        argument = self._argument(x, control_matrix, w, cost)
        return Response(cost.policy(argument), cost.cost_of_policy(argument), w)

    def argument(self, x: Tensor, costate: Tensor) -> Tensor:
        """Argument (N, m) of grad g~ in the policy, at the rows x (N, n + k) for the costate dV/dx (N, n)."""
        control_matrix = self._control_matrix(x)
        w = torch.einsum("bnm,bn->bm", control_matrix, costate)
        return self._argument(x, control_matrix, w, self.problem.cost_at(x))

    def equation(self, x: Tensor, costate: Tensor) -> tuple[Tensor, Tensor | None]:
        """w = B^T dV/dx (N, m), and P (N, m, m) of the equation y = w - P (grad g~(y) - u0) that the argument y solves.

        P is None if y is w.
        """
        return torch.einsum("bnm,bn->bm", self._control_matrix(x), costate), None

    def _control_matrix(self, x: Tensor) -> Tensor:
        """B (N, n, m) at the rows x (N, n + k)."""
        matrix: Tensor = self.problem.robot.affine_dynamics(*self.problem.split(x))[1]
        return matrix

    def _argument(self, _x: Tensor, _control_matrix: Tensor, w: Tensor, _cost: TensorActionCost) -> Tensor:
        """Argument (N, m) of grad g~ in the policy, from w = B^T dV/dx (N, m) and B (N, n, m) at the rows x."""
        return w
