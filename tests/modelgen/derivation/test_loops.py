"""Closed loops against Lagrange multipliers: M q'' + J' lambda = f, J q'' = -Jdot q', with NumPy."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from sympy import asin, cos, pi, sin, sqrt

from modelgen import LogCos, ModelError, Quadratic, Robot, load
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.loops import closures
from modelgen.derivation.numeric import compiled_evaluator
from modelgen.derivation.size import size
from modelgen.report.pages import html_page
from tests.modelgen.support.unseen import unseen

Array = NDArray[np.float64]
GRAVITY = 9.81


def accelerations(
    energies: Callable[[Array], tuple[Array, Array]],
    gap: Callable[[Array], Array],
    q: Array,
    v: Array,
    applied: Array,
) -> Array:
    """q'' by Lagrange multipliers. energies: masses and inertias (k,), and their places (k,) at q.

    Places are differentiated by complex steps, so that nothing here knows the program's derivation.
    """
    masses, _ = energies(q)

    def places(at: Array) -> Array:
        return energies(at)[1]

    P, Pdot_v = slopes(places, q), second(places, q, v)
    J, Jdot_v = slopes(gap, q), second(gap, q, v)
    M = P.T @ (masses[:, None] * P)
    force = applied - P.T @ (masses * Pdot_v)
    size, rows = len(q), len(J)
    whole = np.block([[M, J.T], [J, np.zeros((rows, rows))]])
    return np.linalg.solve(whole, np.concatenate([force, -Jdot_v]))[:size]


def slopes(function: Callable[[Array], Array], q: Array) -> Array:
    return np.array([np.imag(function(q + 1e-30j * unit)) / 1e-30 for unit in np.eye(len(q))]).T


def second(function: Callable[[Array], Array], q: Array, v: Array) -> Array:
    """The second derivative of a function along v: a central difference, of sixth order, of its complex step."""
    h = 1e-3

    def rate(s: float) -> Array:
        return np.asarray(np.imag(function(q + s * v + 1e-30j * v)) / 1e-30)

    return (45 * (rate(h) - rate(-h)) - 9 * (rate(2 * h) - rate(-2 * h)) + rate(3 * h) - rate(-3 * h)) / (60 * h)


def consistent(gap: Callable[[Array], Array], q: Array, v: Array, independent: int) -> tuple[Array, Array]:
    """Closed coordinates and rates, with the first entries as they are."""
    q = q.astype(np.float64)
    for _ in range(20):
        q[independent:] -= np.linalg.solve(slopes(gap, q)[:, independent:], gap(q))
    J = slopes(gap, q)
    rates = np.linalg.solve(J[:, independent:], -J[:, :independent] @ v[:independent])
    return q, np.concatenate([v[:independent], rates])


def four_bar_places(q: Array) -> tuple[Array, Array]:
    crank, coupler, rocker = q
    masses = np.array([0.3, 0.3, 0.002] * 3)
    pin = np.array([0.2 * np.cos(crank), 0.2 * np.sin(crank)])
    tip = pin + 0.5 * np.array([np.cos(coupler), np.sin(coupler)])
    end = np.array([0.5 + 0.4 * np.cos(rocker), 0.4 * np.sin(rocker)])
    ground = np.array([0.5, 0.0])
    return masses, np.array([*pin / 2, crank, *(pin + tip) / 2, coupler, *(ground + end) / 2, rocker])


def four_bar_gap(q: Array) -> Array:
    crank, coupler, rocker = q
    x = 0.2 * np.cos(crank) + 0.5 * np.cos(coupler) - 0.5 - 0.4 * np.cos(rocker)
    return np.array([x, 0.2 * np.sin(crank) + 0.5 * np.sin(coupler) - 0.4 * np.sin(rocker)])


def four_bar_acceleration(crank: float, rate: float, torque: float) -> Array:
    q, v = consistent(four_bar_gap, np.array([crank, 0.9, 1.6]), np.array([rate, 0, 0]), 1)
    heights = slopes(lambda at: four_bar_places(at)[1][[1, 4, 7]], q)
    applied = np.array([torque, 0, 0]) - GRAVITY * 0.3 * heights.sum(axis=0)
    return accelerations(four_bar_places, four_bar_gap, q, v, applied)


@pytest.mark.slow
def test_four_bar_equals_lagrange_multipliers(built_unseen: Callable[[str], Path]) -> None:
    robot = load("four_bar", directory=built_unseen("four_bar"))
    random = np.random.default_rng(1)
    for crank, rate, torque in random.uniform([-4, -10, -3], [4, 10, 3], (40, 3)):
        expected = four_bar_acceleration(crank, rate, torque)[0]
        found = robot.dynamics(np.array([crank, rate]), np.array([torque]))[1]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_free_four_bar_keeps_its_energy(built_unseen: Callable[[str], Path]) -> None:
    robot = load("four_bar", directory=built_unseen("four_bar"))

    def energy(x: Array) -> float:
        q, v = consistent(four_bar_gap, np.array([x[0], 0.9, 1.6]), np.array([x[1], 0, 0]), 1)
        masses, places = four_bar_places(q)
        velocity = slopes(lambda at: four_bar_places(at)[1], q) @ v
        return float((masses * velocity**2).sum() / 2 + GRAVITY * 0.3 * places[[1, 4, 7]].sum())

    start = np.array([0.3, 14.0])
    motion = solve_ivp(lambda _, x: robot.dynamics(x, np.zeros(1)), (0, 2), start, rtol=1e-11, atol=1e-11)
    assert abs(motion.y[0, -1]) > 2 * np.pi  # it turns around
    energies = [energy(x) for x in motion.y.T[::10]]
    np.testing.assert_allclose(energies, energies[0], rtol=1e-8)


@pytest.mark.slow
def test_derivatives_are_those_of_the_closed_loop(tmp_path: Path) -> None:
    """Central differences of the dynamics, for a loop whose lengths are uncertain."""
    build_artifact(uncertain_four_bar(), tmp_path)
    robot = load("uncertain", directory=tmp_path)
    theta = np.array([0.3, 0.21, 0.48])
    x = np.array([[0.3, 2.0], [2.0, -3.0], [-2.5, 1.0]])
    _, _, da_dx, _, da_dtheta, dB_dtheta = robot.jacobians(x, theta)
    h = 1e-6
    for k in range(2):
        step = h * np.eye(2)[k]
        ahead, behind = robot.affine_dynamics(x + step, theta)[0], robot.affine_dynamics(x - step, theta)[0]
        np.testing.assert_allclose(da_dx[:, :, k], (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-6)
    for k in range(3):
        step = h * np.eye(3)[k]
        ahead, behind = robot.affine_dynamics(x, theta + step), robot.affine_dynamics(x, theta - step)
        np.testing.assert_allclose(da_dtheta[:, :, k], (ahead[0] - behind[0]) / (2 * h), rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(dB_dtheta[..., k], (ahead[1] - behind[1]) / (2 * h), rtol=1e-6, atol=1e-4)


def uncertain_four_bar() -> Robot:
    robot = Robot("uncertain")
    crank = robot.revolute("crank", continuous=True, rate_limit=10)
    coupler, rocker = robot.revolute("coupler", limit=pi), robot.revolute("rocker", limit=pi)
    torque = robot.input("torque", 3, "N m")
    mass = robot.parameter("mass", 0.3, "kg", tolerance=0.3)
    a = robot.parameter("a", 0.2, "m", tolerance=0.1)
    b = robot.parameter("b", 0.5, "m", tolerance=0.1)
    tip = (a * cos(crank) + b * cos(coupler), a * sin(crank) + b * sin(coupler))
    end = (0.5 + 0.4 * cos(rocker), 0.4 * sin(rocker))
    robot.loop(tip, end, dependent={coupler: 0.9, rocker: 1.6})
    robot.point_mass(mass, (a * cos(crank), a * sin(crank)))
    robot.point_mass(mass, end)
    robot.apply(crank, torque)
    robot.task(
        state_cost=(pi * sin(crank / 2)) ** 2 + crank.rate**2,
        action_cost=Quadratic(0.1),
        start=dict(crank=(1, 0.1)),
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )
    return robot


def five_bar_places(q: Array) -> tuple[Array, Array]:
    left, right, left_elbow, right_elbow = q
    masses, places = [], []
    for side, shoulder, elbow in ((-0.15, left, left_elbow), (0.15, right, right_elbow)):
        end = np.array([side + 0.25 * np.sin(shoulder), 0.25 * np.cos(shoulder)])
        along = np.array([np.sin(shoulder + elbow), np.cos(shoulder + elbow)])
        places += [(side + end[0]) / 2, end[1] / 2, shoulder, *(end + 0.175 * along), shoulder + elbow]
        masses += [0.2, 0.2, 0.2 * 0.25**2 / 12, 0.15, 0.15, 0.15 * 0.35**2 / 12]
    tip = np.array([-0.15 + 0.25 * np.sin(left), 0.25 * np.cos(left)])
    tip = tip + 0.35 * np.array([np.sin(left + left_elbow), np.cos(left + left_elbow)])
    return np.array([*masses, 0.3, 0.3]), np.array([*places, *tip])


def five_bar_gap(q: Array) -> Array:
    left, right, left_elbow, right_elbow = q
    x = 0.3 + 0.25 * (np.sin(right) - np.sin(left))
    x = x + 0.35 * (np.sin(right + right_elbow) - np.sin(left + left_elbow))
    z = 0.25 * (np.cos(right) - np.cos(left)) + 0.35 * (np.cos(right + right_elbow) - np.cos(left + left_elbow))
    return np.array([x, z])


@pytest.mark.slow
def test_five_bar_of_links_equals_lagrange_multipliers(built_unseen: Callable[[str], Path]) -> None:
    robot = load("five_bar", directory=built_unseen("five_bar"))
    random = np.random.default_rng(2)
    for _ in range(30):
        x = random.uniform([-0.5, -0.5, -8, -8], [0.5, 0.5, 8, 8])
        u = random.uniform(-4, 4, 2)
        q, v = consistent(five_bar_gap, np.array([*x[:2], 0.45, -0.45]), np.array([*x[2:], 0, 0]), 2)
        masses, _ = five_bar_places(q)
        up = [1, 4, 7, 10, 13]
        weights = -GRAVITY * masses[up] @ slopes(lambda at: five_bar_places(at)[1][[1, 4, 7, 10, 13]], q)
        applied = weights + np.array([u[0] - 0.02 * x[2], u[1] - 0.02 * x[3], 0, 0])
        expected = accelerations(five_bar_places, five_bar_gap, q, v, applied)[:2]
        np.testing.assert_allclose(robot.dynamics(x, u)[2:], expected, rtol=1e-9, atol=1e-8)


@pytest.mark.slow
def test_slider_crank_equals_its_closed_form(built_unseen: Callable[[str], Path], tmp_path: Path) -> None:
    robot = load("slider_crank", directory=built_unseen("slider_crank"), backend="numba", parallel=False)
    by_hand = Robot("by_hand")
    crank = by_hand.revolute("crank", continuous=True, rate_limit=10)
    torque = by_hand.input("torque", 3, "N m")
    mass = by_hand.parameter("mass", 0.3, "kg", tolerance=0.3)
    damping = by_hand.parameter("damping", 0.5, "N s/m", tolerance=0.9)
    slider = 0.1 * cos(crank) + sqrt(0.09 - (0.1 * sin(crank)) ** 2)
    rod = -asin(sin(crank) / 3)
    by_hand.body(mass, 0.002, (0.05 * cos(crank), 0.05 * sin(crank)), crank)
    by_hand.body(mass, 0.002, ((0.1 * cos(crank) + slider) / 2, 0.05 * sin(crank)), rod)
    by_hand.point_mass(2 * mass, (slider, 0))
    by_hand.damp(slider, damping)
    by_hand.apply(crank, torque)
    by_hand.task(
        state_cost=sin(crank / 2) ** 2 + crank.rate**2,
        action_cost=Quadratic(0.1),
        start=dict(crank=(1, 0.1)),
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )
    build_artifact(by_hand, tmp_path)
    other = load("by_hand", directory=tmp_path)
    random = np.random.default_rng(3)
    x, u = random.uniform(-8, 8, (50, 2)), random.uniform(-3, 3, (50, 1))
    np.testing.assert_allclose(robot.dynamics(x, u), other.dynamics(x, u), rtol=1e-10, atol=1e-10)


def welded(turned: float = 0.0) -> Robot:
    """A four-bar whose rocker closes at the coupler by frames; the pin begins at the angle `turned`."""
    robot = Robot("welded")
    first, second, third = (robot.revolute(name, limit=1.4, **kind) for name, kind in joints())  # type: ignore[arg-type]
    turn, torque = robot.revolute("turn", limit=4), robot.input("torque", 1, "N m")
    mass = robot.parameter("mass", 1, "kg", tolerance=0.3)
    left = robot.link("left", first, mass=mass, centre=(0, 0, 0.2))
    top = robot.link("top", second, on=left, at=(0, 0, 0.4), mass=mass, centre=(0.25, 0, 0))
    right = robot.link("right", third, at=(0.5, 0, 0), mass=mass, centre=(0, 0, 0.2))
    pin = robot.link("pin", turn, on=right, at=(0, 0, 0.4))
    end = robot.link("end", on=top, at=(0.5, 0, 0))
    robot.loop(pin, end, dependent={second: 0, third: 0, turn: turned})
    robot.apply(first, torque)
    task(robot, first)
    return robot


@pytest.mark.slow
def test_frames_of_two_links_coincide() -> None:
    """There is one degree of freedom less than with points: the pin is rigid."""
    equations = equations_of_motion(welded())
    evaluate = compiled_evaluator(
        (*equations.state, *equations.parameters), equations.mass_matrix, equations.definitions
    )
    # a parallelogram: the top bar never turns
    np.testing.assert_allclose(evaluate(np.array([[0.7, 0, 1.0]]))[0, 0, 0], 0.2**2 + 0.4**2 + 0.2**2, rtol=1e-12)


def test_frames_that_lie_half_a_turn_apart_are_refused() -> None:
    """The gap holds the sine of their angle, which is zero there too."""
    with pytest.raises(ModelError, match=r"half a turn apart at .*turn = 3\.14"):
        equations_of_motion(welded(math.pi))


def joints() -> list[tuple[str, dict[str, float]]]:
    return [("first", dict(rate_limit=5.0)), ("second", {}), ("third", {})]


def task(robot: Robot, coordinate: object) -> None:
    robot.task(
        state_cost=coordinate**2 + coordinate.rate**2,  # type: ignore[attr-defined, operator]
        action_cost=LogCos(0.1),
        start={},
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )


@pytest.mark.slow
def test_names_of_links_change_nothing() -> None:
    """A link `loop_second` had the bias force of the name under which the loop keeps the acceleration of `second`."""

    def force(name: str) -> float:
        robot = Robot("tilted")
        first, second, third = (robot.revolute(each, limit=1.4, **kind) for each, kind in joints())  # type: ignore[arg-type]
        mass, axis = robot.parameter("mass", 1, "kg", tolerance=0.3), (0, 0.6, 0.8)
        left = robot.link("left", first, axis=axis, mass=mass, centre=(0, -0.16, 0.12))
        top = robot.link(name, second, on=left, axis=axis, at=(0, -0.32, 0.24), mass=mass, centre=(0.25, 0, 0))
        right = robot.link("right", third, at=(0.5, 0, 0), axis=axis, mass=mass, centre=(0, -0.16, 0.12))
        ends = robot.point("low", (0, -0.32, 0.24), on=right), robot.point("high", (0.5, 0, 0), on=top)
        robot.loop(*ends, dependent={second: 0, third: 0})
        robot.apply(first, robot.input("torque", 1, "N m"))
        task(robot, first)
        equations = equations_of_motion(robot)
        arguments = *equations.state, *equations.parameters
        evaluate = compiled_evaluator(arguments, equations.force, equations.definitions)
        return float(evaluate(np.array([[0.3, 2.0, 1.0]]))[0, 0, 0])

    assert force("loop_second") == pytest.approx(force("top"), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "slider_crank", "five_bar"])
def test_size_of_a_build_is_estimated_within_a_factor_of_three(name: str, built_unseen: Callable[[str], Path]) -> None:
    report = json.loads((built_unseen(name) / name / "build_report.json").read_text())
    built = sum(report["operations"].values())
    assert built / 3 < size(unseen(name)).total < 3 * built


@pytest.mark.slow
def test_a_page_draws_the_dependent_bars() -> None:
    assert "<svg" in html_page(unseen("four_bar"))


@pytest.mark.slow
def test_newton_closes_the_loop_to_rounding() -> None:
    robot = unseen("five_bar")
    (closure,) = closures(robot)
    equations = equations_of_motion(robot)
    gap = compiled_evaluator((*equations.state, *equations.parameters), closure.gap, equations.definitions)
    random = np.random.default_rng(4)
    at = np.hstack([random.uniform(-0.5, 0.5, (2000, 2)), np.zeros((2000, 2)), np.ones((2000, 4))])
    assert np.abs(gap(at)).max() < 1e-15
