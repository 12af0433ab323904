"""Whether the three functions of an action cost belong together, by the Fenchel-Young equality."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import mpmath
from mpmath import mpf
from sympy import Expr, Symbol, lambdify

from modelgen.errors import ModelError, Place
from modelgen.statement.action_costs.action_cost import InputCost

DIGITS = 30
CLOSE = 1e-8
SHARES = (-0.9, -0.6, -0.3, -0.01, 0.01, 0.3, 0.6, 0.9)  # of the limit


def check_input_cost(kind: str, cost: InputCost, limit: float, place: Place) -> None:
    """Raise ModelError unless g is zero at rest and rises from there, and grad g~ is the inverse of its slope.

    The optimal input u of w has w = dg/du (Fenchel-Young), wherever it is within the limits.
    """
    g = _function(cost.u, cost.cost)
    best, best_cost = _function(cost.w, cost.optimal_input), _function(cost.w, cost.optimal_input_cost)

    def wrong(what: str) -> ModelError:
        return ModelError(f"the action cost {kind} is wrong for the input `{cost.u}`: {what}", place)

    with mpmath.workdps(DIGITS):
        size = abs(g(mpf(limit)))
        if not mpmath.isfinite(size) or abs(g(mpf(0))) > CLOSE * size:
            raise wrong(f"`cost` is {_text(g(mpf(0)))} at 0 and {_text(size)} at the limit; state g(0) = 0, g finite.")
        slopes = [mpmath.diff(g, mpf(share) * limit) for share in SHARES]
        if any(later <= earlier for earlier, later in pairwise(slopes)):
            raise wrong("the slope of `cost` does not rise with u; state a strictly convex g(u).")
        for share, w in zip(SHARES, slopes, strict=True):
            u = mpf(share) * limit
            if abs(best(w) - u) > CLOSE * limit:
                raise wrong(
                    f"at u = {_text(u)} the slope of `cost` is w = {_text(w)}, but `optimal_input` of that w is "
                    f"{_text(best(w))}. State the u at which the slope of g is w."
                )
            if abs(best_cost(w) - g(u)) > CLOSE * size:
                raise wrong(
                    f"`optimal_input_cost` of w = {_text(w)} is {_text(best_cost(w))}, but `cost` of the optimal input "
                    f"{_text(u)} is {_text(g(u))}. State g(grad g~(w))."
                )
        if any(abs(best(sign * 1e6 * slopes[-1])) > limit * (1 + CLOSE) for sign in (1, -1)):
            raise wrong(f"`optimal_input` of a large w is beyond the limit of {limit:g}; clip it with Min and Max.")


def _function(symbol: Symbol, expression: Expr) -> Callable[[mpf], mpf]:
    function = lambdify([symbol], expression, modules="mpmath")

    def value(at: mpf) -> mpf:
        try:
            result: mpf = function(at)
        except ZeroDivisionError:
            result = mpf("inf")
        return result

    return value


def _text(value: mpf) -> str:
    return str(mpmath.nstr(value, 6))
