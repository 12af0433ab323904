"""A quantity of the graph: its values, exact slopes and enclosures over its domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr

from modelgen.arrays import Array
from modelgen.backends.casadi import compiled
from modelgen.derivation.equations import Definition
from modelgen.derivation.lowering import scalars
from modelgen.program.differentiate import reverse
from modelgen.program.functions import Argument, Function, Output
from modelgen.program.graph import Graph, Node
from modelgen.proof.guards import Domain
from modelgen.proof.intervals import Interval, enclosures
from modelgen.proof.loops import EnclosedLoop


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


def nodes_of(expressions: Sequence[Expr], whole: Domain, definitions: Sequence[Definition] = ()) -> Nodes:
    """Expressions as nodes, with the symbols that they depend on."""
    expressions = [whole.on(expression) for expression in expressions]
    definitions = [(symbol, whole.on(value)) for symbol, value in definitions]
    domain = whole.of([*expressions, *(value for _, value in definitions)])
    closures = domain.loops
    z = tuple(symbol for closure in closures for symbol in closure.dependent)
    kinematics = [pair for closure in closures for pair in closure.kinematics]
    known = {symbol for closure in closures for symbol, _ in (*closure.solution(), *closure.kinematics)}
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

    def slopes(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N, d) of the gradient over boxes."""
        return self.within.bounds(self.gradient, lower, upper)

    def negated(self) -> Quantity:
        """The quantity with the other sign."""
        return Quantity(self.within, self.graph.negative(self.node))


def quantity_of(expression: Expr, whole: Domain, definitions: Sequence[Definition] = ()) -> Quantity:
    """An expression as a quantity of the symbols that it depends on."""
    within = nodes_of([expression], whole, definitions)
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
