"""Functions compiled by the graph equal NumPy's, and take sums of any length."""

from __future__ import annotations

import numpy as np
from sympy import Add, Matrix, Symbol, cos, log, pi, symbols

from modelgen.derivation import numeric
from modelgen.derivation.compiled import evaluator

X, Y = symbols("x y", real=True)
AT = np.random.default_rng(0).uniform(0.1, 2, (5, 2))


def test_a_sum_of_thousands_of_terms() -> None:
    terms = symbols("t:3500", real=True)
    at = np.random.default_rng(1).uniform(-1, 1, (3, 3500))
    np.testing.assert_allclose(evaluator(terms, Add(*terms))(at), at.sum(1), atol=1e-10)


def test_a_matrix_with_definitions_is_that_of_numpy() -> None:
    named = Symbol("named")
    matrix, definitions = Matrix([[named * X, 3, pi], [cos(Y) / named, 0, log(X)]]), [(named, X + Y**2)]
    expected = numeric.evaluator([X, Y], matrix, definitions)(*AT.T)
    np.testing.assert_allclose(evaluator([X, Y], matrix, definitions)(AT), expected, rtol=1e-14)


def test_constants_empty_matrices_and_what_is_not_finite() -> None:
    np.testing.assert_array_equal(evaluator([X, Y], Matrix([[1, 2]]))(AT), np.tile([[1.0, 2.0]], (5, 1, 1)))
    assert evaluator([X, Y], Matrix(2, 0, []))(AT).shape == (5, 2, 0)
    assert np.isnan(evaluator([X, Y], log(X - 3))(AT)).all()
    assert np.isinf(evaluator([X, Y], 1 / (X - Y))(np.ones((2, 2)))).all()
