"""Shortened sums of sines and cosines keep their value; expressions that expand without bound are left."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sympy import Add, cos, pi, prod, sin, sqrt, symbols

from modelgen.derivation.equations import MOST_TERMS, collapsed, is_expandable

a, b, c, m, k = symbols("a b c m k")


def test_sums_of_products_become_one_function() -> None:
    assert collapsed(m * cos(a) * cos(b) + m * sin(a) * sin(b)) == m * cos(a - b)
    assert collapsed(m * cos(a) * cos(b) - m * sin(a) * sin(b)) == m * cos(a + b)
    assert collapsed(sin(a) * cos(b) + cos(a) * sin(b)) == sin(a + b)
    assert collapsed(2 * k * sin(a) * cos(b) - 2 * k * cos(a) * sin(b)) == 2 * k * sin(a - b)
    assert collapsed(m * sin(a) ** 2 + m * cos(a) ** 2) == m
    assert collapsed(sin(a) ** 2 * sin(b) ** 2 + cos(a) ** 2 * sin(b) ** 2 + cos(b) ** 2) == 1
    assert collapsed(cos(a + b) * cos(a) + sin(a + b) * sin(a)) == cos(b)


def test_terms_with_unequal_coefficients_stay() -> None:
    expression = m * cos(a) * cos(b) + k * sin(a) * sin(b)
    assert collapsed(expression) == expression
    assert collapsed(m + k) == m + k


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 12))
@pytest.mark.slow
def test_the_estimate_of_terms_bounds_the_expansion(first: int, second: int, power: int) -> None:
    long_sum, short_sum = Add(*symbols(f"p:{first}")), Add(*symbols(f"q:{second}"))
    expression = a * long_sum**power * short_sum + sqrt(long_sum * short_sum) / (1 + short_sum) ** 2
    if is_expandable(expression):
        assert len(Add.make_args(expression.expand())) <= MOST_TERMS


def test_an_expression_that_is_too_long_to_expand_is_unchanged() -> None:
    long_sum = Add(*symbols("p:40"))
    assert not is_expandable(long_sum**10)
    assert not is_expandable(1 / long_sum**10)
    assert not is_expandable(sqrt(1 + long_sum**10))
    expression = m * sin(a) ** 2 + m * cos(a) ** 2 + long_sum**100
    assert collapsed(expression) is expression


factors = st.sampled_from([sin(a), cos(a), sin(b), cos(b), cos(a + b), sin(a + b), cos(c), m, k])
products = st.builds(lambda number, parts: number * prod(parts), st.integers(-3, 3), st.lists(factors, max_size=4))


@settings(max_examples=60, deadline=None)
@given(st.lists(products, max_size=8))
@example([2, m, 3 * m])
@pytest.mark.slow
def test_shortened_sums_keep_their_value_and_are_not_longer(terms: Any) -> None:
    expression = Add(*terms)
    result = collapsed(expression)
    values = {a: 0.3, b: -1.1, c: pi / 5, m: 0.7, k: 1.9}
    assert abs(float(expression.subs(values)) - float(result.subs(values))) < 1e-9
    assert result.count_ops() <= expression.count_ops()
