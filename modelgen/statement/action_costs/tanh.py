"""The cost whose optimal input is a hyperbolic tangent."""

from __future__ import annotations

from sympy import Abs, Expr, Max, Min, Rational, Symbol, exp, log, tanh
from sympy.codegen.cfunctions import log1p

from modelgen.statement.action_costs.action_cost import ActionCost

TINY = 1e-30  # stands for zero in a logarithm


class Tanh(ActionCost):
    """g(u) = weight limit^2 [2 s atanh(s) + log(1 - s^2)] with s = u/limit, finite at the limit.

    Half the curvature at u = 0 is the weight.
    """

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        s = u / limit
        above, below = Max(1 + s, TINY), Max(1 - s, TINY)
        twice_atanh = _log_one_plus(s, above) - _log_one_plus(-s, below)
        return weight * limit**2 * (s * twice_atanh + _log_one_plus(-(s**2), above * below))

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return limit * tanh(w / (2 * weight * limit))

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        # 2 (y tanh y - log cosh y) without the terms of both that grow as y, for y = |w|/(2 weight limit)
        decay = exp(-2 * Abs(w) / (2 * weight * limit))
        saturated = log(2) - Abs(w) / (weight * limit) * decay / (1 + decay) - log1p(decay)
        return 2 * weight * limit**2 * saturated


def _log_one_plus(x: Expr, whole: Expr) -> Expr:
    """log(1 + x) from x and from 1 + x: of the two logarithms one has digits near x = 0, the other near x = -1."""
    return log1p(Max(x, -Rational(1, 2))) + log(Min(2 * whole, 1))
