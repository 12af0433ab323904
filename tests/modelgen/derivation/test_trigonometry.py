"""Joined sums of sines and cosines keep their value and lose their length."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sympy import Add, cos, pi, prod, sin, symbols

from modelgen.derivation.trigonometry import collapsed

a, b, c, m, k = symbols("a b c m k")


def test_identities() -> None:
    assert collapsed(m * cos(a) * cos(b) + m * sin(a) * sin(b)) == m * cos(a - b)
    assert collapsed(m * cos(a) * cos(b) - m * sin(a) * sin(b)) == m * cos(a + b)
    assert collapsed(sin(a) * cos(b) + cos(a) * sin(b)) == sin(a + b)
    assert collapsed(2 * k * sin(a) * cos(b) - 2 * k * cos(a) * sin(b)) == 2 * k * sin(a - b)
    assert collapsed(m * sin(a) ** 2 + m * cos(a) ** 2) == m
    assert collapsed(sin(a) ** 2 * sin(b) ** 2 + cos(a) ** 2 * sin(b) ** 2 + cos(b) ** 2) == 1
    assert collapsed(cos(a + b) * cos(a) + sin(a + b) * sin(a)) == cos(b)


def test_unequal_coefficients_stay() -> None:
    expression = m * cos(a) * cos(b) + k * sin(a) * sin(b)
    assert collapsed(expression) == expression
    assert collapsed(m + k) == m + k


factors = st.sampled_from([sin(a), cos(a), sin(b), cos(b), cos(a + b), sin(a + b), cos(c), m, k])
products = st.builds(lambda number, parts: number * prod(parts), st.integers(-3, 3), st.lists(factors, max_size=4))


@settings(max_examples=60, deadline=None)
@given(st.lists(products, max_size=8))
@example([2, m, 3 * m])
def test_value_is_kept(terms: Any) -> None:
    expression = Add(*terms)
    result = collapsed(expression)
    values = {a: 0.3, b: -1.1, c: pi / 5, m: 0.7, k: 1.9}
    assert abs(float(expression.subs(values)) - float(result.subs(values))) < 1e-9
    assert result.count_ops() <= expression.count_ops()
