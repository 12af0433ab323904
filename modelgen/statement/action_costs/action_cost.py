"""The action cost g(u): what one class of it states, and the expressions that it gives for each input."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from sympy import Dummy, Expr, Symbol, srepr


@dataclass(frozen=True)
class InputCost:
    """The action cost of one input as expressions of u, and of w = B^T dV/dx in the row of this input."""

    u: Symbol
    w: Symbol
    cost: Expr  # g(u)
    optimal_input: Expr  # grad g~(w), the u that maximises w u - g(u)
    optimal_input_cost: Expr  # g(grad g~(w))

    def statement(self) -> list[str]:
        """The same text for the same cost, whatever its symbols are called."""
        names = {self.u: Symbol("u"), self.w: Symbol("w")}
        return [srepr(each.xreplace(names)) for each in (self.cost, self.optimal_input, self.optimal_input_cost)]


@dataclass(frozen=True)
class ActionCost(ABC):
    """A cost g(u) that is the sum of one cost per input: convex, zero at u = 0, for |u| <= limit.

    weights: one positive number, or one per input. A class states three functions of one input with SymPy. They are
    three, and not one and its consequences, because each must keep its digits in single precision: the cost of a
    saturated input is known from w, but no longer from u. `robot.task` checks that they belong together.
    """

    weights: float | Sequence[float]

    @abstractmethod
    def cost(self, u: Symbol, limit: float, weight: float) -> Expr:
        """g(u), finite for |u| <= limit."""

    @abstractmethod
    def optimal_input(self, w: Symbol, limit: float, weight: float) -> Expr:
        """grad g~(w), the u that maximises w u - g(u); within the limits for every w."""

    @abstractmethod
    def optimal_input_cost(self, w: Symbol, limit: float, weight: float) -> Expr:
        """g(grad g~(w)); above the limits the value without them may stand."""

    @property
    def name(self) -> str:
        """The class's name as the artifact states it: LogCos is log_cos."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    def of_input(self, u: Symbol, limit: float, weight: float) -> InputCost:
        """The expressions for an input of this limit and weight."""
        w = Dummy(f"w_{u.name}", real=True)
        return InputCost(
            u,
            w,
            self.cost(u, limit, weight),
            self.optimal_input(w, limit, weight),
            self.optimal_input_cost(w, limit, weight),
        )
