"""The expression graph: sharing, folding, and linear systems."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.program.graph import UNARY, Graph
from tests.modelgen.support.evaluation import evaluate

INPUTS = {"p": 0.75, "q": -1.25, "r": 2.0}
leaves = st.sampled_from([*INPUTS]) | st.sampled_from([0, 1, -1, 0.5, -3.0])
expressions = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from(["add", "sub", "mul"]), inner, inner)
        | st.tuples(st.sampled_from(["negative", "sin", "cos", "tanh", "abs", "atan"]), inner)
        | st.tuples(st.just("power"), inner, st.integers(0, 5))
    ),
    max_leaves=12,
)


def _built(graph: Graph, expression: Any) -> int:
    if isinstance(expression, str):
        return graph.input(expression)
    if not isinstance(expression, tuple):
        return graph.constant(expression)
    kind, *rest = expression
    if kind == "power":
        return graph.power(_built(graph, rest[0]), rest[1])
    arguments = [_built(graph, each) for each in rest]
    return getattr(graph, kind)(*arguments) if hasattr(graph, kind) else graph.call(kind, *arguments)


def _direct(expression: Any) -> float:
    if isinstance(expression, str):
        return INPUTS[expression]
    if not isinstance(expression, tuple):
        return float(expression)
    kind, *rest = expression
    if kind == "power":
        return _direct(rest[0]) ** rest[1]
    values = [_direct(each) for each in rest]
    arithmetic: dict[str, Callable[..., float]] = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "negative": lambda a: -a,
    }
    return (arithmetic | UNARY)[kind](*values)


@given(expressions)
@pytest.mark.slow
def test_what_is_built_has_the_value_of_what_was_said(expression: Any) -> None:
    graph = Graph()
    node = _built(graph, expression)
    assert evaluate(graph, [node], INPUTS)[0] == pytest.approx(_direct(expression), rel=1e-9, abs=1e-9)


@given(expressions)
def test_no_operation_on_zero_or_one_is_left(expression: Any) -> None:
    graph = Graph()
    for node in graph.reachable([_built(graph, expression)]):
        operation = graph.operations[node]
        if operation.kind in ("add", "sub", "mul"):
            assert graph.zero not in operation.arguments
        if operation.kind == "mul":
            assert graph.one not in operation.arguments


def test_equal_expressions_are_one_node() -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    assert graph.add(a, b) == graph.add(b, a)
    assert graph.mul(graph.negative(a), b) == graph.negative(graph.mul(b, a))
    assert graph.sub(a, b) == graph.negative(graph.sub(b, a))
    assert graph.constant(-0.0) == graph.zero


def test_division_by_an_exact_zero_is_refused() -> None:
    graph = Graph()
    with pytest.raises(ZeroDivisionError, match="zero"):
        graph.div(graph.input("a"), graph.zero)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_solution_is_that_of_lapack(size: int) -> None:
    random = np.random.default_rng(size)
    factor = random.normal(size=(size, size))
    matrix, right = factor @ factor.T + np.eye(size), random.normal(size=size)
    graph = Graph()
    rows = [[graph.input(f"m{i}{j}") for j in range(i + 1)] + [graph.constant(math.inf)] * size for i in range(size)]
    entries = [graph.input(f"r{i}") for i in range(size)]
    values = {f"m{i}{j}": matrix[i, j] for i in range(size) for j in range(i + 1)}
    values |= {f"r{i}": right[i] for i in range(size)}
    found = evaluate(graph, graph.solve(rows, entries), values)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-12)


def _count(graph: Graph, roots: Sequence[int], kind: str) -> int:
    return sum(graph.operations[node].kind == kind for node in graph.reachable(roots))


def test_systems_with_the_same_matrix_share_one_factorisation() -> None:
    graph = Graph()
    rows = [[graph.input(f"m{min(i, j)}{max(i, j)}") for j in range(4)] for i in range(4)]
    first = graph.solve(rows, [graph.input(f"r{i}") for i in range(4)])
    second = graph.solve(rows, [graph.input(f"s{i}") for i in range(4)])
    assert _count(graph, [*first, *second], "div") == 4
    alone = len(graph.reachable(first))
    assert len(graph.reachable([*first, *second])) - alone < 4 * 4 * 2 + 4 * 3


def test_zeros_of_the_matrix_cost_nothing() -> None:
    graph = Graph()
    diagonal = [graph.input(f"m{i}") for i in range(3)]
    rows = [[diagonal[i] if i == j else graph.zero for j in range(3)] for i in range(3)]
    roots = graph.solve(rows, [graph.input("r"), graph.zero, graph.zero])
    assert roots[1:] == (graph.zero, graph.zero)
    assert _count(graph, roots, "div") + _count(graph, roots, "mul") == 2
