"""Systems whose speeds are not rates of coordinates: against planar bodies and a tree, and through every kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

import modelgen
from modelgen import ModelError, Robot
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.numeric import samples
from modelgen.report.linearization import equilibrium
from modelgen.verification.checks import sample_points
from modelgen.verification.kernels import kernel_checks, power_balance
from modelgen.verification.mechanics import mechanics_checks
from modelgen.verification.reference import ExactReference
from tests.modelgen.support.systems import TASK, absolute, acceleration, evaluated, finished, proven, top

pytestmark = pytest.mark.slow


q1, q2, q3, u1, u2, u3, T = dynamicsymbols("q1 q2 q3 u1 u2 u3 T")
m1, m2, l1, l2, g, b, c, A, B, C = sp.symbols("m1 m2 l1 l2 g b c A B C")


def test_rods_with_an_absolute_speed_move_as_rods_with_joint_rates() -> None:
    theirs = Robot("rods")
    a = theirs.revolute("a", continuous=True, rate_limit=10)
    e = theirs.revolute("e", continuous=True, rate_limit=10)
    values = dict(m1=1.0, m2=0.8, l1=0.5, l2=0.4)
    torque = theirs.input("torque", 3, "N m")
    p = {
        name: theirs.parameter(name, value, "kg" if "m" in name else "m", tolerance=0.5)
        for name, value in values.items()
    }
    for mass, length, along, angle in (
        (p["m1"], p["l1"], (0, 0), a),
        (p["m2"], p["l2"], (p["l1"] * sp.sin(a), p["l1"] * sp.cos(a)), a + e),
    ):
        centre = (along[0] + length / 2 * sp.sin(angle), along[1] + length / 2 * sp.cos(angle))
        theirs.body(mass, mass * length**2 / 12, centre, angle)
    theirs.apply(e, torque)
    theirs.damp(e, 0.3)
    theirs.damp(a, 0.2)
    finished(theirs)

    ours = Robot("rods")
    angles = [ours.revolute("a", continuous=True, rate_limit=10), ours.revolute("e", continuous=True)]
    lower = ours.speed("lower", limit=20, unit="rad/s", meaning="absolute rate of the lower rod")
    torque = ours.input("torque", 3, "N m")
    parameters = {
        symbol: ours.parameter(symbol.name, values[symbol.name], "kg" if symbol in (m1, m2) else "m", tolerance=0.5)
        for symbol in (m1, m2, l1, l2)
    }
    ours.mechanics(
        absolute(),
        coordinates={q1: angles[0], q2: angles[1]},
        speeds={u2: lower},
        parameters={**parameters, b: 0.2, c: 0.3, g: 9.81},
        inputs={T: torque},
    )
    finished(ours)
    assert [state.name for state in metadata(ours).states] == ["a", "e", "a_rate", "lower"]

    x, theta = samples(theirs, 30, seed=5)
    expected = acceleration(theirs, x, theta, [1.5])
    turned = x.copy()
    turned[:, 3] += x[:, 2]
    ours_vdot = acceleration(ours, turned, theta, [1.5])
    np.testing.assert_allclose(ours_vdot[:, 0], expected[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours_vdot[:, 1] - ours_vdot[:, 0], expected[:, 1], rtol=1e-9, atol=1e-9)
    rates = evaluated(ours, turned, theta)[0][..., 0]
    np.testing.assert_allclose(rates, x[:, 2:], atol=1e-12)
    cost = equations_of_motion(ours).state_cost  # contains the rate of `a` and the speed `lower`, as written
    assert cost.free_symbols == {*angles, angles[0].rate, lower}
    checks = proven(ours)
    assert checks["Mdot - 2C skew"].error is None
    assert (checks["Lagrange's equations hold"].error or 0.0) < 1e-13


@pytest.fixture(scope="module")
def gyro() -> Robot:
    robot = Robot("gyro", "A heavy top on a ball joint")
    angles = [robot.revolute(name, limit=1.2) for name in ("roll", "pitch")]
    angles.append(robot.revolute("yaw", continuous=True))
    speeds = [robot.speed(f"omega_{axis}", limit=10, unit="rad/s") for axis in "xyz"]
    mass = robot.parameter("mass", 1.2, "kg", tolerance=0.5)
    length = robot.parameter("length", 0.4, "m", tolerance=0.5)
    robot.mechanics(
        top(),
        coordinates=dict(zip((q1, q2, q3), angles, strict=True)),
        speeds=dict(zip((u1, u2, u3), speeds, strict=True)),
        parameters={m1: mass, l1: length, A: 0.02, B: 0.03, C: 0.01, g: 9.81, c: 0.1},
        inputs={T: robot.input("torque", 2, "N m")},
    )
    return finished(robot)


def axes(x: np.ndarray) -> np.ndarray:
    """W with omega = W(q) qdot in the axes of the body: a turn about x, then the new y, then the newest z."""
    _, pitch, yaw = x[:3]
    return np.array(
        [
            [np.cos(pitch) * np.cos(yaw), np.sin(yaw), 0],
            [-np.cos(pitch) * np.sin(yaw), np.cos(yaw), 0],
            [np.sin(pitch), 0, 1],
        ]
    )


def test_a_top_with_body_rates_moves_as_a_tree_with_angles(gyro: Robot) -> None:
    tree = Robot("gyro")
    roll, pitch = (tree.revolute(name, limit=1.2, rate_limit=10) for name in ("roll", "pitch"))
    yaw = tree.revolute("yaw", continuous=True, rate_limit=10)
    mass = tree.parameter("mass", 1.2, "kg", tolerance=0.5)
    length = tree.parameter("length", 0.4, "m", tolerance=0.5)
    first = tree.link("first", roll, axis="x")
    second = tree.link("second", pitch, on=first, axis="y")
    tree.link("top", yaw, on=second, axis="z", mass=mass, centre=(0, 0, length), inertia=(0.02, 0.03, 0.01))
    torque = tree.input("torque", 2, "N m")
    # The body's x axis turns by W[0] . qdot; c (omega . d omega) in the angles is c W'W qdot.
    W = sp.Matrix(
        [
            [sp.cos(pitch) * sp.cos(yaw), sp.sin(yaw), 0],
            [-sp.cos(pitch) * sp.sin(yaw), sp.cos(yaw), 0],
            [sp.sin(pitch), 0, 1],
        ]
    )
    losses = -0.1 * W.T * W * sp.Matrix([roll.rate, pitch.rate, yaw.rate])
    for row, angle in enumerate((roll, pitch, yaw)):
        tree.apply(angle, W[0, row] * torque + losses[row])
    finished(tree)

    x, theta = samples(tree, 20, seed=6)
    x[:, 3:] /= 5
    expected = acceleration(tree, x, theta, [0.7])
    turned = x.copy()
    turned[:, 3:] = [axes(state) @ state[3:] for state in x]
    omega_dot = acceleration(gyro, turned, theta, [0.7])
    for state, theirs, ours in zip(x, expected, omega_dot, strict=True):
        step = 1e-6
        ahead, behind = (axes(state[:3] + sign * step * state[3:]) for sign in (1, -1))
        omega = axes(state) @ theirs + (ahead - behind) / (2 * step) @ state[3:]
        np.testing.assert_allclose(ours, omega, rtol=1e-6, atol=1e-6)
    rates = evaluated(gyro, turned, theta)[0][..., 0]
    np.testing.assert_allclose(rates, x[:, 3:], atol=1e-10)


def test_solved_kinematics_divide_only_where_the_angles_are_singular(gyro: Robot) -> None:
    """SymPy's own elimination also divides by cos(yaw)."""

    def divisors(parts: Any) -> list[Any]:
        return [power.base for part in parts for power in part.atoms(sp.Pow) if power.exp.is_negative]

    assert any(base.has(sp.cos(q3)) for base in divisors(top().kindiffdict().values()))
    assert gyro.system is not None
    bases = divisors([*gyro.system.rates.values(), *gyro.system.force])
    assert bases
    assert not any(base.has(gyro.joints[2].symbol) for base in bases)


