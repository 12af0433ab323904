"""Enclosures contain every value: each rule at random points of random boxes, compared with Python's functions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.program.graph import BINARY, UNARY, Graph
from modelgen.proof.intervals import RULES, enclosures

DOMAINS = {"asin": (-1, 1), "acos": (-1, 1), "log": (1e-9, 50), "log1p": (-1 + 1e-9, 50), "sqrt": (0, 50)}
VALUES: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else math.inf,
    "negative": lambda a: -a,
    **UNARY,
    **BINARY,
}


def boxes(kind: str, random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends (count, arguments) of narrow and wide boxes; a quarter of the ends is zero where that is allowed."""
    low, high = DOMAINS.get(kind, (-20, 20))
    size = 1 if kind in UNARY or kind == "negative" else 2
    ends = random.uniform(low, high, (2, count, size))
    ends[1, ::2] = ends[0, ::2] + random.uniform(0, 1e-3, ends[1, ::2].shape)
    if low <= 0:
        ends[0, random.uniform(size=(count, size)) < 0.25] = 0.0
    ends = np.clip(ends, low, high)
    return ends.min(axis=0), ends.max(axis=0)


@pytest.mark.parametrize("kind", sorted({*VALUES} - {"pow"}))
def test_every_value_of_an_operation_is_enclosed(kind: str) -> None:
    random = np.random.default_rng(0)
    lower, upper = boxes(kind, random, 400)
    graph = Graph()
    inputs = [graph.input(f"a{k}") for k in range(lower.shape[1])]
    node = graph.call(kind, *inputs) if kind in UNARY | BINARY else getattr(graph, kind)(*inputs)
    low, high = enclosures(graph, [node], inputs, lower, upper)
    for share in (0.0, 0.3, 1.0, *random.uniform(size=20)):
        points = lower + share * (upper - lower)
        points = np.clip(points, lower, upper)
        values = np.array([VALUES[kind](*point) for point in points.tolist()])
        assert (low[:, 0] <= values).all(), kind
        assert (values <= high[:, 0]).all(), kind


def test_all_operations_of_the_graph_have_a_rule() -> None:
    assert {*VALUES, "solution"} == set(RULES)


def test_powers_of_a_constant_exponent_are_enclosed_tightly() -> None:
    graph = Graph()
    a = graph.input("a")
    for exponent in (0.7, -0.7, 2.5):
        node = graph.call("pow", a, graph.constant(exponent))
        low, high = enclosures(graph, [node], [a], np.array([[0.5]]), np.array([[2.0]]))
        ends = sorted((0.5**exponent, 2.0**exponent))
        assert low[0, 0] <= ends[0]
        assert high[0, 0] >= ends[1]
        np.testing.assert_allclose([low[0, 0], high[0, 0]], ends, rtol=1e-14)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_sums_and_products_are_enclosed_exactly(a: float, b: float) -> None:
    """Rational arithmetic has no rounding."""
    graph = Graph()
    inputs = [graph.input("a"), graph.input("b")]
    at = np.array([[a, b]])
    low, high = enclosures(graph, [graph.add(*inputs), graph.mul(*inputs)], inputs, at, at)
    for k, exact in enumerate((Fraction(a) + Fraction(b), Fraction(a) * Fraction(b))):
        if exact == 0 or abs(exact) > 1e-290:
            assert Fraction(low[0, k]) <= exact <= Fraction(high[0, k])


def test_a_square_is_never_negative_and_a_product_may_be() -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    roots = [graph.power(a, 2), graph.power(a, 4), graph.mul(a, b)]
    low, _ = enclosures(graph, roots, [a, b], np.array([[-1.0, -1.0]]), np.array([[2.0, 2.0]]))
    assert low[0, 0] == 0
    assert low[0, 1] == 0
    assert low[0, 2] <= -2


def test_an_end_that_is_not_known_is_infinite() -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    low, high = enclosures(graph, [graph.mul(a, b), a], [a, b], np.array([[np.nan, 2.0]]), np.array([[np.nan, 2.0]]))
    assert low.tolist() == [[-np.inf, -np.inf]]
    assert high.tolist() == [[np.inf, np.inf]]


def test_division_by_an_interval_with_zero_is_unbounded() -> None:
    graph = Graph()
    a = graph.input("a")
    low, high = enclosures(graph, [graph.div(graph.one, a)], [a], np.array([[-1.0], [0.5]]), np.array([[1.0], [1.0]]))
    assert low[0, 0] == -np.inf
    assert high[0, 0] == np.inf
    assert low[1, 0] <= 1 <= low[1, 0] + 1e-15
    assert high[1, 0] >= 2


def test_an_angle_is_enclosed_tightly_except_at_its_seam() -> None:
    """The check of the power balance uses such widths, and a wide one would accept anything."""
    graph = Graph()
    y, x = graph.input("y"), graph.input("x")
    angles = np.array([-3.1, -2.0, -1.6, -0.3, 0.2, 1.5, 1.6, 2.9, 3.14])
    at = 3.0 * np.stack([np.sin(angles), np.cos(angles)], axis=1)
    low, high = enclosures(graph, [graph.call("atan2", y, x)], [y, x], at, at)
    assert (low[:, 0] <= np.arctan2(*at.T)).all()
    assert (np.arctan2(*at.T) <= high[:, 0]).all()
    assert (high - low).max() < 1e-13
    low, high = enclosures(graph, [graph.call("atan2", y, x)], [y, x], np.array([[-1, -2.0]]), np.array([[1, -1.0]]))
    assert low[0, 0] < -np.pi + 1e-9
    assert high[0, 0] > np.pi - 1e-9
