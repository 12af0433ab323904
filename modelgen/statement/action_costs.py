"""Action costs g(u): the base class, the three costs of the package, and the check of an action cost.

One class defines a cost for the solver, the C code, the optimiser and the linearisation. A new cost is a subclass of
`ActionCost`, beside your model file, or in this file with a line in `ACTION_COSTS`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import pi

import mpmath
from mpmath import mpf
from sympy import Abs, Dummy, Expr, Float, Max, Min, Rational, Symbol, atan, exp, lambdify, log, sin, srepr, tanh
from sympy.codegen.cfunctions import log1p

from modelgen.errors import ModelError, mistake

POLE_MARGIN = 1e-3  # from the limit to the pole of LogCos, in units of u, as in the paper's code
TINY = 1e-30  # replaces zero in a logarithm
CHECK_DIGITS = 30
CHECK_TOLERANCE = 1e-8
CHECK_SHARES = (-0.9, -0.6, -0.3, -0.01, 0.01, 0.3, 0.6, 0.9)  # of the limit
#: SymPy would ask for signs that depend on u and w, for nine tenths of the time that a cost takes.
_max, _min, _sin, _log1p = (partial(function, evaluate=False) for function in (Max, Min, sin, log1p))


@dataclass(frozen=True)
class InputCost:
    """The action cost of one input as expressions of u, and of w = B^T dV/dx in the row of this input."""

    u: Symbol
    w: Symbol
    cost: Expr  # g(u)
    optimal_input: Expr  # grad g~(w), the u that maximises w u - g(u)
    optimal_input_cost: Expr  # g(grad g~(w))

    def measured_from(self, middle: float, trim: float) -> InputCost:
        """The Bregman divergence D(u, u0) = h(u) - h(u0) - h'(u0) (u - u0) of h(u) = g(u - middle) from u0 = trim.

        It is zero with zero slope at u0 and keeps the limits. Its optimal input is middle + grad g~(w + h'(u0)).
        Without a middle and a trim it is this cost.
        """
        if middle == 0.0 and trim == 0.0:
            return self
        g = _function(self.u, self.cost)
        with mpmath.workdps(CHECK_DIGITS):
            offset = mpf(trim) - mpf(middle)
            at_trim, slope = (Float(str(value), 17) for value in (g(offset), mpmath.diff(g, offset)))
        best, best_cost = (
            expression.subs(self.w, self.w + slope) for expression in (self.optimal_input, self.optimal_input_cost)
        )
        best = middle + best
        return InputCost(
            self.u,
            self.w,
            self.cost.subs(self.u, self.u - middle) - at_trim - slope * (self.u - trim),
            best,
            best_cost - at_trim - slope * (best - trim),
        )

    def curvature_ratio(self, u: float) -> float:
        """g''(u) as a multiple of g''(0)."""
        g = _function(self.u, self.cost)
        with mpmath.workdps(CHECK_DIGITS):
            return float(mpmath.diff(g, mpf(u), 2) / mpmath.diff(g, mpf(0), 2))

    @cached_property
    def statement(self) -> list[str]:
        """The cost as text, independent of the names of its symbols, for the content hash."""
        names = {self.u: Symbol("u"), self.w: Symbol("w")}
        return [
            srepr(expression.xreplace(names)) for expression in (self.cost, self.optimal_input, self.optimal_input_cost)
        ]


@dataclass(frozen=True)
class ActionCost(ABC):
    """A cost g(u) that is the sum of one cost per input: convex, zero at u = 0, for |u| <= limit.

    weights: one positive number, or one per input. A subclass defines three functions of one input with SymPy. The
    last two follow from the first, but each needs a form that keeps its digits in single precision: the cost of a
    saturated input can be computed from w, not from u. `robot.task` checks that the three belong together.
    """

    weights: float | Sequence[float]

    @abstractmethod
    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        """g(u), finite for |u| <= limit."""

    @abstractmethod
    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        """grad g~(w), the u that maximises w u - g(u). It is within the limits for every w."""

    @abstractmethod
    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        """g(grad g~(w)). Where w saturates the input, it may be the value without the limit."""

    @property
    def name(self) -> str:
        """The name of the class in the artifact: LogCos is log_cos."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    def of_input(self, u: Symbol, limit: float, weight: float) -> InputCost:
        """The expressions for an input with this limit and weight."""
        w = Dummy(f"w_{u.name}", real=True)
        return InputCost(
            u,
            w,
            self.cost(u, limit, weight),
            self.optimal_input(w, limit, weight),
            self.optimal_input_cost(w, limit, weight),
        )


class Quadratic(ActionCost):
    """g(u) = weight u^2. The optimal input is w/(2 weight), clipped to the limits."""

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:  # noqa: ARG002
        return weight * u**2

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return _max(_min(w / (2 * weight), limit), -limit)

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        return weight * self.optimal_input(w, limit, weight) ** 2


class LogCos(ActionCost):
    """g(u) = -2 beta a/pi log cos(pi u/(2 a)): quadratic for small inputs, steep at the limit.

    a = limit + 1e-3 and beta = 4 limit^2 weight/pi are the values of the paper's code, so that returns compare with
    its returns. For a limit below 1, a = 1.001 limit, because a margin of 1e-3 is too wide for a small motor. Half the
    curvature at u = 0 is weight limit^2/a, which is not the weight.
    """

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        # -2 log cos y = log(1 + tan(y)^2). The cosine is written as the sine of pi/2 - y, because near the limit the
        # cosine has no digits in single precision. Max keeps g finite beyond the limit. It also prevents SymPy from
        # adding limit and margin, whose difference to |u| would lose its digits too.
        per_unit = pi / (2 * _pole(limit))
        to_limit = _max(limit - Abs(u), -_margin(limit) / 2)
        tangent = _sin(per_unit * u) / _sin(per_unit * to_limit + per_unit * _margin(limit))
        return _width(limit, weight) * _pole(limit) / pi * _log1p(tangent**2)

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return _max(_min(2 * _pole(limit) / pi * atan(w / _width(limit, weight)), limit), -limit)

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        return _width(limit, weight) * _pole(limit) / pi * _log1p((w / _width(limit, weight)) ** 2)


def _pole(limit: float) -> float:
    """a: the u at which g is infinite."""
    return limit + _margin(limit)


def _margin(limit: float) -> float:
    return POLE_MARGIN * min(1.0, limit)


def _width(limit: float, weight: float) -> float:
    """beta: the w whose optimal input is a/2."""
    return 4 * limit**2 * weight / pi


class Tanh(ActionCost):
    """g(u) = weight limit^2 [2 s atanh(s) + log(1 - s^2)] with s = u/limit, which is finite at the limit.

    The optimal input is a hyperbolic tangent of w. Half the curvature at u = 0 is the weight.
    """

    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        s = u / limit
        above, below = _max(1 + s, TINY), _max(1 - s, TINY)
        twice_atanh = _log_one_plus(s, above) - _log_one_plus(-s, below)
        return weight * limit**2 * (s * twice_atanh + _log_one_plus(-(s**2), above * below))

    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        return limit * tanh(w / (2 * weight * limit))

    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        # 2 (y tanh y - log cosh y) with y = |w|/(2 weight limit), without the terms that grow as y and cancel
        decay = exp(-2 * Abs(w) / (2 * weight * limit))
        saturated = log(2) - Abs(w) / (weight * limit) * decay / (1 + decay) - _log1p(decay)
        return 2 * weight * limit**2 * saturated


def _log_one_plus(x: Expr, whole: Expr) -> Expr:
    """log(1 + x) as a sum of two logarithms: one is accurate near x = 0, the other near x = -1. whole: 1 + x."""
    return _log1p(_max(x, -Rational(1, 2))) + log(_min(2 * whole, 1))


#: The costs that come with the package. Add a cost here.
ACTION_COSTS: tuple[type[ActionCost], ...] = (LogCos, Quadratic, Tanh)


def check_input_cost(kind: str, cost: InputCost, limit: float) -> None:
    """Raise ModelError unless g(0) = 0, g is strictly convex, and grad g~ is the inverse of its slope.

    Within the limits, the optimal input u of w satisfies w = dg/du (Fenchel-Young equality).
    """
    g = _function(cost.u, cost.cost)
    best, best_cost = _function(cost.w, cost.optimal_input), _function(cost.w, cost.optimal_input_cost)

    def wrong(what: str) -> ModelError:
        return mistake(f"the action cost {kind} is wrong for the input `{cost.u}`: {what}")

    with mpmath.workdps(CHECK_DIGITS):
        size = abs(g(mpf(limit)))
        if not mpmath.isfinite(size) or abs(g(mpf(0))) > CHECK_TOLERANCE * size:
            raise wrong(f"`cost` is {_text(g(mpf(0)))} at 0 and {_text(size)} at the limit; g(0) must be 0, g finite.")
        slopes = [mpmath.diff(g, mpf(share) * limit) for share in CHECK_SHARES]
        if any(later <= earlier for earlier, later in pairwise(slopes)):
            raise wrong("the slope of `cost` does not rise with u; write a strictly convex g(u).")
        for share, w in zip(CHECK_SHARES, slopes, strict=True):
            u = mpf(share) * limit
            if abs(best(w) - u) > CHECK_TOLERANCE * limit:
                raise wrong(
                    f"at u = {_text(u)} the slope of `cost` is w = {_text(w)}, but `optimal_input` of that w is "
                    f"{_text(best(w))}. Return the u at which the slope of g is w."
                )
            if abs(best_cost(w) - g(u)) > CHECK_TOLERANCE * size:
                raise wrong(
                    f"`optimal_input_cost` of w = {_text(w)} is {_text(best_cost(w))}, but `cost` of the optimal input "
                    f"{_text(u)} is {_text(g(u))}. Return g(grad g~(w))."
                )
        if any(abs(best(sign * 1e6 * slopes[-1])) > limit * (1 + CHECK_TOLERANCE) for sign in (1, -1)):
            raise wrong(f"`optimal_input` of a large w exceeds the limit of {limit:g}; clip it with Min and Max.")


def _function(symbol: Symbol, expression: Expr) -> Callable[[mpf], mpf]:
    argument = Dummy()  # the name of an input may be that of a function, such as log
    function = lambdify([argument], expression.xreplace({symbol: argument}), modules="mpmath")

    def value(at: mpf) -> mpf:
        try:
            result: mpf = function(at)
        except ZeroDivisionError:
            result = mpf("inf")
        return result

    return value


def _text(value: mpf) -> str:
    return str(mpmath.nstr(value, 6))