def test_verification_finds_wrong_rates(gyro: Robot) -> None:
    assert gyro.system is not None
    rates = {rate: value * sp.Float("1.001") for rate, value in gyro.system.rates.items()}
    system, gyro.system = gyro.system, replace(gyro.system, rates=rates)
    checks = mechanics_checks(gyro, equations_of_motion(gyro), sample_points(gyro, 16))
    gyro.system = system
    assert "Lagrange's equations hold" in {check.what for check in checks if not check.passed}


def belt(uncertain: bool = False) -> Robot:
    """A mass on a spring. Its speed is relative to a moving belt."""
    N, origin = ReferenceFrame("N"), Point("O")
    origin.set_vel(N, 0)
    mass = origin.locatenew("P", q1 * N.x)
    mass.set_vel(N, (u1 + b) * N.x)
    method = KanesMethod(N, [q1], [u1], kd_eqs=[q1.diff() - u1 - b])
    method.kanes_equations([Particle("p", mass, m1)], [(mass, T * N.x)])
    robot = Robot("belt")
    x, slip = robot.prismatic("x", limit=1), robot.speed("slip", limit=3, unit="m/s")
    speed = robot.parameter("belt", 0.5, "m/s", **({"tolerance": 0.1} if uncertain else {"fixed": True}))
    parameters = {m1: robot.parameter("mass", 1, "kg", tolerance=0.1), b: speed}
    robot.mechanics(
        method, coordinates={q1: x}, speeds={u1: slip}, parameters=parameters, inputs={T: robot.input("F", 3, "N")}
    )
    robot.spring(x, 1.0)
    robot.task(state_cost=x**2 + slip**2, **TASK)
    return robot


def test_a_parameter_only_in_the_kinematics_changes_the_jacobians(tmp_path: Path) -> None:
    build_artifact(belt(uncertain=True), tmp_path)
    slope = modelgen.load("belt", directory=tmp_path, backend="casadi").jacobians(np.zeros((1, 2)))[4]
    np.testing.assert_allclose(slope[0], [[1, 0], [0, 0]], atol=1e-15)


def test_a_state_that_moves_at_zero_speeds_is_not_an_equilibrium(tmp_path: Path) -> None:
    build_artifact(belt(), tmp_path)
    with pytest.raises(ModelError, match=r"`x`.* 0\.5 .*`belt`"):
        equilibrium(modelgen.load("belt", directory=tmp_path), {})


def test_kernels_of_a_robot_with_other_speeds_pass_every_check(gyro: Robot, tmp_path: Path) -> None:
    build_artifact(gyro, tmp_path)
    equations, points = equations_of_motion(gyro), sample_points(gyro, 8)
    kernels = modelgen.load("gyro", backend="casadi", directory=tmp_path)
    reference = ExactReference(equations).quantities(points.x, points.u, points.costate, points.theta, points.w)
    checks = kernel_checks(kernels, "casadi", reference, points, 1e-9)
    checks.append(power_balance(gyro, equations, kernels))
    assert len(checks) > 10
    assert not [check for check in checks if not check.passed]
