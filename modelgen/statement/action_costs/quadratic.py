"""The quadratic cost."""

from __future__ import annotations

from sympy import Expr, Max, Min, Symbol

from modelgen.statement.action_costs.action_cost import ActionCost


class Quadratic(ActionCost):
    """g(u) = weight u^2, and the optimal input w/(2 weight) clipped to its limits."""

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:  # noqa: ARG002
        return weight * u**2

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return Max(Min(w / (2 * weight), limit), -limit)

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        return weight * self.optimal_input(w, limit, weight) ** 2
