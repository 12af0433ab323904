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


@dataclass(frozen=True)
class Quantity:
    """A node of a graph as a function of the d symbols of a domain, with its gradient."""

    domain: Domain
    graph: Graph
    inputs: tuple[Node, ...]  # (d,)
    node: Node

    @cached_property
    def gradient(self) -> tuple[Node, ...]:
        """Nodes of the derivatives (d,)."""
        return tuple(reverse(self.graph, {self.node: self.graph.one}, self.inputs))

    @cached_property
    def compiled(self) -> Any:
        """casadi.Function: (d, N) -> (1, N), (d, N)."""
        outputs = Output("value", (), (self.node,)), Output("slope", (len(self.inputs),), self.gradient)
        return compiled(self.graph, Function("guard", (Argument("at", self.inputs),), outputs), "proof")

    def values(self, points: Array) -> Array:
        """Values (N,) at points (N, d)."""
        return np.asarray(self.compiled(points.T)[0]).reshape(-1)

    def value_and_slope(self, point: Array) -> tuple[float, Array]:
        """The value at one point, and its gradient (d,)."""
        value, slope = self.compiled(point)
        return float(value), np.asarray(slope).reshape(-1)

    def enclosure(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N,) of the value over boxes with corners (N, d)."""
        low, high = enclosures(self.graph, [self.node], self.inputs, lower, upper)
        return low[:, 0], high[:, 0]

    def slopes(self, lower: Array, upper: Array) -> Interval:
        """Bounds (N, d) of the gradient over boxes."""
        return enclosures(self.graph, self.gradient, self.inputs, lower, upper)

    def negated(self) -> Quantity:
        """The quantity with the other sign."""
        return Quantity(self.domain, self.graph, self.inputs, self.graph.negative(self.node))


def quantity_of(expression: Expr, whole: Domain, definitions: Sequence[Definition] = ()) -> Quantity:
    """An expression as a quantity of the symbols that it depends on."""
    expression, definitions = whole.on(expression), [(symbol, whole.on(value)) for symbol, value in definitions]
    domain = whole.of([expression, *(value for _, value in definitions)])
    graph, inputs, (node,) = scalars(domain.symbols, [expression], definitions)
    return Quantity(domain, graph, inputs, node)


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
