"""`verify` passes correct artifacts and finds every kind of mistake by the check that is meant for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, cos, sin

from modelgen import LogCos, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.functions import SIGNATURES
from modelgen.verification import domain_checks
from modelgen.verification.checks import Check, Points, table
from modelgen.verification.kernels import kernel_checks, power_balance, relative_error
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


def derived(robot: Robot, cost: Any) -> tuple[Robot, EquationsOfMotion]:
    robot.task(state_cost=cost, action_cost=LogCos(1), start={}, horizon=5, weight_at_horizon=0.5, control_rate=100)
    return robot, equations_of_motion(robot)


class TestPowerBalance:
    @pytest.fixture
    def slider(self) -> tuple[Robot, EquationsOfMotion]:
        """A mass on a spring with friction and a force."""
        robot = Robot("slider")
        s = robot.prismatic("s", limit=1, rate_limit=2)
        robot.point_mass(robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2)), (s, 0))
        robot.spring(s, 40)
        robot.damp(s, 0.5)
        robot.apply(s, robot.input("force", 3, "N"))
        return derived(robot, s**2)

    def kernels(self, equations: EquationsOfMotion, change: Callable[..., Any]) -> Any:
        acceleration = (equations.force + equations.input_matrix * Matrix(equations.inputs))[0]
        symbols = [*equations.state, *equations.inputs, *equations.parameters]
        function = numpy_evaluator(symbols, acceleration / equations.mass_matrix[0] + change(*equations.velocities))

        class Dynamics:
            @staticmethod
            def dynamics(x: np.ndarray, u: np.ndarray, theta: np.ndarray) -> np.ndarray:
                return np.stack([x[:, 1], function(*x.T, *u.T, *theta.T)], axis=1)

        return Dynamics

    def test_a_kinetic_energy_with_a_part_without_rates_passes(self) -> None:
        """A bead on a turning hoop: T + U changes, although only the declared forces do work."""
        robot = Robot("bead")
        q = robot.revolute("q", continuous=True, rate_limit=3)
        speed = robot.parameter("speed", 5, "", tolerance=0.5)
        robot.kinetic_energy((q.rate**2 + speed**2 * sin(q) ** 2) / 2)
        robot.apply(q, robot.input("torque", 1, "N m"))
        bead = derived(robot, sin(q / 2) ** 2)
        assert power_balance(*bead, self.kernels(bead[1], lambda _: 0)).passed

    def test_a_correct_kernel_passes(self, slider: tuple[Robot, EquationsOfMotion]) -> None:
        assert power_balance(*slider, self.kernels(slider[1], lambda _: 0)).passed

    def test_a_kernel_whose_input_is_too_strong_fails(self, slider: tuple[Robot, EquationsOfMotion]) -> None:
        robot, equations = slider
        stronger = replace(equations, input_matrix=equations.input_matrix * 1.000001)
        assert not power_balance(robot, equations, self.kernels(stronger, lambda _: 0)).passed

    def test_a_kernel_that_generates_energy_fails(self, slider: tuple[Robot, EquationsOfMotion]) -> None:
        check = power_balance(*slider, self.kernels(slider[1], lambda rate: rate * 1e-6))
        assert not check.passed
        for word in ("dE/dt = ", "power ", "at x = (", "theta = ("):
            assert word in check.where

    def test_a_kernel_that_is_not_finite_fails(self, slider: tuple[Robot, EquationsOfMotion]) -> None:
        check = power_balance(*slider, self.kernels(slider[1], lambda _: np.nan))
        assert not check.passed

    @pytest.fixture
    def stiff(self) -> tuple[Robot, EquationsOfMotion]:
        """A light hand on a heavy arm at 100 turns per second: a rollout of half a second needs 10^5 steps."""
        robot = Robot("stiff")
        arm = robot.revolute("arm", limit=3, rate_limit=600)
        hand = robot.revolute("hand", limit=3, rate_limit=600)
        mass = robot.parameter("mass", 1e-3, "kg", tolerance=0.3)
        tip = (sin(arm) + sin(arm + hand) / 20, cos(arm) + cos(arm + hand) / 20)
        robot.point_mass(2, (sin(arm), cos(arm)))
        robot.point_mass(mass, tip)
        robot.spring(hand, 2e4)
        robot.apply(hand, 30 * robot.input("torque", 1, "N m"))
        return derived(robot, arm**2 + hand**2)

    def two_joints(self, equations: EquationsOfMotion, scale: float) -> Any:
        symbols = [*equations.state, *equations.inputs, *equations.parameters]
        matrix = numpy_evaluator(symbols, equations.mass_matrix, equations.definitions)
        driven = equations.force + equations.input_matrix * Matrix(equations.inputs)
        force = numpy_evaluator(symbols, driven, equations.definitions)

        class Dynamics:
            @staticmethod
            def dynamics(x: np.ndarray, u: np.ndarray, theta: np.ndarray) -> np.ndarray:
                at = (*x.T, *u.T, *theta.T)
                return np.hstack([x[:, 2:], scale * np.linalg.solve(matrix(*at), force(*at))[:, :, 0]])

        return Dynamics

    @pytest.fixture
    def balanced(self) -> tuple[Robot, EquationsOfMotion]:
        """Wheels on tilted arms whose weights cancel: without input, the power comes only from rounded numbers."""
        robot = Robot("balanced")
        first, second = (robot.revolute(name, continuous=True, rate_limit=50) for name in ("first", "second"))
        mass = robot.parameter("mass", 2.0, "kg", tolerance=0.3)
        post = robot.link("post", at=(0.3, 0.1, 0.7), turned=(1.5708, 0.3, 0.7))
        for name, joint, turned in (("hub", first, (1.5708, 1.27, 0)), ("disc", second, (3.14159, 1.5708, 0.2))):
            arm = robot.link(f"{name}_arm", on=post, at=(0.1, 0.2, 0.3), turned=turned)
            wheel = robot.link(name, joint, on=arm, axis="z", turned=turned, mass=mass, inertia=(0.01, 0.01, 0.02))
            for side in (-1, 1):
                robot.link(f"{name}{side}".replace("-", "_"), on=wheel, at=(0.1 * side, 0, 0), mass=mass)
        robot.apply(first, robot.input("torque", 1, "N m"))
        return derived(robot, sin(first / 2) ** 2 + sin(second / 2) ** 2)

    @pytest.mark.slow
    def test_weights_that_cancel_pass(self, balanced: tuple[Robot, EquationsOfMotion]) -> None:
        assert power_balance(*balanced, self.two_joints(balanced[1], 1)).passed

    @pytest.mark.slow
    def test_a_weak_torque_is_found_although_weights_cancel(self, balanced: tuple[Robot, EquationsOfMotion]) -> None:
        robot, equations = balanced
        wrong = replace(equations, force=equations.force + Matrix([0, 1e-12]))  # N m; the weights have 2 N m each
        assert not power_balance(robot, equations, self.two_joints(wrong, 1)).passed

    def test_a_stiff_and_fast_robot_passes_unless_it_is_wrong(self, stiff: tuple[Robot, EquationsOfMotion]) -> None:
        assert power_balance(*stiff, self.two_joints(stiff[1], 1)).passed
        assert not power_balance(*stiff, self.two_joints(stiff[1], 1 + 1e-9)).passed


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
