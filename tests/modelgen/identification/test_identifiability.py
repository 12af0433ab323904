"""Directions seen and not seen, against matrices that are built from known ones."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from modelgen.identification.confidence import Directions, deciding, directions, ellipsoid, in_words, readable


def test_a_product_leaves_one_direction_open() -> None:
    row = np.random.default_rng(0).normal(size=(50, 1))
    found = directions(np.hstack([row, row, 1e-3 * row[::-1]]))
    np.testing.assert_allclose(np.abs(found.unseen[:, 0]), [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-9)
    assert found.seen.shape == (3, 2)
    assert found.condition > 100


def test_fewer_samples_than_parameters() -> None:
    assert directions(np.array([[1.0, 0.0, 0.0]])).unseen.shape == (3, 2)
    assert directions(np.zeros((5, 2))).seen.shape == (2, 0)


def test_readable_spans_the_same_space() -> None:
    basis = np.linalg.qr(np.array([[1.0, 0], [2, 0], [0, 1], [0, 3]]))[0] @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    found = readable(basis)
    np.testing.assert_allclose(basis @ (basis.T @ found), found, atol=1e-12)
    assert sorted((np.abs(found) > 1e-9).sum(axis=0)) == [2, 2]
    assert readable(np.zeros((4, 0))).shape == (4, 0)


def test_parameters_to_fix_leave_none_that_is_not_seen() -> None:
    random = np.random.default_rng(2)
    J = random.normal(size=(50, 4)) @ random.normal(size=(4, 6))
    fixed = deciding(directions(J).unseen)
    assert len(fixed) == 2
    assert np.linalg.matrix_rank(np.delete(J, fixed, axis=1)) == 4
    assert deciding(np.zeros((3, 0))) == []


def test_an_unseen_direction_is_described_in_percent_of_the_parameters() -> None:
    words = in_words(("mass", "length", "friction"), np.array([0.2, -0.1, 0.0]), np.array([2.0, 1.0, 0.5]))
    assert words == "mass up by 10 % with length down by 10 %"


def test_a_seen_direction_keeps_its_size_and_open_ones_hold_the_box_of_the_bounds() -> None:
    """Two open directions: their ellipse holds a rectangle, so that it is the square root of two times as large."""
    bounds = np.array([[0.0, 2.0], [0.0, 4.0], [0.0, 2.0]])
    found = Directions(np.eye(3)[:, :2], np.eye(3)[:, 2:], 1.0)
    region = ellipsoid(np.array([1.0, 1.0, 0.5]), bounds, found, np.diag([0.01, 9.0]))
    np.testing.assert_allclose(np.sqrt(np.diag(region.shape)), [0.1, 3.0 * np.sqrt(2), 1.5 * np.sqrt(2)])
    np.testing.assert_allclose(region.lower, [0.9, 0.0, 0.0])
    np.testing.assert_allclose(region.upper, [1.1, 4.0, 2.0])
    assert region.identified.tolist() == [True, False, False]
    assert region.exact.tolist() == [False, True]


def test_open_directions_of_a_fit_in_a_corner_hold_every_parameter_within_the_bounds() -> None:
    """The semi-axes are oblique, and the fit lies at two bounds: a step along an axis leaves the box at once."""
    random, bounds = np.random.default_rng(0), np.array([[0.0, 2.0]] * 4)
    basis = np.linalg.qr(random.normal(size=(4, 4)))[0]
    visible = Directions(basis[:, :3], basis[:, 3:], 1.0)
    region = ellipsoid(np.array([0.0, 2.0, 0.0, 1.0]), bounds, visible, np.diag([40.0, 90.0, 160.0]))
    away = random.uniform(0.0, 2.0, (1000, 4)) - region.centre
    assert np.einsum("ni,ij,nj->n", away, np.linalg.inv(region.shape), away).max() <= 1.0
    assert not region.identified.any()


def test_a_fit_at_a_bound_has_its_centre_on_the_inner_side() -> None:
    """The first parameter lies at its lower bound; the second follows as the quadratic loss wants it to."""
    bounds = np.array([[0.0, 2.0], [0.0, 4.0]])
    squared = np.array([[0.04, 0.015], [0.015, 0.01]])  # in units of half ranges, 1 and 2
    region = ellipsoid(np.array([0.0, 3.0]), bounds, Directions(np.eye(2), np.zeros((2, 0)), 1.0), squared)
    assert region.centre[0] == 0.1  # half of its half width
    best = minimize(lambda z: np.array([0.1, z[0]]) @ np.linalg.solve(squared, [0.1, z[0]]), [0.0]).x[0]
    np.testing.assert_allclose(region.centre[1], 3.0 + 2.0 * best, rtol=1e-6)
    np.testing.assert_allclose(region.shape, squared * np.outer([1, 2], [1, 2]))
    assert region.identified.all()
    assert region.lower[0] == 0.0


def test_known_parameters_are_in_no_direction() -> None:
    """A set-point shows in no recording, and nobody asks to measure it; the others are as without it."""
    random = np.random.default_rng(4)
    J = random.normal(size=(50, 3)) @ np.array([[1.0, 0, 0], [0, 1, 1], [0, 0, 0]])
    with_reference = np.insert(J, 1, 0.0, axis=1)
    found, without = directions(with_reference, [1]), directions(J)
    np.testing.assert_allclose(np.delete(found.unseen, 1, axis=0), without.unseen, atol=1e-12)
    np.testing.assert_allclose(np.delete(found.seen, 1, axis=0), without.seen, atol=1e-12)
    assert not found.unseen[1].any()
    assert 1 not in deciding(found.unseen)
    region = ellipsoid(
        np.array([1.0, 0.0, 1.0, 1.0]), np.array([[0.0, 2.0], [-1, 1], [0, 2], [0, 2]]), found, np.eye(2)
    )
    assert (region.lower[1], region.upper[1], region.identified[1]) == (0.0, 0.0, True)
