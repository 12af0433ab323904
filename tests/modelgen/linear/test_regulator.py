"""Regulators against closed forms, and against systems that are built from parts known to be out of reach or sight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import block_diag, expm, solve_continuous_are

from modelgen.linear.regulator import (
    Obstacle,
    controllable_subspace,
    cost_to_go,
    gain,
    observable_subspace,
    obstacle,
)

Array = NDArray[np.float64]

DOUBLE_INTEGRATOR = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])


def assert_same_span(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-12)
    left = np.linalg.qr(expected)[0]
    assert found.shape[1] == expected.shape[1]
    np.testing.assert_allclose(found @ (found.T @ left), left, atol=1e-9)


def regulated(A: Array, B: Array, Q: Array, R: Array) -> Array:
    """The gain, which must exist."""
    found = gain(A, B, Q, R)
    assert found is not None
    return found


class TestSubspaces:
    def test_subspaces_of_diagonal_and_chained_systems(self) -> None:
        A = np.diag([1.0, 2.0, 3.0])
        assert_same_span(controllable_subspace(A, np.array([[1.0], [1.0], [0.0]])), np.eye(3)[:, :2])
        assert_same_span(controllable_subspace(A, np.array([[1.0], [1.0], [1.0]])), np.eye(3))
        assert controllable_subspace(A, np.zeros((3, 1))).shape == (3, 0)
        # Equal eigenvalues: one input reaches one direction of the two, the one that it pushes.
        assert_same_span(controllable_subspace(np.eye(2), np.array([[3.0], [4.0]])), np.array([[0.6], [0.8]]))
        # A position is seen through nothing but itself, a rate through its position.
        A, _ = DOUBLE_INTEGRATOR
        assert_same_span(observable_subspace(A, np.diag([1.0, 0.0])), np.eye(2))
        assert_same_span(observable_subspace(A, np.diag([0.0, 1.0])), np.eye(2)[:, 1:])

    def test_long_chain_needs_no_power_of_its_matrix(self) -> None:
        """Twelve integrators, the coupling 1e-3: (B, AB, ...) itself has a condition of 1e33."""
        chain = np.diag(np.full(11, 1e-3), 1)
        assert controllable_subspace(chain, np.eye(12)[:, 11:]).shape[1] == 12
        assert controllable_subspace(chain, np.eye(12)[:, 5:6]).shape[1] == 6


class TestClosedForms:
    def test_double_integrator(self) -> None:
        """With cost x1^2 + u^2 the gain is (1, sqrt 2)."""
        A, B = DOUBLE_INTEGRATOR
        Q, R = np.diag([1.0, 0.0]), np.eye(1)
        assert obstacle(A, B, Q) is None
        np.testing.assert_allclose(regulated(A, B, Q, R), np.array([[1.0, math.sqrt(2.0)]]), rtol=1e-12)

    def test_double_integrator_whose_position_is_not_seen(self) -> None:
        A, B = DOUBLE_INTEGRATOR
        assert obstacle(A, B, np.diag([0.0, 1.0])) == Obstacle("the state cost does not see", 0, 0j)
        assert obstacle(A, B, np.zeros((2, 2))) is not None

    def test_pushing_the_wrong_coordinate(self) -> None:
        A = np.diag([1.0, 2.0, -3.0])
        assert obstacle(A, np.array([[1.0], [0.0], [0.0]]), np.eye(3)) == Obstacle("no input reaches", 1, 2 + 0j)
        assert obstacle(A, np.array([[1.0], [1.0], [0.0]]), np.eye(3)) is None  # what is beyond the input decays

    def test_oscillation_without_damping_does_not_decay(self) -> None:
        A = block_diag([[0.0, 2.0], [-2.0, 0.0]], -1.0)
        found = obstacle(A, np.eye(3), np.diag([0.0, 0.0, 1.0]))
        assert found is not None
        assert found.reason == "the state cost does not see"
        assert abs(found.eigenvalue.imag) == pytest.approx(2.0)
        assert found.eigenvalue.real == 0.0

    def test_decaying_motion_that_is_not_seen_gets_exactly_no_gain(self) -> None:
        """x1' = x1 + u has the gain 1 + sqrt 2; a rate that decays by itself and is not in the cost gets 0."""
        A, B = np.diag([1.0, -0.5]), np.array([[1.0], [1.0]])
        assert obstacle(A, B, np.diag([1.0, 0.0])) is None
        found = regulated(A, B, np.diag([1.0, 0.0]), np.eye(1))
        assert found[0, 0] == pytest.approx(1.0 + math.sqrt(2.0), rel=1e-12)
        assert found[0, 1] == 0.0

    def test_no_state_cost_and_nothing_to_steady(self) -> None:
        found = regulated(-np.eye(2), np.ones((2, 1)), np.zeros((2, 2)), np.eye(1))
        np.testing.assert_array_equal(found, np.zeros((1, 2)))


