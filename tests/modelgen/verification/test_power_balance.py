"""The power balance of a kernel passes correct ones and finds small mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, cos, sin

from modelgen import LogCos, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.verification.kernels import power_balance


def derived(robot: Robot, cost: Any) -> tuple[Robot, EquationsOfMotion]:
    robot.task(state_cost=cost, action_cost=LogCos(1), start={}, horizon=5, weight_at_horizon=0.5, control_rate=100)
    return robot, equations_of_motion(robot)


@pytest.fixture
def slider() -> tuple[Robot, EquationsOfMotion]:
    """A mass on a spring with friction and a force."""
    robot = Robot("slider")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    robot.point_mass(robot.parameter("mass", 1.0, "kg", bounds=(0.5, 2)), (s, 0))
    robot.spring(s, 40)
    robot.damp(s, 0.5)
    robot.apply(s, robot.input("force", 3, "N"))
    return derived(robot, s**2)


def kernels(equations: EquationsOfMotion, change: Callable[..., Any]) -> Any:
    acceleration = (equations.force + equations.input_matrix * Matrix(equations.inputs))[0]
    symbols = [*equations.state, *equations.inputs, *equations.parameters]
    function = numpy_evaluator(symbols, acceleration / equations.mass_matrix[0] + change(*equations.velocities))

    class Dynamics:
        @staticmethod
        def dynamics(x: np.ndarray, u: np.ndarray, theta: np.ndarray) -> np.ndarray:
            return np.stack([x[:, 1], function(*x.T, *u.T, *theta.T)], axis=1)

    return Dynamics


def test_a_kinetic_energy_with_a_part_without_rates_passes() -> None:
    """A bead on a turning hoop: T + U changes, although only the declared forces do work."""
    robot = Robot("bead")
    q = robot.revolute("q", continuous=True, rate_limit=3)
    speed = robot.parameter("speed", 5, "", tolerance=0.5)
    robot.kinetic_energy((q.rate**2 + speed**2 * sin(q) ** 2) / 2)
    robot.apply(q, robot.input("torque", 1, "N m"))
    bead = derived(robot, sin(q / 2) ** 2)
    assert power_balance(*bead, kernels(bead[1], lambda _: 0)).passed


def test_a_correct_kernel_passes(slider: tuple[Robot, EquationsOfMotion]) -> None:
    assert power_balance(*slider, kernels(slider[1], lambda _: 0)).passed


def test_a_kernel_whose_input_is_too_strong_fails(slider: tuple[Robot, EquationsOfMotion]) -> None:
    robot, equations = slider
    stronger = replace(equations, input_matrix=equations.input_matrix * 1.000001)
    assert not power_balance(robot, equations, kernels(stronger, lambda _: 0)).passed


def test_a_kernel_that_generates_energy_fails(slider: tuple[Robot, EquationsOfMotion]) -> None:
    check = power_balance(*slider, kernels(slider[1], lambda rate: rate * 1e-6))
    assert not check.passed
    for word in ("dE/dt = ", "power ", "at x = (", "theta = ("):
        assert word in check.where


def test_a_kernel_that_is_not_finite_fails(slider: tuple[Robot, EquationsOfMotion]) -> None:
    check = power_balance(*slider, kernels(slider[1], lambda _: np.nan))
    assert not check.passed


@pytest.fixture
def stiff() -> tuple[Robot, EquationsOfMotion]:
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


def two_joints(equations: EquationsOfMotion, scale: float) -> Any:
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
def balanced() -> tuple[Robot, EquationsOfMotion]:
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
def test_weights_that_cancel_pass(balanced: tuple[Robot, EquationsOfMotion]) -> None:
    assert power_balance(*balanced, two_joints(balanced[1], 1)).passed


@pytest.mark.slow
def test_a_weak_torque_is_found_although_weights_cancel(balanced: tuple[Robot, EquationsOfMotion]) -> None:
    robot, equations = balanced
    wrong = replace(equations, force=equations.force + Matrix([0, 1e-12]))  # N m; the weights have 2 N m each
    assert not power_balance(robot, equations, two_joints(wrong, 1)).passed


def test_a_stiff_and_fast_robot_passes_unless_it_is_wrong(stiff: tuple[Robot, EquationsOfMotion]) -> None:
    assert power_balance(*stiff, two_joints(stiff[1], 1)).passed
    assert not power_balance(*stiff, two_joints(stiff[1], 1 + 1e-9)).passed
