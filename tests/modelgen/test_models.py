"""The shipped robots compared with their published equations, written again by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from modelgen import Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import numpy_evaluator, samples

NAMES = ("cartpole", "cartpole_quanser", "double_pendulum", "furuta", "pendulum")


@pytest.fixture(scope="module")
def robots() -> dict[str, Robot]:
    return {name: load(str(SHIPPED / f"{name}.py")) for name in NAMES}


@pytest.fixture(scope="module")
def evaluated(robots: dict[str, Robot]) -> dict[str, tuple[Any, ...]]:
    """Name -> x, theta, M, force, B at sampled states and parameters."""
    result = {}
    for name, robot in robots.items():
        equations = equations_of_motion(robot)
        x, theta = samples(robot, 50, seed=3)
        arguments = [*equations.state, *equations.parameters]
        matrices = (equations.mass_matrix, equations.force, equations.input_matrix)
        result[name] = (x, theta, *(numpy_evaluator(arguments, matrix)(*x.T, *theta.T) for matrix in matrices))
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_robot_passes_the_checks_at_definition(
    robots: dict[str, Robot], evaluated: dict[str, tuple[Any, ...]], name: str
) -> None:
    check_domain(robots[name], equations_of_motion(robots[name]))
    assert np.linalg.eigvalsh(evaluated[name][2]).min() > 0  # as the check of the mass matrix requires


def test_every_input_acts_along_the_expected_coordinate() -> None:
    driven = {
        "furuta": ["arm"],
        "double_pendulum": ["shoulder", "elbow"],
        "reaction_wheel": ["wheel"],
        "planar_quadrotor": [None, None],
    }
    for name, expected in driven.items():
        assert [declared.coordinate for declared in metadata(load(str(SHIPPED / f"{name}.py"))).inputs] == expected


def test_pendulum_acceleration(evaluated: dict[str, tuple[Any, ...]]) -> None:
    x, theta, M, force, B = evaluated["pendulum"]
    mass, length = theta.T
    acceleration = (force[:, 0, 0] + B[:, 0, 0] * 2) / M[:, 0, 0]
    printed = 3 * 9.81 / (2 * length) * np.sin(x[:, 0]) + 3 * 2 / (mass * length**2)
    np.testing.assert_allclose(acceleration, printed, rtol=1e-13)


def test_cartpole_equations(evaluated: dict[str, tuple[Any, ...]]) -> None:
    x, theta, M, force, B = evaluated["cartpole"]
    angle, cart_rate, pole_rate = x[:, 1], x[:, 2], x[:, 3]
    mc, mp, l, cart_damping, pole_damping = theta.T
    np.testing.assert_allclose(M[:, 0, 0], mc + mp, rtol=1e-14)
    np.testing.assert_allclose(M[:, 0, 1], mp * l * np.cos(angle), rtol=1e-14)
    np.testing.assert_allclose(M[:, 1, 1], mp * l**2, rtol=1e-14)
    cart = mp * l * pole_rate**2 * np.sin(angle) - cart_damping * cart_rate
    pole = mp * l * 9.81 * np.sin(angle) - pole_damping * pole_rate
    np.testing.assert_allclose(force[:, :, 0], np.stack([cart, pole], axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(B[:, :, 0], np.tile([1.0, 0.0], (len(x), 1)))


def test_quanser_force_and_inertia(evaluated: dict[str, tuple[Any, ...]]) -> None:
    x, theta, M, force, B = evaluated["cartpole_quanser"]
    angle, cart_rate, pole_rate = x[:, 1], x[:, 2], x[:, 3]
    mc, mp, l, cart_damping, pole_damping, Rm, km = theta.T
    eta_g = eta_m = 0.9
    Kg, Jm, r = 3.71, 3.9e-7, 6.35e-3
    np.testing.assert_allclose(M[:, 0, 0], mc + eta_g * Kg**2 * Jm / r**2 + mp, rtol=1e-13)
    np.testing.assert_allclose(M[:, 0, 1], mp * l * np.cos(angle), rtol=1e-13)
    np.testing.assert_allclose(M[:, 1, 1], mp * l**2 / 3 + mp * l**2, rtol=1e-13)

    def motor(voltage: float) -> np.ndarray:
        return eta_g * Kg * eta_m * km / (Rm * r) * (eta_m * voltage - Kg * km * cart_rate / r)

    cart = mp * l * pole_rate**2 * np.sin(angle) - cart_damping * cart_rate + motor(0)
    pole = mp * l * 9.81 * np.sin(angle) - pole_damping * pole_rate
    np.testing.assert_allclose(force[:, :, 0], np.stack([cart, pole], axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B[:, 0, 0], motor(1) - motor(0), rtol=1e-12)
    assert not B[:, 1].any()


def test_furuta_equations(evaluated: dict[str, tuple[Any, ...]]) -> None:
    x, theta, M, force, B = evaluated["furuta"]
    alpha = x[:, 1] + math.pi  # the printed figures measure from hanging
    arm_rate, rate = x[:, 2], x[:, 3]
    Mr, Lr, Mp, Lp, arm_damping, damping, Rm, k = theta.T
    np.testing.assert_allclose(
        M[:, 0, 0], Mr * Lr**2 / 12 + Mp * Lr**2 + Mp * Lp**2 * np.sin(alpha) ** 2 / 4, rtol=1e-13
    )
    np.testing.assert_allclose(M[:, 0, 1], Mp * Lp * Lr * np.cos(alpha) / 2, rtol=1e-13, atol=1e-18)
    np.testing.assert_allclose(M[:, 1, 1], Mp * Lp**2 / 12 + Mp * Lp**2 / 4, rtol=1e-13)
    swirl = Mp * Lp**2 * np.sin(alpha) * np.cos(alpha) / 4
    arm = -2 * swirl * arm_rate * rate + Mp * Lp * Lr * np.sin(alpha) * rate**2 / 2
    arm += -arm_damping * arm_rate - k * k * arm_rate / Rm
    pendulum = swirl * arm_rate**2 - Mp * 9.81 * Lp * np.sin(alpha) / 2 - damping * rate
    np.testing.assert_allclose(force[:, :, 0], np.stack([arm, pendulum], axis=1), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(B[:, 0, 0], k / Rm, rtol=1e-14)


def test_double_pendulum_equations(evaluated: dict[str, tuple[Any, ...]]) -> None:
    x, theta, M, force, B = evaluated["double_pendulum"]
    q1, q2, v1, v2 = x.T
    m1, l1, m2, l2, d1, d2 = theta.T
    coupling = m2 * l1 * l2 / 2
    M12 = m2 * l2**2 / 3 + coupling * np.cos(q2)
    M11 = m1 * l1**2 / 3 + m2 * l1**2 + m2 * l2**2 / 3 + 2 * coupling * np.cos(q2)
    np.testing.assert_allclose(M[:, 0, 0], M11, rtol=1e-12)
    np.testing.assert_allclose(M[:, 0, 1], M12, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(M[:, 1, 1], m2 * l2**2 / 3, rtol=1e-12)
    lower = 9.81 * m2 * l2 / 2 * np.sin(q1 + q2)
    upper = 9.81 * (m1 / 2 + m2) * l1 * np.sin(q1)
    shoulder = coupling * np.sin(q2) * (2 * v1 * v2 + v2**2) + upper + lower - d1 * v1
    elbow = -coupling * np.sin(q2) * v1**2 + lower - d2 * v2
    np.testing.assert_allclose(force[:, :, 0], np.stack([shoulder, elbow], axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(B, np.tile(np.eye(2), (len(x), 1, 1)))


def test_cartpole_cost_has_the_authors_barrier_less_its_constant(robots: dict[str, Robot]) -> None:
    equations = equations_of_motion(robots["cartpole"])
    cost = numpy_evaluator(equations.state, equations.state_cost)
    limits = np.array([0.4, 1.1 * math.pi, 5.5, 22])

    def quadratic(x: np.ndarray) -> np.ndarray:
        angle = math.pi * np.sin(x[:, 1] / 2)
        return np.stack([25 * x[:, 0] ** 2, angle**2, 0.5 * x[:, 2] ** 2, 0.1 * x[:, 3] ** 2], axis=1)

    def barrier(x: np.ndarray) -> np.ndarray:
        height = 5 * quadratic(limits[None])
        return sum(height / (1 + np.exp(np.minimum(-20 * (sign * x - limits), 700))) for sign in (1, -1))

    x = samples(robots["cartpole"], 200)[0]
    expected = quadratic(x) + barrier(x) - barrier(x * 0)
    np.testing.assert_allclose(cost(*x.T), expected.sum(axis=1), rtol=1e-10, atol=1e-10)
    assert barrier(x[:1] * 0).sum() == pytest.approx(0.0134, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "start_mean", "variance", "limits", "input_limit", "weight"),
    [
        ("pendulum", (math.pi, 0.01), (1e-3, 1e-6), (math.pi, 8), 2.5, 0.65),
        ("cartpole", (0, math.pi, 0, 0), (1e-3, 5e-2, 1e-6, 1e-6), (0.5, math.pi, 5, 20), 12, 0.8),
    ],
)
def test_tasks_have_the_authors_numbers(
    robots: dict[str, Robot],
    name: str,
    start_mean: tuple[Any, ...],
    variance: tuple[Any, ...],
    limits: tuple[Any, ...],
    input_limit: float,
    weight: float,
) -> None:
    described = metadata(robots[name])
    task = described.task
    assert task.start_mean == pytest.approx(start_mean)
    assert [deviation**2 for deviation in task.start_deviation] == pytest.approx(variance)
    assert [state.limit for state in described.states] == pytest.approx(limits)
    assert described.inputs[0].limit == input_limit
    assert (task.weight_at_horizon, task.horizon, task.control_rate, task.simulation_rate) == (
        weight,
        5,
        125,
        500,
    )


def test_parameters_and_bounds(robots: dict[str, Robot]) -> None:
    described = {name: metadata(robot) for name, robot in robots.items()}
    assert [parameter.name for parameter in described["pendulum"].parameters] == ["mass", "length"]
    assert {(parameter.lower, parameter.upper) for parameter in described["pendulum"].parameters} == {(0.5, 2.0)}
    cartpole = described["cartpole"].parameters
    assert [parameter.name for parameter in cartpole] == [
        "cart_mass",
        "pole_mass",
        "pole_half_length",
        "cart_damping",
        "pole_damping",
    ]
    for parameter in cartpole:
        bounds = (0.5 * parameter.value, 1.5 * parameter.value)
        assert (parameter.lower, parameter.upper) == pytest.approx(bounds)
    assert len(described["double_pendulum"].inputs) == 2
    assert [state.continuous for state in described["double_pendulum"].states] == [True, True, False, False]
