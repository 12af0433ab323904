"""The two evaluators agree and take any expression; samples cover the domain and its corners."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Add, Matrix, Symbol, cos, log, pi, sin, symbols

from modelgen.derivation.model_file import load
from modelgen.derivation.numeric import compiled_evaluator, numpy_evaluator, samples

X, Y = symbols("x y", real=True)
AT = np.random.default_rng(0).uniform(0.1, 2, (5, 2))


@pytest.mark.slow
def test_compiled_evaluator_takes_a_sum_of_thousands_of_terms() -> None:
    terms = symbols("t:3500", real=True)
    at = np.random.default_rng(1).uniform(-1, 1, (3, 3500))
    np.testing.assert_allclose(compiled_evaluator(terms, Add(*terms))(at), at.sum(1), atol=1e-10)


def test_both_evaluators_agree_on_a_matrix_with_definitions() -> None:
    named = Symbol("named")
    matrix, definitions = Matrix([[named * X, 3, pi], [cos(Y) / named, 0, log(X)]]), [(named, X + Y**2)]
    expected = numpy_evaluator([X, Y], matrix, definitions)(*AT.T)
    np.testing.assert_allclose(compiled_evaluator([X, Y], matrix, definitions)(AT), expected, rtol=1e-14)


def test_compiled_evaluator_takes_constants_empty_matrices_and_values_that_are_not_finite() -> None:
    constant = compiled_evaluator([X, Y], Matrix([[1, 2]]))(AT)
    np.testing.assert_array_equal(constant, np.tile([[1.0, 2.0]], (5, 1, 1)))
    assert compiled_evaluator([X, Y], Matrix(2, 0, []))(AT).shape == (5, 2, 0)
    assert np.isnan(compiled_evaluator([X, Y], log(X - 3))(AT)).all()
    assert np.isinf(compiled_evaluator([X, Y], 1 / (X - Y))(np.ones((2, 2)))).all()


def test_numpy_evaluator_takes_constants_empty_matrices_and_names_of_functions() -> None:
    sine, x = symbols("sin x")
    values = np.linspace(0, 1, 4)
    np.testing.assert_array_equal(numpy_evaluator([x], Matrix([[1, 2]]))(values), np.tile([[1.0, 2.0]], (4, 1, 1)))
    assert numpy_evaluator([x], Matrix(2, 0, []))(values).shape == (4, 2, 0)
    product = numpy_evaluator([sine, x], sin(sine) * x + pi)(values, values)
    np.testing.assert_allclose(product, np.sin(values) * values + np.pi)


def test_samples_stay_within_the_domain_and_reach_its_corners() -> None:
    robot = load("cartpole")
    x, theta = samples(robot, 80)
    limits = np.array([joint.limit for joint in robot.joints] + [speed.limit for speed in robot.velocities])
    lower, upper = np.array([parameter.bounds for parameter in robot.parameters if not parameter.fixed]).T
    assert (np.abs(x) <= limits).all()
    assert ((lower <= theta) & (theta <= upper)).all()
    states, parameters = (np.abs(x) == limits).all(axis=1), ((theta == lower) | (theta == upper)).all(axis=1)
    eighths = np.arange(80) // 10
    np.testing.assert_array_equal(states, eighths <= 1)
    np.testing.assert_array_equal(parameters, (eighths == 1) | (eighths == 2))
    np.testing.assert_array_equal(samples(robot, 80)[0], x)
