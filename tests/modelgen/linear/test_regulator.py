"""Regulators compared with closed forms, and with systems that have a part out of reach or sight by construction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import block_diag, expm, solve_continuous_are

from modelgen.linear import (
    Obstacle,
    controllable_subspace,
    cost_to_go,
    gain,
    observable_subspace,
    obstacle,
)

Array = NDArray[np.float64]

DOUBLE_INTEGRATOR = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])


def assert_same_span(basis: Array, expected: Array) -> None:
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    left = np.linalg.qr(expected)[0]
    assert basis.shape[1] == expected.shape[1]
    np.testing.assert_allclose(basis @ (basis.T @ left), left, atol=1e-9)


def regulated(A: Array, B: Array, Q: Array, R: Array) -> Array:
    """The gain, which must exist."""
    K = gain(A, B, Q, R)
    assert K is not None
    return K


class TestSubspaces:
    def test_subspaces_of_small_systems_are_those_by_hand(self) -> None:
        A = np.diag([1.0, 2.0, 3.0])
        assert_same_span(controllable_subspace(A, np.array([[1.0], [1.0], [0.0]])), np.eye(3)[:, :2])
        assert_same_span(controllable_subspace(A, np.array([[1.0], [1.0], [1.0]])), np.eye(3))
        assert controllable_subspace(A, np.zeros((3, 1))).shape == (3, 0)
        # with equal eigenvalues, one input reaches one direction of the two: the one that it pushes
        assert_same_span(controllable_subspace(np.eye(2), np.array([[3.0], [4.0]])), np.array([[0.6], [0.8]]))
        # a position is seen only by itself, a rate through its position
        A, _ = DOUBLE_INTEGRATOR
        assert_same_span(observable_subspace(A, np.diag([1.0, 0.0])), np.eye(2))
        assert_same_span(observable_subspace(A, np.diag([0.0, 1.0])), np.eye(2)[:, 1:])

    def test_a_long_chain_is_controllable_although_its_powers_vanish(self) -> None:
        """Twelve integrators with couplings of 1e-3: the matrix (B, AB, ...) has a condition of 1e33."""
        chain = np.diag(np.full(11, 1e-3), 1)
        assert controllable_subspace(chain, np.eye(12)[:, 11:]).shape[1] == 12
        assert controllable_subspace(chain, np.eye(12)[:, 5:6]).shape[1] == 6


class TestFreeStates:
    """A body with a wheel: yaw, its rate, and the wheel's rate, with a torque between body and wheel."""

    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    Q = np.diag([1.0, 1.0, 0.0])

    @pytest.mark.parametrize("wheel", [1e-3, 1.0, 1e3])
    def test_a_free_wheel_takes_up_the_momentum(self, wheel: float) -> None:
        B = np.array([[0.0], [-1.0], [wheel]])
        kept = obstacle(self.A, B, self.Q)
        assert kept is not None
        assert kept.reason == "no input reaches"
        assert obstacle(self.A, B, self.Q, [0]) == kept
        assert obstacle(self.A, B, self.Q, [2]) is None

    def test_one_wheel_takes_up_one_momentum(self) -> None:
        """Not that of a second body, on which nothing acts."""
        A, Q = block_diag(self.A, np.zeros((1, 1))), np.diag([1.0, 1.0, 0.0, 1.0])
        B = np.array([[0.0], [-1.0], [1.0], [0.0]])
        assert obstacle(A, B, Q, [2]) is not None
        assert obstacle(A, B, Q, [2, 3]) is None

    @pytest.mark.parametrize(("growth", "carried"), [(0.5, False), (0.0, True)])
    def test_a_free_state_takes_up_no_motion_that_grows(self, growth: float, carried: bool) -> None:
        A, B, Q = growth * np.eye(2), np.array([[1.0], [-1.0]]), np.diag([1.0, 0.0])
        assert (obstacle(A, B, Q, [1]) is None) == carried


