"""Guards: quantities that must not vanish or change sign on the domain, each with its line of the model file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from sympy import Basic, Dummy, Expr, S, Symbol, cos, exp, pi, postorder_traversal, sin

from modelgen.arrays import Array
from modelgen.derivation.loops import Closure, closures, expanded
from modelgen.errors import Place, abridged
from modelgen.statement.robot import Robot, fixed_values, model_expressions


@dataclass(frozen=True)
class Guard:
    """An expression of states, inputs and parameters that must be positive so that kernels have values and slopes."""

    what: str  # such as "divisor"
    text: str  # as in the file
    expression: Expr  # must be > 0; >= 0 if `zero`; of one sign, either one, if `either`
    place: Place
    claim: str  # the start of a message, before the value and the point
    advice: str  # the end of a message: what to write instead
    zero: bool = False
    either: bool = False

    @property
    def name(self) -> str:
        """The name of the guard in a table."""
        return f"{self.what} {abridged(self.text)}".strip()


@dataclass(frozen=True)
class Domain:
    """The symbols of a robot and their intervals: states and inputs within the limits, parameters in the bounds."""

    symbols: tuple[Symbol, ...]
    lower: Array
    upper: Array
    sphere: Mapping[Symbol, Expr] = field(default_factory=dict)  # entry of a quaternion -> expression in three angles
    loops: tuple[Closure, ...] = ()  # which determine coordinates that are not among the symbols

    def of(self, expressions: Iterable[Basic]) -> Domain:
        """The domain of the symbols of the expressions. Coordinates that loops determine count as their variables."""
        free = {symbol for expression in expressions for symbol in self.on(expression).free_symbols}
        loops = tuple(loop for loop in self.loops if free & loop.determined)
        free = expanded(free, loops)
        kept = [number for number, symbol in enumerate(self.symbols) if symbol in free]
        return Domain(tuple(self.symbols[k] for k in kept), self.lower[kept], self.upper[kept], self.sphere, loops)

    def on(self, expression: Basic) -> Basic:
        """The expression with quaternions of length one: no other is in the domain."""
        return expression.xreplace(self.sphere) if self.sphere else expression

    def text(self, point: Array) -> str:
        """A point as text, for a message."""
        return ", ".join(f"{symbol} = {value:.9g}" for symbol, value in zip(self.symbols, point, strict=True))


ADVICE = (
    "The equations have no value or no slope there. Narrow the limits or bounds, or write an expression that stays "
    "away from it, such as sqrt(y**2 + 1e-6) for a length that reaches zero."
)


def domain(robot: Robot) -> Domain:
    """The domain of everything that the equations of a robot depend on."""
    sphere: dict[Symbol, Expr] = {}
    angles: list[tuple[Symbol, float]] = []
    for ball in robot.balls:
        a, b, c = (Dummy(f"{ball.name}_angle", real=True) for _ in range(3))
        point = cos(a), sin(a) * cos(b), sin(a) * sin(b) * cos(c), sin(a) * sin(b) * sin(c)
        sphere |= dict(zip(ball.quaternion, point, strict=True))
        angles += [(angle, float(pi)) for angle in (a, b, c)]
    limits = [(symbol, limit) for symbol, limit in robot.limits.items() if symbol not in sphere]
    bounds = [(symbol, -limit, limit) for symbol, limit in (*angles, *limits)]
    bounds += [(declared.symbol, *declared.range) for declared in robot.inputs]
    bounds += [(parameter.symbol, *parameter.bounds) for parameter in robot.parameters if not parameter.fixed]
    symbols, lower, upper = zip(*bounds, strict=True)
    return Domain(symbols, np.array(lower, np.float64), np.array(upper, np.float64), sphere, closures(robot))


def guards(robot: Robot) -> list[Guard]:
    """Divisors and arguments of roots, logarithms and inverse functions in all expressions, inner ones first.

    Kernels hold derivatives too, so that the argument of a root must not reach zero, where the root has no slope.
    """
    known, by_expression = fixed_values(robot), dict[tuple[str, Expr], Guard]()
    for written in model_expressions(robot):
        for node in (node for entry in written.entries for node in postorder_traversal(entry)):
            for guard in _of_node(node, known, written.place, written.slopes):
                if guard.expression.free_symbols:
                    by_expression.setdefault((guard.what, guard.expression), guard)
    return list(by_expression.values())


def _of_node(node: Basic, known: dict[Symbol, Expr], place: Place, slopes: int) -> Iterator[Guard]:
    """The guards of one operation. `known` replaces symbols in the expression, not in the text of messages."""

    def guard(what: str, argument: Basic, expression: Expr, needs: str, **allowed: bool) -> Guard:
        claim = f"the {what} `{abridged(str(argument))}` {needs}, but is"
        return Guard(what, f"`{argument}`", expression.xreplace(known), place, claim, ADVICE, **allowed)

    name = type(node).__name__
    if node.is_Pow and not isinstance(node, exp):
        base, exponent = node.args
        if not exponent.is_number:
            yield guard("base of a power", base, base, "must be above zero")
        elif not exponent.is_Integer:
            smooth = bool(exponent >= slopes)
            yield guard("argument of a root", base, base, f"must be {'zero or ' * smooth}above zero", zero=smooth)
        elif exponent.is_negative:
            yield guard("divisor", base, base, "must not be zero", either=True)
    elif name == "log":
        yield guard("argument of a logarithm", node.args[0], node.args[0], "must be above zero")
    elif name == "log1p":
        yield guard("argument of log1p", node.args[0], 1 + node.args[0], "plus one must be above zero")
    elif name in ("asin", "acos"):
        needs = "must be between -1 and 1, so that one less its square is above zero"
        yield guard(f"argument of {name}", node.args[0], S.One - node.args[0] ** 2, needs)
    elif name == "tan":
        yield guard(
            "argument of tan", node.args[0], cos(node.args[0]), "must have a cosine that is not zero", either=True
        )
    elif name == "atan2":
        square = node.args[0] ** 2 + node.args[1] ** 2
        yield guard("point of an angle", node, square, "must be above zero in squared length")
