"""Numbers of second order contain the results for all of their members, by mpmath's many digits and by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.arrays import Array
from modelgen.program.graph import Graph
from solver.errors import SolverError
from solver.proof.quadratic import Quadratic, evaluate

seeds = st.integers(0, 2**32 - 1)
SYMBOLS, WIDE = 3, 0.1
#: Kind of operation, mpmath's function of the same arguments, and the middles of the arguments.
KINDS: dict[str, tuple[Callable[..., Any], list[float]]] = {
    "sin": (mpmath.sin, [0.7]),
    "cos": (mpmath.cos, [2.0]),
    "exp": (mpmath.exp, [-0.4]),
    "log": (mpmath.log, [0.8]),
    "log1p": (lambda x: mpmath.log(1 + x), [-0.2]),
    "sqrt": (mpmath.sqrt, [0.6]),
    "tanh": (mpmath.tanh, [0.9]),
    "atan": (mpmath.atan, [-1.3]),
    "asin": (mpmath.asin, [0.3]),
    "acos": (mpmath.acos, [-0.4]),
    "sinh": (mpmath.sinh, [0.5]),
    "cosh": (mpmath.cosh, [-0.5]),
    "abs": (abs, [0.1]),
    "sign": (mpmath.sign, [0.1]),
    "negative": (lambda x: -x, [0.1]),
    "minimum": (min, [0.3, 0.4]),
    "maximum": (max, [0.3, 0.4]),
    "add": (lambda x, y: x + y, [0.3, -0.4]),
    "sub": (lambda x, y: x - y, [0.3, -0.4]),
    "mul": (lambda x, y: x * y, [0.3, -0.4]),
    "div": (lambda x, y: x / y, [0.3, -0.7]),
}


def drawn(generator: np.random.Generator, middle: float, width: float) -> Quadratic:
    """A number, half of them without terms of second order and rest: a bound is nearly met there."""
    terms = width * generator.uniform(-1, 1, (1 + SYMBOLS + SYMBOLS * (SYMBOLS + 1) // 2, 1, 1))
    terms *= generator.choice([0.0, 1.0], terms.shape, p=[0.3, 0.7])
    terms[0] = middle + 0.1 * generator.uniform(-1, 1)
    more = generator.choice([0.0, 1.0])
    terms[1 + SYMBOLS :] *= more
    return Quadratic(terms, np.full((1, 1), more * width * generator.choice([0.0, 1e-3, 0.3])))


def value(number: Quadratic, t: Array, share: float) -> mpmath.mpf:
    """The member at symbols t, `share` of the rest above the terms."""
    first, second = np.triu_indices(SYMBOLS)
    monomials = [1.0, *t, *(mpmath.mpf(t[i]) * mpmath.mpf(t[j]) for i, j in zip(first, second, strict=True))]
    pairs = zip(monomials, number.terms[:, 0, 0].tolist(), strict=True)
    return mpmath.fsum(mpmath.mpf(m) * mpmath.mpf(term) for m, term in pairs) + share * mpmath.mpf(
        float(number.rest[0, 0])
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from([1e-4, 0.01, WIDE]))
@pytest.mark.slow
def test_a_function_contains_that_of_every_member(kind: str, seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    function, middles = KINDS[kind]
    graph = Graph()
    places = [graph.input(f"x{k}") for k in range(len(middles))]
    numbers = [drawn(generator, middle, width) for middle in middles]
    known = dict(zip(places, numbers, strict=True))
    named: dict[str, Callable[..., int]] = {
        "add": graph.add,
        "sub": graph.sub,
        "mul": graph.mul,
        "div": graph.div,
        "negative": graph.negative,
    }
    root = named[kind](*places) if kind in named else graph.call(kind, *places)
    found = evaluate(graph, [root], known, 1, SYMBOLS)
    assert np.isfinite(found.rest) or width == WIDE  # a wide box may leave the domain
    with mpmath.workdps(40):
        for side in (-1.0, 1.0, *generator.uniform(-1, 1, 6)):  # at the far corners a rest that is too small shows
            t = np.where(numbers[0].terms[1 : 1 + SYMBOLS, 0, 0] < 0, -side, side)
            t = np.where(generator.uniform(size=SYMBOLS) < 0.2, -t, t)
            exact = function(*(value(number, t, side) for number in numbers))
            assert abs(exact - value(found, t, 0.0)) <= mpmath.mpf(float(found.rest[0, 0])) or np.isnan(found.rest)


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from([-1.5, 0.5, 1.5, 2.0, 3.7]))
def test_a_power_contains_that_of_every_member_also_at_the_end_of_its_domain(seed: int, power: float) -> None:
    generator = np.random.default_rng(seed)
    graph = Graph()
    x = graph.input("x")
    at_least_0 = graph.call("maximum", x, graph.zero)
    middle = 0.6 if power < 0 else generator.choice([0.6, 0.0, -0.6])
    number = drawn(generator, middle, 0.05)
    found = evaluate(graph, [graph.call("pow", at_least_0, graph.constant(power))], {x: number}, 1, SYMBOLS)
    with mpmath.workdps(40):
        for _ in range(5):
            t = generator.uniform(-1, 1, SYMBOLS)
            exact = mpmath.power(max(value(number, t, 1.0), 0), power)
            assert abs(exact - value(found, t, 0.0)) <= mpmath.mpf(float(found.rest[0, 0]))


@pytest.mark.parametrize("kind", sorted({"sin", "exp", "log", "sqrt", "tanh", "asin", "mul", "div"}))
def test_the_rest_is_of_third_order(kind: str) -> None:
    """Otherwise every enclosure would be right."""
    graph = Graph()
    _, middles = KINDS[kind]
    places = [graph.input(f"x{k}") for k in range(len(middles))]
    root = {"mul": graph.mul, "div": graph.div}[kind](*places) if len(places) == 2 else graph.call(kind, *places)
    rests = []
    for width in (0.04, 0.02):
        boxes = [Quadratic.box(np.array([m]), {k: np.array([width])}, 0.0, 2) for k, m in enumerate(middles)]
        rests.append(float(evaluate(graph, [root], dict(zip(places, boxes, strict=True)), 1, 2).rest[0, 0]))
    assert rests[1] < 0.15 * rests[0] or rests[0] < 1e-13


def test_a_number_that_may_leave_the_domain_is_not_known() -> None:
    graph = Graph()
    x = graph.input("x")
    box = Quadratic.box(np.array([0.1]), {0: np.array([0.2])}, 0.0, 1)
    for root in (graph.call("sqrt", x), graph.call("log", x), graph.div(graph.one, x)):
        assert np.isinf(evaluate(graph, [root], {x: box}, 1, 1).affine(1, 1, 1).rest).all()


def test_an_operation_without_a_rule_is_named() -> None:
    graph = Graph()
    x = graph.input("x")
    with pytest.raises(SolverError, match="atan2"):
        evaluate(graph, [graph.call("atan2", x, graph.one)], {x: Quadratic.box(np.zeros(1), {}, 0.0, 0)}, 1, 0)


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_the_mean_over_a_symbol_is_that_of_quadrature(seed: int) -> None:
    generator = np.random.default_rng(seed)
    number, place = drawn(generator, 0.3, 0.2), int(generator.integers(SYMBOLS))
    nodes, weights = np.polynomial.legendre.leggauss(4)
    t = generator.uniform(-1, 1, SYMBOLS)
    mean = 0.0
    for node, weight in zip(nodes, weights, strict=True):
        t[place] = node
        mean += 0.5 * weight * float(value(number, t, 0.0))
    assert abs(mean - float(value(number.mean(place), t, 0.0))) < 1e-14


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_a_linear_matrix_contains_the_numbers(seed: int) -> None:
    generator = np.random.default_rng(seed)
    number, t = drawn(generator, 0.3, 0.2), generator.uniform(-1, 1, SYMBOLS)
    matrix = number.affine(1, 1, 2, 1)
    exact = float(value(number, t, generator.uniform(-1, 1)))
    at = matrix.middle[0, 0, 0] + matrix.slopes[0, :2, 0, 0] @ t[:2]
    assert abs(exact - at) <= matrix.rest[0, 0, 0] + 1e-15
    assert matrix.symbols == 3