class TestClosedForms:
    def test_double_integrator_has_the_textbook_gain(self) -> None:
        """With cost x1^2 + u^2 the gain is (1, sqrt 2)."""
        A, B = DOUBLE_INTEGRATOR
        Q, R = np.diag([1.0, 0.0]), np.eye(1)
        assert obstacle(A, B, Q) is None
        np.testing.assert_allclose(regulated(A, B, Q, R), np.array([[1.0, math.sqrt(2.0)]]), rtol=1e-12)

    def test_double_integrator_whose_position_is_not_seen_has_no_regulator(self) -> None:
        A, B = DOUBLE_INTEGRATOR
        assert obstacle(A, B, np.diag([0.0, 1.0])) == Obstacle("the state cost does not see", 0, 0j)
        assert obstacle(A, B, np.zeros((2, 2))) is not None

    def test_a_growing_motion_that_no_input_reaches_is_an_obstacle(self) -> None:
        A = np.diag([1.0, 2.0, -3.0])
        assert obstacle(A, np.array([[1.0], [0.0], [0.0]]), np.eye(3)) == Obstacle("no input reaches", 1, 2 + 0j)
        assert obstacle(A, np.array([[1.0], [1.0], [0.0]]), np.eye(3)) is None  # the motion out of reach decays

    def test_oscillation_without_damping_does_not_decay(self) -> None:
        A = block_diag([[0.0, 2.0], [-2.0, 0.0]], -1.0)
        unseen = obstacle(A, np.eye(3), np.diag([0.0, 0.0, 1.0]))
        assert unseen is not None
        assert unseen.reason == "the state cost does not see"
        assert abs(unseen.eigenvalue.imag) == pytest.approx(2.0)
        assert unseen.eigenvalue.real == 0.0

    def test_a_decaying_motion_that_is_not_seen_has_exactly_no_gain(self) -> None:
        """x1' = x1 + u has the gain 1 + sqrt 2; a decaying rate that is not in the cost has the gain 0."""
        A, B = np.diag([1.0, -0.5]), np.array([[1.0], [1.0]])
        assert obstacle(A, B, np.diag([1.0, 0.0])) is None
        K = regulated(A, B, np.diag([1.0, 0.0]), np.eye(1))
        assert K[0, 0] == pytest.approx(1.0 + math.sqrt(2.0), rel=1e-12)
        assert K[0, 1] == 0.0

    def test_no_state_cost_has_no_gain(self) -> None:
        K = regulated(-np.eye(2), np.ones((2, 1)), np.zeros((2, 2)), np.eye(1))
        np.testing.assert_array_equal(K, np.zeros((1, 2)))


class TestCostToGo:
    def test_double_integrator_has_the_textbook_cost_to_go(self) -> None:
        """With cost x1^2 + u^2: P = [[sqrt 2, 1], [1, sqrt 2]]."""
        A, B = DOUBLE_INTEGRATOR
        P = cost_to_go(A, B, np.diag([1.0, 0.0]), np.eye(1))
        assert P is not None
        np.testing.assert_allclose(P, [[math.sqrt(2.0), 1.0], [1.0, math.sqrt(2.0)]], rtol=1e-12)

    def test_cost_to_go_is_the_cost_of_the_closed_loop(self) -> None:
        """The cost is the integral of x' Q x + u' R u, by the matrix exponential."""
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

    def test_a_state_that_the_cost_does_not_see_has_exactly_no_cost_to_go(self) -> None:
        P = cost_to_go(np.diag([1.0, -0.5]), np.ones((2, 1)), np.diag([1.0, 0.0]), np.eye(1))
        assert P is not None
        assert P[0, 0] == pytest.approx(1.0 + math.sqrt(2.0), rel=1e-12)
        assert not P[1].any()
        assert not P[:, 1].any()

    def test_no_state_cost_has_no_cost_to_go(self) -> None:
        P = cost_to_go(-np.eye(2), np.ones((2, 1)), np.zeros((2, 2)), np.eye(1))
        np.testing.assert_array_equal(P, np.zeros((2, 2)))


@pytest.mark.parametrize("seed", range(40))
class TestRandomSystems:
    """A system of two parts in random coordinates, with the unit of each state changed by up to a factor of 30."""

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
        """The same motions, shifted so that the slowest has this real part."""
        return np.asarray(hidden + (real - np.linalg.eigvals(hidden).real.max()) * np.eye(len(hidden)))

    @pytest.mark.parametrize("real", [-0.1, 0.0, 0.1])
    def test_a_part_that_the_cost_does_not_see_is_found(self, seed: int, real: float) -> None:
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
        unseen = obstacle(A, B, Q)
        if real >= 0:
            assert unseen is not None
            assert unseen.reason == "the state cost does not see"
            assert unseen.eigenvalue.real == pytest.approx(real, abs=1e-6 * float(np.linalg.norm(A)))
            return
        assert unseen is None
        P = solve_continuous_are(known, B_known, sight.T @ sight, R)
        expected = np.hstack([np.linalg.solve(R, B_known.T @ P), np.zeros((2, k))]) @ inverse
        np.testing.assert_allclose(regulated(A, B, Q, R), expected, atol=1e-6 * float(np.abs(expected).max()))

    @pytest.mark.parametrize("real", [-0.1, 0.0, 0.1])
    def test_a_part_that_no_input_reaches_is_found(self, seed: int, real: float) -> None:
        random, n, k, known, hidden, T = self.parts(seed)
        A = np.block([[known, random.normal(size=(n, k))], [np.zeros((k, n)), self.shifted(hidden, real)]])
        A = T @ A @ np.linalg.inv(T)
        B = T @ np.vstack([random.normal(size=(n, 1)), np.zeros((k, 1))])
        Q = np.asarray(np.linalg.inv(T @ T.T), np.float64)
        unreached = obstacle(A, B, Q)
        assert (unreached is None) == (real < 0)
        if unreached is None:
            K = regulated(A, B, Q, np.eye(1))
            assert np.linalg.eigvals(A - B @ K).real.max() < 0
        else:
            assert unreached.reason == "no input reaches"
