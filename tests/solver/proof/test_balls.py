"""Interval matrices contain the results for all of their members; mpmath has more digits."""

from __future__ import annotations

import mpmath
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from modelgen.arrays import Array
from solver.proof.balls import Balls, hull, intersection

seeds = st.integers(0, 2**32 - 1)


def members(generator: np.random.Generator, size: int) -> tuple[Balls, Array]:
    """A random interval matrix over many magnitudes, and one of its members."""
    middle = generator.normal(size=(size, size)) * 10.0 ** generator.integers(-8, 8, (size, size))
    radius = np.abs(middle) * generator.choice([0.0, 1e-16, 1e-8, 0.1], (size, size))
    return Balls(middle, radius), middle + generator.uniform(-1, 1, (size, size)) * radius


@settings(max_examples=50, deadline=None)
@given(seeds)
def test_products_and_sums_contain_those_of_their_members(seed: int) -> None:
    generator = np.random.default_rng(seed)
    (a, one), (b, other) = members(generator, 3), members(generator, 3)
    with mpmath.workdps(60):
        exact = mpmath.matrix(one.tolist()) * mpmath.matrix(other.tolist())
        total = mpmath.matrix(one.tolist()) + mpmath.matrix(other.tolist())
        for i in range(3):
            for j in range(3):
                for ball, value in ((a @ b, exact[i, j]), (a + b, total[i, j])):
                    assert abs(value - mpmath.mpf(ball.middle[i, j])) <= mpmath.mpf(ball.radius[i, j])


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(0, 0.3))
def test_inverses_contain_those_of_their_members(seed: int, width: float) -> None:
    generator = np.random.default_rng(seed)
    middle = np.eye(2) + 0.3 * generator.normal(size=(2, 2))
    radius = np.full((2, 2), width)
    inverse = Balls(middle, radius).inverse()
    member = np.linalg.inv(middle + generator.uniform(-1, 1, (2, 2)) * radius)
    assert (np.abs(member - inverse.middle) <= inverse.radius + 1e-9 * np.abs(member).max()).all()


def test_a_matrix_that_may_be_singular_spoils_no_other_of_its_batch() -> None:
    batch = Balls(np.array([np.zeros((2, 2)), np.eye(2)]), np.zeros((2, 2, 2)))
    inverse = batch.inverse()
    assert np.isinf(inverse.radius[0]).all()
    assert (inverse.radius[1] < 1e-12).all()


def test_hull_and_intersection() -> None:
    a, b = Balls.between(np.array([0.0]), np.array([2.0])), Balls.between(np.array([1.0]), np.array([3.0]))
    np.testing.assert_allclose([hull(a, b).lower, hull(a, b).upper], [[0.0], [3.0]], atol=1e-12)
    np.testing.assert_allclose([intersection(a, b).lower, intersection(a, b).upper], [[1.0], [2.0]], atol=1e-12)
