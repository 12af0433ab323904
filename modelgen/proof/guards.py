"""Guards: quantities that must not vanish or change sign on the domain, each with its line of the model file.

A quantity of the graph has values, exact slopes and enclosures over its domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sympy import Basic, Dummy, Expr, S, Symbol, cos, exp, pi, postorder_traversal, sin

from modelgen.arrays import Array
from modelgen.backends.casadi import compiled
from modelgen.derivation.equations import Definition
from modelgen.derivation.loops import LoopGroup, closures, expanded
from modelgen.derivation.lowering import scalars
from modelgen.errors import Place, abridged
from modelgen.program.differentiate import reverse
from modelgen.program.functions import Argument, Function, Output
from modelgen.program.graph import Graph, Node
from modelgen.proof.intervals import Interval, enclosures
from modelgen.proof.loops import EnclosedLoop
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
    loops: tuple[LoopGroup, ...] = ()  # which determine coordinates that are not among the symbols

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
    """Divisors and arguments of roots, logarithms and inverse functions in all expressions, inner ones first; then
    coefficients that vary.

    Kernels hold derivatives too, so that the argument of a root must not reach zero, where the root has no slope.
    """
    known, by_expression = fixed_values(robot), dict[tuple[str, Expr], Guard]()
    for written in model_expressions(robot):
        for node in (node for entry in written.entries for node in postorder_traversal(entry)):
            for guard in _of_node(node, known, written.place, written.slopes):
                if guard.expression.free_symbols:
                    by_expression.setdefault((guard.what, guard.expression), guard)
    return [*by_expression.values(), *_of_coefficients(robot, known)]


def _of_coefficients(robot: Robot, known: dict[Symbol, Expr]) -> Iterator[Guard]:
    """The guards of masses, losses and efficiencies by coordinates and several parameters."""
    for each in robot.varying:
        value, named = each.value.xreplace(known), f"the {each.what} `{abridged(str(each.value))}`"
        wanted = "must not be negative" if each.zero else "must be greater than zero"
        advice = "Write an expression that keeps its sign, such as a square, or narrow the limits."
        yield Guard(each.what, f"`{each.value}`", value, each.place, f"{named} {wanted}, but is", advice, each.zero)
        if each.most < math.inf:
            claim = f"{named} must not exceed {each.most:g}, and what is left to it is"
            yield Guard(f"room of {each.what}", f"`{each.value}`", each.most - value, each.place, claim, advice, True)


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


@dataclass(frozen=True)
class Nodes:
    """Nodes of a graph as functions of the d symbols of a domain. What loops determine are further inputs."""

    domain: Domain
    graph: Graph
    inputs: tuple[Node, ...]  # (d,)
    solved: tuple[Node, ...]  # coordinates that loops determine
    nodes: tuple[Node, ...]

    @property
    def arguments(self) -> tuple[Node, ...]:
        """All inputs of the graph."""
        return self.inputs + self.solved

    @cached_property
    def loops(self) -> list[EnclosedLoop]:
        """The loops that determine `solved`."""
        return [EnclosedLoop(closure, self.domain.symbols) for closure in self.domain.loops]

    def at(self, points: Array) -> Array:
        """Values (N, all inputs) at points (N, d)."""
        return np.hstack([points, *(loop.values(points) for loop in self.loops)])

    def bounds(self, nodes: Sequence[Node], lower: Array, upper: Array) -> Interval:
        """Bounds (N, nodes) of nodes of the graph over boxes with corners (N, d)."""
        solved = [loop.enclosed(lower, upper) for loop in self.loops]
        low, high = (np.hstack([end, *(pair[k] for pair in solved)]) for k, end in enumerate((lower, upper)))
        return enclosures(self.graph, nodes, self.arguments, low, high)

    def changing(self, signs: Sequence[Node], lower: Array, upper: Array) -> NDArray[np.bool_]:
        """Whether one of the signs changes in a box, (N,)."""
        if not signs:
            return np.zeros(len(lower), np.bool_)
        low, high = self.bounds(signs, lower, upper)
        return np.asarray((low != high).any(axis=1))


def nodes_of(expressions: Sequence[Expr], whole: Domain, definitions: Sequence[Definition] = ()) -> Nodes:
    """Expressions as nodes, with the symbols that they depend on."""
    expressions = [whole.on(expression) for expression in expressions]
    definitions = [(symbol, whole.on(value)) for symbol, value in definitions]
    domain = whole.of([*expressions, *(value for _, value in definitions)])
    closures = domain.loops
    z = tuple(symbol for closure in closures for symbol in closure.dependent)
    kinematics = [pair for closure in closures for pair in closure.kinematics]
    known = {symbol for closure in closures for symbol, _ in (*closure.solution, *closure.kinematics)}
    others = [(symbol, value) for symbol, value in definitions if symbol not in known]
    implicit = {symbol: slopes for closure in closures for symbol, slopes in closure.implicit.items()}
    rates = [other.rate for closure in closures for other in closure.independent]
    extra = tuple(dict.fromkeys(symbol for symbol in rates if symbol not in domain.symbols))
    graph, inputs, nodes = scalars((*domain.symbols, *z, *extra), expressions, (*kinematics, *others), (), implicit)
    size = len(domain.symbols)
    return Nodes(domain, graph, inputs[:size], inputs[size : size + len(z)], nodes)


@dataclass(frozen=True)
class Quantity:
    """A node of a graph as a function of the d symbols of a domain, with its gradient."""

    within: Nodes
    node: Node

    @property
    def domain(self) -> Domain:
        """The symbols and their intervals."""
        return self.within.domain

    @property
    def graph(self) -> Graph:
        """The graph of the node."""
        return self.within.graph

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes (d,) of the symbols."""
        return self.within.inputs

    @cached_property
    def gradient(self) -> tuple[Node, ...]:
        """Nodes of the derivatives (d,)."""
        return tuple(reverse(self.graph, {self.node: self.graph.one}, self.inputs))

    @cached_property
    def compiled(self) -> Any:
        """casadi.Function: (all inputs, N) -> (1, N), (d, N)."""
        outputs = Output("value", (), (self.node,)), Output("slope", (len(self.inputs),), self.gradient)
        return compiled(self.graph, Function("guard", (Argument("at", self.within.arguments),), outputs), "proof")

    def values_and_slopes(self, points: Array) -> tuple[Array, Array]:
        """Values (N,) and gradients (N, d) at points (N, d)."""
        values, slopes = self.compiled(self.within.at(points).T)
        return np.asarray(values).reshape(-1), np.asarray(slopes).T.reshape(len(points), -1)

    def values(self, points: Array) -> Array:
        """Values (N,) at points (N, d)."""
        return self.values_and_slopes(points)[0]

    def value_and_slope(self, point: Array) -> tuple[float, Array]:
        """The value at one point, and its gradient (d,)."""
        values, slopes = self.values_and_slopes(point[None])
        return float(values[0]), slopes[0]

    def enclosure(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N,) of the value over boxes with corners (N, d)."""
        low, high = self.within.bounds([self.node], lower, upper)
        return low[:, 0], high[:, 0]

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of the value by one enclosure of the whole domain."""
        low, high = self.enclosure(self.domain.lower[None], self.domain.upper[None])
        return float(low[0]), float(high[0])

    def slopes(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N, d) of the gradient over boxes."""
        return self.within.bounds(self.gradient, lower, upper)

    def negated(self) -> Quantity:
        """The quantity with the other sign."""
        return Quantity(self.within, self.graph.negative(self.node))


def quantity_of(expression: Expr, whole: Domain) -> Quantity:
    """An expression as a quantity of the symbols that it depends on."""
    within = nodes_of([expression], whole)
    return Quantity(within, within.nodes[0])


def pivots(rows: Sequence[Sequence[Node]], graph: Graph) -> list[Node]:
    """The pivots D of M = L D L^T with a unit lower triangular L. M is positive definite if all are positive."""
    lower: list[list[Node]] = []
    result: list[Node] = []
    for i, row in enumerate(rows):
        scaled: list[Node] = []
        for j in range(i):
            scaled.append(graph.sub(row[j], graph.dot(scaled, lower[j])))
        lower.append([graph.div(entry, pivot) for entry, pivot in zip(scaled, result, strict=True)])
        result.append(graph.sub(row[i], graph.dot(scaled, lower[i])))
    return result
