"""Systems of sympy.physics.mechanics that are refused, and their error messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import sympy as sp
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from modelgen import ModelError, Robot
from modelgen.derivation.derive import equations_of_motion
from tests.modelgen.support.systems import absolute, cartpole, finished, joined, kane, proven, top

q1, q2, q3, u1, u2, u3, F, T = dynamicsymbols("q1 q2 q3 u1 u2 u3 F T")
m1, m2, l1, g, b, c, A, B, C = sp.symbols("m1 m2 l1 g b c A B C")
TIME = dynamicsymbols._t


def rejects(words: Sequence[str], action: Callable[[], object]) -> None:
    """Check that the action raises a ModelError that names this file or a helper's, and every word."""
    with pytest.raises(ModelError) as caught:
        action()
    assert "systems.py" in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.slow
def test_symbols_missing_from_the_mappings_are_named() -> None:
    other = sp.Symbol("mass_of_cart")
    rejects(["m1", "robot.parameter"], lambda: cartpole(kane(), parameters={m2: 1, l1: 1, b: 1, c: 1, g: 9.81}))
    assumed = {sp.Symbol("m1", positive=True): 1, m2: 1, l1: 1, b: 1, c: 1, g: 9.81}
    rejects(["another symbol `m1`"], lambda: cartpole(kane(), parameters=assumed))
    rejects(["F(t)", "inputs={F:"], lambda: cartpole(kane(), inputs={}))
    rejects(["q1(t)", "robot.revolute"], lambda: cartpole(kane(), coordinates={}))
    rejects(["`mass_of_cart`"], lambda: cartpole(kane(), parameters={m1: other}))
    rejects(["int", "System", "KanesMethod", "LagrangesMethod"], lambda: cartpole(3))
    robot, cart, pole = cartpole(kane())
    rejects(["twice"], lambda: robot.mechanics(kane(), coordinates={q1: cart, q2: pole}))
    rejects(["coordinates={q1(t): ...} is 3"], lambda: Robot("r").mechanics(kane(), coordinates={q1: 3}))


def bare(coordinates: int = 2) -> tuple[Robot, list[Any]]:
    """A robot with angles and nothing else, and the angles."""
    robot = Robot("bare")
    q = [robot.revolute(f"q{i}", limit=1, rate_limit=1) for i in range(coordinates)]
    return robot, q


def test_constraints_of_coordinates_and_of_lagrange_are_refused() -> None:
    N = ReferenceFrame("N")
    held = KanesMethod(
        N, [q1], [u1], [q1.diff() - u1, q2.diff() - u2],
        q_dependent=[q2], configuration_constraints=[q1 - sp.sin(q2)],
        u_dependent=[u2], velocity_constraints=[u1 - sp.cos(q2) * u2],
    )  # fmt: skip
    rolling = LagrangesMethod(q1.diff() ** 2 + q2.diff() ** 2, [q1, q2], nonhol_coneqs=[q1.diff() - l1 * q2.diff()])
    loop = joined()
    loop.add_holonomic_constraints(q1 - l1 * sp.sin(q2))
    for system, advice in ((held, "robot.loop"), (rolling, "KanesMethod"), (loop, "robot.loop")):
        robot, (first, second) = bare()
        rejects(
            ["constraint", advice],
            partial(robot.mechanics, system, coordinates={q1: first, q2: second}),
        )


def sliding(constraints: list[sp.Expr]) -> KanesMethod:
    """A point in a plane whose second speed follows from the first."""
    N, point = ReferenceFrame("N"), Point("P")
    point.set_vel(N, u1 * N.x + u2 * N.y)
    method = KanesMethod(
        N, [q1, q2], [u1], [q1.diff() - u1, q2.diff() - u2], u_dependent=[u2], velocity_constraints=constraints
    )
    method.kanes_equations([Particle("p", point, m1)], [(point, F * N.x)])
    return method


def test_constraints_that_do_not_vanish_at_rest_are_refused() -> None:
    robot, (first, second) = bare()
    rejects(
        ["do not vanish at rest"],
        partial(robot.mechanics, sliding([u1 - l1 * u2 + 1]), coordinates={q1: first, q2: second}),
    )


def disc(contact: bool) -> tuple[Any, list[Any]]:
    """A disc with yaw, lean and spin: it rolls on a plane (SymPy's documentation), or hangs at its contact point."""
    N, Y, L, R = (ReferenceFrame(name) for name in "NYLR")
    Y.orient_axis(N, q1, N.z)
    L.orient_axis(Y, q2, Y.x)
    R.orient_axis(L, q3, L.y)
    kinematics = [q1.diff() - u1, q2.diff() - u2, q3.diff() - u3]
    turning = u1 * N.z + u2 * Y.x + u3 * L.y
    R.set_ang_vel(N, turning)
    L.set_ang_vel(N, u1 * N.z + u2 * Y.x)
    contact_point = Point("C")
    contact_point.set_vel(N, 0)
    centre = contact_point.locatenew("Dmc", l1 * L.z)
    centre.v2pt_theory(contact_point, N, R if contact else L)
    inertia_of = inertia(L, m1 * l1**2 / 4, m1 * l1**2 / 2, m1 * l1**2 / 4)
    body = RigidBody("disc", centre, R, m1, (inertia_of, centre))
    method = KanesMethod(N, [q1, q2, q3], [u1, u2, u3], kinematics)
    method.kanes_equations([body], [(centre, -m1 * g * N.z)])
    return method, [q1, q2, q3]


