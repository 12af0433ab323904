"""The log-cos barrier."""

from __future__ import annotations

from math import pi

from sympy import Abs, Expr, Max, Min, Symbol, atan, sin
from sympy.codegen.cfunctions import log1p

from modelgen.statement.action_costs.action_cost import ActionCost

MARGIN = 1e-3  # from the limit to the pole of g, in units of u, as in the authors' code: of a motor of 1 N m or more


class LogCos(ActionCost):
    """g(u) = -2 beta a/pi log cos(pi u/(2 a)): quadratic for small inputs, steep at the limit.

    a = limit + 1e-3 and beta = 4 limit^2 weight/pi are those of the authors' code, so that returns compare with
    theirs. Of a smaller limit than 1, a is a thousandth above it: 1e-3 N m beyond a motor of 5 mN m is no barrier.
    Half the curvature at u = 0 is weight limit^2/a, and not the weight.
    """

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        # -2 log cos y = log(1 + tan(y)^2). The cosine is written as the sine of what is left to pi/2, for beside the
        # limit a cosine has no digits in single precision. Max keeps g finite beyond the limit, and SymPy from adding
        # limit and margin, whose difference to |u| would have no digits either.
        per_unit = pi / (2 * _pole(limit))
        to_limit = Max(limit - Abs(u), -_margin(limit) / 2)
        tangent = sin(per_unit * u) / sin(per_unit * to_limit + per_unit * _margin(limit))
        return _width(limit, weight) * _pole(limit) / pi * log1p(tangent**2)

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return Max(Min(2 * _pole(limit) / pi * atan(w / _width(limit, weight)), limit), -limit)

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        return _width(limit, weight) * _pole(limit) / pi * log1p((w / _width(limit, weight)) ** 2)


def _pole(limit: float) -> float:
    """a, where g is infinite."""
    return limit + _margin(limit)


def _margin(limit: float) -> float:
    return MARGIN * min(1.0, limit)


def _width(limit: float, weight: float) -> float:
    """beta, the w whose optimal input is a/2."""
    return 4 * limit**2 * weight / pi
