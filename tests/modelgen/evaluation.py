"""Evaluate nodes of a graph one after the other, in any kind of number: what emitted code must agree with."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import mpmath

from modelgen.graph import Graph

ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "negative": operator.neg,
    "solution": lambda value: value,
    "abs": abs,
    "minimum": min,
    "maximum": max,
    "pow": operator.pow,
}


def evaluate(graph: Graph, roots: Sequence[int], inputs: dict[str, Any]) -> list[Any]:
    """The roots' values as floats, or as mpmath numbers when the inputs are."""
    values: dict[int, Any] = {}
    for node in graph.reachable(roots):
        operation = graph.operations[node]
        if operation.kind == "constant":
            values[node] = operation.value
        elif operation.kind == "input":
            values[node] = inputs[operation.name]
        else:
            function = ARITHMETIC.get(operation.kind) or getattr(mpmath, operation.kind)
            values[node] = function(*(values[argument] for argument in operation.arguments))
    return [values[root] for root in roots]