@pytest.mark.slow
def test_rolling_hidden_in_a_velocity_is_known_and_a_held_point_hides_none() -> None:
    values = {m1: 1, l1: 0.5, g: 9.81}
    for contact in (True, False):
        method, q = disc(contact)
        robot, own = bare(3)
        robot.mechanics(method, coordinates=dict(zip(q, own, strict=True)), parameters=values)
        assert robot.system
        assert robot.system.rolls == contact


def test_time_and_prescribed_motion_are_refused() -> None:
    N, point = ReferenceFrame("N"), Point("P")
    point.set_vel(N, q1.diff() * N.x)
    for push, words in (
        (F * sp.sin(TIME), ["depends on time"]),
        (F + q3, ["q3(t)", "inputs={q3:", "robot.lag(command, seconds=...)", "robot.state(", "robot.flow("]),
        (F + q3.diff(), ["Derivative(q3(t), t)"]),
    ):
        method = LagrangesMethod(m1 * q1.diff() ** 2 / 2, [q1], forcelist=[(point, push * N.x)], frame=N)
        robot = Robot("r")
        s = robot.prismatic("s", limit=1, rate_limit=1)
        force = robot.input("force", 1, "N")
        rejects(
            words,
            partial(robot.mechanics, method, coordinates={q1: s}, parameters={m1: 1}, inputs={F: force}),
        )


def test_a_kanes_method_without_bodies_is_refused() -> None:
    method = KanesMethod(ReferenceFrame("N"), [q1], [u1], [q1.diff() - u1])
    robot, (q,) = bare(1)
    rejects(["kanes_equations(bodies, loads)"], lambda: robot.mechanics(method, coordinates={q1: q}))


def test_auxiliary_speeds_are_refused() -> None:
    robot, (q,) = bare(1)
    uaux = KanesMethod(ReferenceFrame("N"), [q1], [u1], [q1.diff() - u1], u_auxiliary=[u2])
    rejects(["u2(t)"], lambda: robot.mechanics(uaux, coordinates={q1: q}))


@pytest.mark.slow
def test_superfluous_and_missing_speeds_are_refused() -> None:
    robot, cart, pole = cartpole(kane())
    speed = robot.speed("speed", limit=1, unit="rad/s")
    rejects(["`speed`", "remove the line"], lambda: finished(robot))
    rejects(["speeds={...}", "u1(t)"], cartpole_with_speed)
    assert speed in robot.symbols.values()
    assert cart in robot.symbols.values()
    assert pole in robot.symbols.values()
    robot, angles = bare(2)
    rejects(
        ["speeds={...}", "u2(t)", "robot.speed"],
        lambda: robot.mechanics(absolute(), coordinates={q1: angles[0], q2: angles[1]}),
    )


def cartpole_with_speed() -> None:
    robot = Robot("r")
    pair = [robot.revolute(name, limit=1, rate_limit=1) for name in ("a", "b")]
    robot.mechanics(
        kane(), coordinates=dict(zip((q1, q2), pair, strict=True)), speeds={u1: robot.speed("s", limit=1, unit="1")}
    )


def test_a_coordinate_without_a_rate_limit_is_refused() -> None:
    robot = Robot("r")
    robot.prismatic("s", limit=1)
    robot.input("force", 1, "N")
    rejects(["`s`", "rate_limit", "m/s"], lambda: finished(robot))


@pytest.mark.slow
def test_forces_may_be_added_but_no_body_where_speeds_are_not_rates() -> None:
    robot = Robot("gyro")
    angles = [robot.revolute(name, limit=1.2) for name in ("roll", "pitch", "yaw")]
    speeds = [robot.speed(f"omega_{axis}", limit=10, unit="rad/s") for axis in "xyz"]
    arguments = {
        "coordinates": dict(zip((q1, q2, q3), angles, strict=True)),
        "speeds": dict(zip((u1, u2, u3), speeds, strict=True)),
        "parameters": dict.fromkeys((m1, l1, A, B, C, g, c), 1.0),
    }
    robot.mechanics(top(), **arguments, inputs={T: robot.input("torque", 2, "N m")})
    robot.damp(angles[0], 0.2)
    robot.spring(angles[1], 3.0)
    finished(robot)
    proven(robot)
    robot.rotor(angles[0], 0.1)
    rejects(["`roll`"], lambda: equations_of_motion(robot))
    assert robot.system is not None
    assert robot.system.own