class TestCostToGo:
    def test_double_integrator(self) -> None:
        """With cost x1^2 + u^2: P = [[sqrt 2, 1], [1, sqrt 2]]."""
        A, B = DOUBLE_INTEGRATOR
        found = cost_to_go(A, B, np.diag([1.0, 0.0]), np.eye(1))
        assert found is not None
        np.testing.assert_allclose(found, [[math.sqrt(2.0), 1.0], [1.0, math.sqrt(2.0)]], rtol=1e-12)

    def test_the_cost_to_go_is_the_integral_along_the_closed_loop(self) -> None:
        """The integral of x' Q x + u' R u along the closed loop, by the matrix exponential."""
        random = np.random.default_rng(4)
        A, B = random.normal(size=(4, 4)), random.normal(size=(4, 2))
        root = random.normal(size=(4, 4))
        Q, R = root @ root.T, np.diag([0.5, 2.0])
        P, K = cost_to_go(A, B, Q, R), regulated(A, B, Q, R)
        assert P is not None
        np.testing.assert_allclose(P, P.T, atol=1e-10 * float(np.abs(P).max()))
        step, paid, x = 1e-3, 0.0, np.array([1.0, -2.0, 0.5, 0.3])
        start, advance = x, expm((A - B @ K) * step)
        rate = Q + K.T @ R @ K
        for _ in range(40_000):
            later = advance @ x
            paid += 0.5 * step * float(x @ rate @ x + later @ rate @ later)
            x = later
        assert float(x @ P @ x) < 1e-6 * paid
        assert paid == pytest.approx(float(start @ P @ start), rel=1e-4)

    def test_what_the_cost_does_not_see_has_exactly_no_part(self) -> None:
        found = cost_to_go(np.diag([1.0, -0.5]), np.ones((2, 1)), np.diag([1.0, 0.0]), np.eye(1))
        assert found is not None
        assert found[0, 0] == pytest.approx(1.0 + math.sqrt(2.0), rel=1e-12)
        assert not found[1].any()
        assert not found[:, 1].any()

    def test_without_a_state_cost_it_is_zero(self) -> None:
        found = cost_to_go(-np.eye(2), np.ones((2, 1)), np.zeros((2, 2)), np.eye(1))
        np.testing.assert_array_equal(found, np.zeros((2, 2)))


@pytest.mark.parametrize("seed", range(40))
class TestRandomSystems:
    """A system of two parts, in random coordinates, the units of each state wrong by up to a factor of 30."""

    def parts(self, seed: int) -> tuple[np.random.Generator, int, int, Array, Array, Array]:
        """Generator, sizes of the parts, the matrices of each, and coordinates (n, n)."""
        random = np.random.default_rng(seed)
        n, k = int(random.integers(1, 6)), int(random.integers(1, 4))
        mixed = np.linalg.qr(random.normal(size=(n + k, n + k)))[0]
        units = 30.0 ** random.uniform(-1, 1, n + k)
        known = random.normal(size=(n, n))
        hidden = random.normal(size=(k, k))
        return random, n, k, known, hidden, mixed * units[:, None]

    def shifted(self, hidden: Array, real: float) -> Array:
        """The same motions, the slowest with this real part."""
        return np.asarray(hidden + (real - np.linalg.eigvals(hidden).real.max()) * np.eye(len(hidden)))

    @pytest.mark.parametrize("real", [-0.1, 0.0, 0.1])
    def test_part_that_the_cost_does_not_see(self, seed: int, real: float) -> None:
        random, n, k, known, hidden, T = self.parts(seed)
        inverse = np.linalg.inv(T)
        A = (
            T
            @ np.block([[known, np.zeros((n, k))], [random.normal(size=(k, n)), self.shifted(hidden, real)]])
            @ inverse
        )
        B_known, sight = random.normal(size=(n, 2)), random.normal(size=(1, n))
        B = T @ np.vstack([B_known, random.normal(size=(k, 2))])
        seen = np.hstack([sight, np.zeros((1, k))]) @ inverse
        Q, R = seen.T @ seen, np.diag([1.0, 0.1])
        found = obstacle(A, B, Q)
        if real >= 0:
            assert found is not None
            assert found.reason == "the state cost does not see"
            assert found.eigenvalue.real == pytest.approx(real, abs=1e-6 * float(np.linalg.norm(A)))
            return
        assert found is None
        P = solve_continuous_are(known, B_known, sight.T @ sight, R)
        expected = np.hstack([np.linalg.solve(R, B_known.T @ P), np.zeros((2, k))]) @ inverse
        np.testing.assert_allclose(regulated(A, B, Q, R), expected, atol=1e-6 * float(np.abs(expected).max()))

    @pytest.mark.parametrize("real", [-0.1, 0.0, 0.1])
    def test_part_that_no_input_reaches(self, seed: int, real: float) -> None:
        random, n, k, known, hidden, T = self.parts(seed)
        A = np.block([[known, random.normal(size=(n, k))], [np.zeros((k, n)), self.shifted(hidden, real)]])
        A = T @ A @ np.linalg.inv(T)
        B = T @ np.vstack([random.normal(size=(n, 1)), np.zeros((k, 1))])
        Q = np.asarray(np.linalg.inv(T @ T.T), np.float64)
        found = obstacle(A, B, Q)
        assert (found is None) == (real < 0)
        if found is None:
            K = regulated(A, B, Q, np.eye(1))
            assert np.linalg.eigvals(A - B @ K).real.max() < 0
        else:
            assert found.reason == "no input reaches"
