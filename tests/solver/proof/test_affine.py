"""Matrices that are linear in symbols contain the results for all of their members; mpmath has more digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.arrays import Array
from solver.proof.affine import Affine

seeds = st.integers(0, 2**32 - 1)
SYMBOLS = 2


def member(matrix: Affine, t: Array, generator: np.random.Generator) -> mpmath.matrix:
    """A member at the symbols t, in many digits."""
    found = mpmath.matrix(matrix.middle.tolist())
    for k, value in enumerate(t):
        found += mpmath.mpf(value) * mpmath.matrix(matrix.slopes[k].tolist())
    return found + mpmath.matrix((matrix.rest * generator.choice([-1, 0, 1], matrix.rest.shape)).tolist())


def drawn(generator: np.random.Generator, size: int, width: float) -> Affine:
    middle = generator.normal(size=(size, size)) * 10.0 ** generator.integers(-4, 4, (size, size))
    slopes = width * np.abs(middle) * generator.uniform(-1, 1, (SYMBOLS, size, size))
    return Affine(middle, slopes, np.abs(middle) * generator.choice([0.0, 1e-16, 1e-8, 0.1], (size, size)))


def contains(matrix: Affine, t: Array, value: mpmath.matrix) -> bool:
    at = mpmath.matrix(matrix.middle.tolist())
    for k, symbol in enumerate(t):
        at += mpmath.mpf(symbol) * mpmath.matrix(matrix.slopes[k].tolist())
    rows, columns = matrix.rest.shape
    return all(abs(value[i, j] - at[i, j]) <= matrix.rest[i, j] for i in range(rows) for j in range(columns))


@settings(max_examples=50, deadline=None)
@given(seeds)
@pytest.mark.slow
def test_products_and_sums_contain_those_of_their_members(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b, t = drawn(generator, 3, 0.1), drawn(generator, 3, 0.3), generator.uniform(-1, 1, SYMBOLS)
    with mpmath.workdps(60):
        one, other = member(a, t, generator), member(b, t, generator)
        assert contains(a @ b, t, one * other)
        assert contains(a + b, t, one + other)
        assert contains(a - b, t, one - other)
        assert contains(a.mT @ b.times(-3.0), t, one.T * other * -3)


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0, 0.2))
def test_inverses_contain_those_of_their_members(seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    middle = np.eye(2) + 0.3 * generator.normal(size=(2, 2))
    matrix = Affine(middle, width * generator.normal(size=(SYMBOLS, 2, 2)), np.full((2, 2), 0.1 * width))
    t = generator.uniform(-1, 1, SYMBOLS)
    with mpmath.workdps(60):
        inside = member(matrix, t, generator)
        if np.isfinite((inverse := matrix.inverse()).rest).all():
            assert contains(inverse, t, inside**-1)


def test_a_matrix_that_may_be_singular_spoils_no_other_of_its_batch() -> None:
    inverse = Affine.exact(np.array([np.zeros((2, 2)), np.eye(2)])).inverse()
    assert np.isinf(inverse.rest[0]).all()
    assert (inverse.rest[1] < 1e-12).all()
