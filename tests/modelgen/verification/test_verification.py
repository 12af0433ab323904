"""`verify` passes correct artifacts and finds every kind of mistake by the check that is meant for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, sin

from modelgen import Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.functions import SIGNATURES
from modelgen.verification import domain_checks
from modelgen.verification.checks import Check, Points, table
from modelgen.verification.kernels import kernel_checks, relative_error
from modelgen.verification.mechanics import mechanics_checks
from modelgen.verification.reference import ExactReference


@pytest.fixture(scope="module")
def furuta() -> tuple[Robot, EquationsOfMotion]:
    robot = load(str(SHIPPED / "furuta.py"))
    return robot, equations_of_motion(robot)


@pytest.fixture(scope="module")
def points() -> Points:
    """Six samples of the furuta pendulum."""
    random = np.random.default_rng(0)
    nominal = np.array([0.095, 0.085, 0.024, 0.129, 5e-6, 1e-6, 8.4, 0.042])
    return Points(
        random.uniform(-2, 2, (6, 4)),
        random.uniform(-8, 8, (6, 1)),
        random.uniform(-1, 1, (6, 4)),
        nominal * random.uniform(0.5, 1.5, (6, 8)),
        random.uniform(-8, 8, (6, 1)),
    )


@pytest.fixture(scope="module")
def reference(furuta: tuple[Robot, EquationsOfMotion], points: Points) -> dict[str, np.ndarray]:
    return ExactReference(furuta[1]).quantities(points.x, points.u, points.costate, points.theta, points.w)


@pytest.mark.parametrize(
    ("got", "expected", "error"),
    [
        ([[1.0], [2.0]], [[1.0], [2.5]], 0.2),
        ([[0.0]], [[0.0]], 0.0),
        ([[1.0]], [[0.0]], np.inf),
        ([[np.nan]], [[0.0]], np.inf),
        ([[np.inf]], [[0.0]], np.inf),
        ([[1.0]], [[np.nan]], np.inf),
        ([[np.nan], [1.0]], [[2.0], [1.0]], np.nan),
        ([[1e-17]], [[1e-40]], 1e-17),  # the reference is zero up to its differences
        ([[0.3]], [[1e-40]], 0.3),
    ],
)
def test_error_is_relative_to_the_largest_expected_value(got: list[Any], expected: list[Any], error: Any) -> None:
    np.testing.assert_equal(relative_error(np.array(got), np.array(expected)), error)


class Kernels:
    """Returns given quantities in the form of a loaded artifact."""

    functions = FUNCTIONS
    operations = dict.fromkeys(FUNCTIONS, 10)

    def __init__(self, quantities: dict[str, np.ndarray], dtype: Any = np.float64) -> None:
        self.quantities = quantities
        self.nominal_parameters = np.zeros(8, dtype)

    def __getattr__(self, call: str) -> Any:
        results = tuple(self.quantities[name] for name in SIGNATURES[call][1])
        return lambda *_, **__: results if len(results) > 1 else results[0]


def failed(checks: Sequence[Check]) -> set[str]:
    return {check.what.partition(": ")[2] or check.what for check in checks if not check.passed}


class TestReference:
    def test_accelerations_are_those_of_equations_by_hand(
        self, points: Points, reference: dict[str, np.ndarray]
    ) -> None:
        alpha = points.x[:, 1] + np.pi
        arm_rate, rate = points.x[:, 2], points.x[:, 3]
        Mr, Lr, Mp, Lp, arm_damping, damping, Rm, k = points.theta.T
        M = np.empty((6, 2, 2))
        M[:, 0, 0] = Mr * Lr**2 / 12 + Mp * Lr**2 + Mp * Lp**2 * np.sin(alpha) ** 2 / 4
        M[:, 0, 1] = M[:, 1, 0] = Mp * Lp * Lr * np.cos(alpha) / 2
        M[:, 1, 1] = Mp * Lp**2 / 3
        swirl = Mp * Lp**2 * np.sin(alpha) * np.cos(alpha) / 4
        arm = -2 * swirl * arm_rate * rate + Mp * Lp * Lr * np.sin(alpha) * rate**2 / 2
        arm += k * (points.u[:, 0] - k * arm_rate) / Rm - arm_damping * arm_rate
        pendulum = swirl * arm_rate**2 - Mp * 9.81 * Lp * np.sin(alpha) / 2 - damping * rate
        accelerations = np.linalg.solve(M, np.stack([arm, pendulum], axis=1)[:, :, None])[:, :, 0]
        np.testing.assert_allclose(reference["xdot"], np.hstack([points.x[:, 2:], accelerations]), rtol=1e-10)

    def test_gradients_are_contractions_of_the_jacobians(
        self, points: Points, reference: dict[str, np.ndarray]
    ) -> None:
        da_dx, dB_dx = reference["da_dx"].reshape(6, 4, 4), reference["dB_dx"].reshape(6, 4, 1, 4)
        expected = np.einsum("ni,nij->nj", points.costate, da_dx)
        expected += np.einsum("ni,nimj,nm->nj", points.costate, dB_dx, points.u)
        np.testing.assert_allclose(reference["dH_dx"], expected, rtol=1e-11)

    @pytest.mark.slow
    def test_derivatives_are_those_of_steps_in_double_precision(
        self, furuta: tuple[Robot, EquationsOfMotion], points: Points, reference: dict[str, np.ndarray]
    ) -> None:
        step = 1e-5
        for column in range(4):
            ahead = points.x.copy()
            ahead[:, column] += step
            moved = ExactReference(furuta[1]).quantities(ahead, points.u, points.costate, points.theta, points.w)
            slope = (moved["a"] - reference["a"]) / step
            exact = reference["da_dx"].reshape(6, 4, 4)[:, :, column]
            np.testing.assert_allclose(slope, exact, rtol=1e-2, atol=1e-2 * np.abs(exact).max())

    def test_a_definition_changes_no_value(
        self, furuta: tuple[Robot, EquationsOfMotion], points: Points, reference: dict[str, np.ndarray]
    ) -> None:
        _, equations = furuta
        named = equations.mass_matrix[0, 0]
        symbol = type(equations.parameters[0])("named")
        same = replace(
            equations,
            definitions=((symbol, named),),
            mass_matrix=equations.mass_matrix.xreplace({named: symbol}),
        )
        again = ExactReference(same).quantities(points.x, points.u, points.costate, points.theta, points.w)
        np.testing.assert_allclose(again["a"], reference["a"], rtol=1e-14)


class TestKernelChecks:
    def test_exact_kernels_pass(self, points: Points, reference: dict[str, np.ndarray]) -> None:
        assert not failed(kernel_checks(Kernels(reference), "llvm float64", reference, points, 1e-9))

    @pytest.mark.parametrize("name", ["a", "B", "xdot", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"])
    def test_one_wrong_entry_is_found(self, points: Points, reference: dict[str, np.ndarray], name: str) -> None:
        wrong = reference[name].copy()
        entry = np.unravel_index(np.abs(wrong).argmax(), wrong.shape)
        wrong[entry] *= 1 + 3e-9
        checks = kernel_checks(Kernels({**reference, name: wrong}), "llvm float64", reference, points, 1e-9)
        assert failed(checks) == {name}
        where, *_ = [check.where for check in checks if check.where]
        for word in ("entry [", "50 digits", "1e-09", "theta = ("):
            assert word in where

    @pytest.mark.parametrize("name", ["dH_dx", "dH_du", "dH_dtheta", "q", "dq_dx"])
    def test_a_small_column_is_not_hidden_by_a_large_one(
        self, points: Points, reference: dict[str, np.ndarray], name: str
    ) -> None:
        wrong = reference[name].copy()
        scale = np.abs(wrong).max(axis=0)
        column = np.flatnonzero(scale)[scale[scale > 0].argmin()]
        wrong[:, column] *= 1 + 3e-9
        checks = kernel_checks(Kernels({**reference, name: wrong}), "llvm float64", reference, points, 1e-9)
        assert failed(checks) == {name}

    def test_a_value_that_is_not_a_number_fails(self, points: Points, reference: dict[str, np.ndarray]) -> None:
        wrong = reference["q"].copy()
        wrong[2] = np.nan
        assert failed(kernel_checks(Kernels({**reference, "q": wrong}), "c", reference, points, 0.05)) == {"q"}

    def test_an_entry_that_is_zero_has_the_scale_of_the_output(self) -> None:
        expected = np.array([[1.0, 1e-40], [2.0, -1e-40]])
        rounded = np.array([[1.0, 1e-17], [2.0, 0.0]])
        assert relative_error(rounded, expected) < 1e-16
        assert relative_error(np.zeros((2, 2)), np.zeros((2, 2))) == 0
        assert relative_error(np.ones((2, 2)), np.zeros((2, 2))) == np.inf

    def test_a_small_entry_has_the_scale_of_its_row_and_column(self) -> None:
        """1e-12 is compared with its row and column; 1e-6 with a small row and column is not compared with 1."""
        expected = np.tile([[1.0, 1e-12], [1e-12, 1e-6]], (3, 1, 1))
        assert relative_error(expected + np.array([[0, 1e-19], [0, 0]]), expected) < 1e-9
        assert relative_error(expected + np.array([[0, 0], [0, 1e-14]]), expected) > 1e-9
        assert relative_error(expected * (1 + 1e-8), expected, 100.0) < 1e-9  # an entry with so much rounding


class TestMechanics:
    def test_correct_equations_pass(self, furuta: tuple[Robot, EquationsOfMotion], points: Points) -> None:
        assert not failed(mechanics_checks(*furuta, points))

    def test_a_wrong_force_is_found(self, furuta: tuple[Robot, EquationsOfMotion], points: Points) -> None:
        robot, equations = furuta
        wrong = replace(equations, force=equations.force * 1.000001)
        checks = mechanics_checks(robot, wrong, points)
        assert "Lagrange's equations hold" in failed(checks)
        for word in ("along `", "1e-13", "_rate = ", "voltage = "):
            assert word in checks[0].where

    def test_a_wrong_input_matrix_is_found(self, furuta: tuple[Robot, EquationsOfMotion], points: Points) -> None:
        robot, equations = furuta
        wrong = replace(equations, input_matrix=-equations.input_matrix)
        assert failed(mechanics_checks(robot, wrong, points)) == {"Lagrange's equations hold"}

    def test_a_wrong_coriolis_force_is_found(self, furuta: tuple[Robot, EquationsOfMotion], points: Points) -> None:
        robot, equations = furuta
        arm, pendulum = equations.velocities
        q = equations.coordinates[1]
        wrong = replace(equations, force=equations.force + Matrix([sin(q) * arm * pendulum / 1e4, 0]))
        assert failed(mechanics_checks(robot, wrong, points)) == {
            "Lagrange's equations hold",
            "Mdot - 2C skew",
        }

    def test_an_asymmetric_or_indefinite_mass_matrix_is_found(
        self, furuta: tuple[Robot, EquationsOfMotion], points: Points
    ) -> None:
        robot, equations = furuta
        spoiled = equations.mass_matrix.copy()
        spoiled[0, 1] *= 1.5
        checks = mechanics_checks(robot, replace(equations, mass_matrix=spoiled), points)
        assert "mass matrix symmetric" in failed(checks)
        spoiled[0, 1] = spoiled[1, 0] = equations.mass_matrix[0, 0] + equations.mass_matrix[1, 1]
        checks = domain_checks(robot, replace(equations, mass_matrix=spoiled), 5.0)
        assert failed(checks) == {"mass matrix positive definite"}


def test_derivatives_that_cancel_by_a_parameter_are_zero_up_to_rounding(
    points: Points, reference: dict[str, np.ndarray]
) -> None:
    """The weight over the mass: g m / m has a derivative by m that only rounding keeps from zero."""
    zero = np.zeros_like(reference["da_dtheta"])
    size = np.abs(reference["a"]).max() / np.abs(points.theta).max()
    for error, fails in ((1e-15 * size, set()), (1e-7 * size, {"da_dtheta"})):
        wrong = zero.copy()
        wrong[:, np.abs(reference["a"]).max(axis=0).argmax() * points.theta.shape[-1]] = error
        kernels = Kernels({**reference, "da_dtheta": wrong})
        assert failed(kernel_checks(kernels, "c", {**reference, "da_dtheta": zero}, points, 1e-9)) == fails


def test_functions_that_are_too_long_for_a_backend_are_skipped(
    points: Points, reference: dict[str, np.ndarray]
) -> None:
    checks = kernel_checks(Kernels(reference), "numba float64", reference, points, 1e-9, most_operations=9)
    assert all(check.error is None and "more than 9 operations" in check.note for check in checks)


def test_table_shows_failed_and_missing_checks(points: Points, reference: dict[str, np.ndarray]) -> None:
    wrong = reference["q"] * 1.1
    checks = kernel_checks(Kernels({**reference, "q": wrong}), "llvm float64", reference, points, 1e-9)
    other = Check("dynamics: xdot", "casadi float64", 0.0, 1e-9)
    text = table([*checks, other])
    (line,) = (line for line in text.splitlines() if "state_cost: q" in line)
    assert "FAILED" in line
    assert "not checked" in line  # in the column of the other kernel
    assert "numba" not in text
