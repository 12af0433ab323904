"""Rolling without slip against Lagrange multipliers, Kane's equations and closed forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp
from numpy.typing import NDArray
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from modelgen import LogCos, ModelError, Robot, load
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.numeric import compiled_evaluator
from modelgen.statement.sympy_checks import unseen_bodies
from tests.modelgen.support.systems import proven
from tests.modelgen.support.unseen import unseen

Array = NDArray[np.float64]


def task(robot: Robot, cost: sp.Expr) -> None:
    robot.task(
        state_cost=cost,
        action_cost=LogCos(0.1),
        start={},
        horizon=3,
        weight_at_horizon=0.6,
        control_rate=100,
    )


@pytest.mark.slow
def test_car_equals_lagrange_multipliers(built_unseen: Callable[[str], Path]) -> None:
    """M q'' = f + J' lambda with J q'' = -Jdot q', J of no slip at both axles, in (x, y, yaw, steer)."""
    robot = load("rolling_car", directory=built_unseen("rolling_car"))
    random = np.random.default_rng(1)
    L, m, drag = 0.3, 3.0, 1.0
    for _ in range(40):
        x, y, yaw, steer, steer_rate, speed = random.uniform([-3, -1.5, -1, -0.5, -3, -2], [3, 1.5, 1, 0.5, 3, 2])
        state = dict(x=x, y=y, yaw=yaw, steer=steer, steer_rate=steer_rate, speed=speed)
        u = random.uniform([-6, -0.1], [6, 0.1])
        c, s = np.cos(yaw), np.sin(yaw)
        yaw_rate = speed * np.tan(steer) / L
        v = np.array([speed * c, speed * s, yaw_rate, steer_rate])
        a = L / 2
        M = np.array(
            [
                [m, 0, -m * a * s, 0],
                [0, m, m * a * c, 0],
                [-m * a * s, m * a * c, m * a**2 + 0.03 + 0.002, 0.002],
                [0, 0, 0.002, 0.002],
            ]
        )
        force = np.array([m * a * c * yaw_rate**2, m * a * s * yaw_rate**2, 0, u[1] - 0.03 * steer_rate])
        force[:2] += (u[0] - drag * speed) * np.array([c, s])
        sf, cf = np.sin(yaw + steer), np.cos(yaw + steer)
        J = np.array([[s, -c, 0, 0], [sf, -cf, -L * np.cos(steer), 0]])
        front = yaw_rate + steer_rate
        Jdot = np.array(
            [[c * yaw_rate, s * yaw_rate, 0, 0], [cf * front, sf * front, L * np.sin(steer) * steer_rate, 0]]
        )
        whole = np.block([[M, J.T], [J, np.zeros((2, 2))]])
        acceleration = np.linalg.solve(whole, np.concatenate([force, -Jdot @ v]))[:4]
        found = robot.dynamics(np.array([state[name] for name in robot.state_names]), u)
        by_name = dict(zip(robot.state_names, found, strict=True))
        assert by_name["x"] == pytest.approx(v[0], rel=1e-12, abs=1e-12)
        assert by_name["yaw"] == pytest.approx(yaw_rate, rel=1e-12, abs=1e-12)
        assert by_name["speed"] == pytest.approx(c * acceleration[0] + s * acceleration[1], rel=1e-9, abs=1e-9)
        assert by_name["steer_rate"] == pytest.approx(acceleration[3], rel=1e-9, abs=1e-9)


def test_unicycle_with_an_offset_mass_has_its_nonholonomic_forces() -> None:
    """m vdot = push - 2 v + m d w^2 and (I + m d^2) wdot = turn - 0.05 w - m d v w (Fierro and Lewis, 1998)."""
    equations = equations_of_motion(unseen("unicycle"))
    matrix = equations.mass_matrix.row_join(equations.force)
    found = compiled_evaluator((*equations.state, *equations.parameters), matrix, equations.definitions)
    at = dict(x=0.3, y=-0.2, yaw=0.7, speed=0.6, yaw_rate=-1.5, mass=2, inertia=0.02, offset=0.05)
    row = [at[symbol.name] for symbol in (*equations.state, *equations.parameters)]
    names = [symbol.name for symbol in equations.velocities]
    v, w = names.index("speed"), names.index("yaw_rate")
    M, f = found(np.array([row]))[0, :, :2], found(np.array([row]))[0, :, 2]
    np.testing.assert_allclose([M[v, v], M[w, w], M[v, w]], [2, 0.02 + 2 * 0.05**2, 0], atol=1e-12)
    expected = [-2 * 0.6 + 2 * 0.05 * 1.5**2, 0.05 * 1.5 + 2 * 0.05 * 0.6 * 1.5]
    np.testing.assert_allclose([f[v], f[w]], expected, rtol=1e-12)


q1, q2, q3, q4, q5 = dynamicsymbols("q1 q2 q3 q4 q5")
u1, u2, u3, u4, u5 = dynamicsymbols("u1 u2 u3 u4 u5")
r, m, g = sp.symbols("r m g", positive=True)


def disc_body(velocity: str) -> tuple[Any, ReferenceFrame, ReferenceFrame, Point, Point]:
    """The disc of SymPy's documentation (yaw q1, lean q2, spin q3). velocity: of its contact point."""
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    R.set_ang_vel(N, u1 * L.x + u2 * L.y + u3 * L.z)
    contact = Point("C")
    contact.set_vel(N, u4 * L.x + u5 * Y.z.cross(L.x) if velocity == "free" else 0 * N.x)
    centre = contact.locatenew("Dmc", r * L.z)
    centre.v2pt_theory(contact, N, R)
    I = inertia(L, m * r**2 / 4, m * r**2 / 2, m * r**2 / 4)
    return RigidBody("disc", centre, R, m, (I, centre)), N, L, contact, centre


def hidden_disc() -> KanesMethod:
    """'A rolling disc' of SymPy's documentation: the contact point has no velocity."""
    body, N, L, _, centre = disc_body("hidden")
    Y_rate = q1.diff() * N.z + q2.diff() * L.x + q3.diff() * L.y
    kinematics = [body.frame.ang_vel_in(N).dot(axis) - Y_rate.dot(axis) for axis in L]
    method = KanesMethod(N, [q1, q2, q3], [u1, u2, u3], kinematics)
    method.kanes_equations([body], [(centre, -m * g * N.z)])
    return method


def constrained_disc() -> KanesMethod:
    """'A rolling disc, with constraint forces': q4 and q5 are the place of the centre, u4 and u5 follow."""
    body, N, L, contact, centre = disc_body("free")
    Y_rate = q1.diff() * N.z + q2.diff() * L.x + q3.diff() * L.y
    kinematics = [body.frame.ang_vel_in(N).dot(axis) - Y_rate.dot(axis) for axis in L]
    kinematics += [u4 - q4.diff(), u5 - q5.diff()]
    # q4 along the heading and q5 across it are quasi-coordinates of the contact's slip
    slip = [contact.vel(N).dot(L.x), contact.vel(N).dot(N.z.cross(L.x))]
    method = KanesMethod(
        N, [q1, q2, q3, q4, q5], [u1, u2, u3], kinematics, u_dependent=[u4, u5], velocity_constraints=slip
    )
    method.kanes_equations([body], [(centre, -m * g * N.z)])
    return method


def rolling_disc(method: KanesMethod, count: int) -> Robot:
    robot = Robot("disc")
    yaw = robot.revolute("yaw", continuous=True)
    lean = robot.revolute("lean", limit=1.2, rate_limit=5)
    spin = robot.revolute("spin", continuous=True)
    others = [robot.prismatic(name, limit=2) for name in ("along", "across")[: count - 3]]
    wy, wz = robot.speed("wy", limit=10, unit="rad/s"), robot.speed("wz", limit=10, unit="rad/s")
    push = robot.input("push", 1, "N m")
    robot.mechanics(
        method,
        coordinates=dict(zip([q1, q2, q3, q4, q5], [yaw, lean, spin, *others], strict=False)),
        parameters={m: robot.parameter("mass", 2, "kg", tolerance=0.3), r: 0.4, g: 9.81},
        speeds={u2: wy, u3: wz},
    )
    robot.apply(lean, push)
    task(robot, lean**2 + lean.rate**2 + wy**2 + wz**2)
    return robot


@pytest.mark.slow
@pytest.mark.parametrize(("make", "count"), [(hidden_disc, 3), (constrained_disc, 5)])
def test_rolling_disc_equals_kanes_equations_of_its_page(make: Any, count: int) -> None:
    """The accelerations that SymPy's page gives, rolldisc_example_kane: in lean q2 and speeds u1, u2, u3."""
    robot = rolling_disc(make(), count)
    checks = proven(robot)
    assert "Kane's equations hold" in checks["Lagrange's equations hold"].note
    equations = equations_of_motion(robot)
    matrix = equations.mass_matrix.row_join(equations.force)
    found = compiled_evaluator((*equations.state, *equations.parameters), matrix, equations.definitions)
    random = np.random.default_rng(5)
    for _ in range(10):
        lean, lean_rate, wy, wz = random.uniform([-1, -3, -5, -5], [1, 3, 5, 5])
        at = dict(yaw=0.3, lean=lean, spin=2, along=0.1, across=0.2, lean_rate=lean_rate, wy=wy, wz=wz, mass=2)
        row = np.array([[at[symbol.name] for symbol in (*equations.state, *equations.parameters)]])
        values = found(row)[0]
        vdot = dict(
            zip([s.name for s in equations.velocities], np.linalg.solve(values[:, :3], values[:, 3]), strict=True)
        )
        radius = 0.4
        expected = [
            (4 * 9.81 * np.sin(lean) + 6 * radius * wy * wz - radius * wz**2 * np.tan(lean)) / (5 * radius),
            -2 * lean_rate * wz / 3,
            lean_rate * (-2 * wy + wz * np.tan(lean)),
        ]
        np.testing.assert_allclose([vdot["lean_rate"], vdot["wy"], vdot["wz"]], expected, rtol=1e-9, atol=1e-9)


def test_rolling_in_a_lagrangian_is_refused_or_warned_of() -> None:
    body, N, _, _, _ = disc_body("hidden")
    turned = {u1: q2.diff(), u2: q3.diff() + q1.diff() * sp.sin(q2), u3: q1.diff() * sp.cos(q2)}
    energy = body.kinetic_energy(N).xreplace(turned) - m * g * r * sp.cos(q2)
    robot = Robot("lagrange")
    angles = [robot.revolute(name, limit=1, rate_limit=5) for name in ("yaw", "lean", "spin")]
    add = partial(
        robot.mechanics,
        coordinates=dict(zip([q1, q2, q3], angles, strict=True)),
        parameters={m: robot.parameter("mass", 2, "kg", tolerance=0.3), r: 0.4, g: 9.81},
    )
    where = Point("P")
    where.set_vel(N, 0.4 * q3.diff() * (sp.cos(q1) * N.x + sp.sin(q1) * N.y))
    pushed = LagrangesMethod(energy, [q1, q2, q3], forcelist=[(where, N.x)], frame=N)
    with pytest.raises(ModelError, match=r"point P .*KanesMethod"):
        add(pushed)
    bare = LagrangesMethod(energy, [q1, q2, q3])
    assert "does not name its bodies" in unseen_bodies(bare)
    add(bare)
    assert robot.system
    assert "does not name its bodies" in robot.system.warning


def test_rolling_of_a_frame_is_found() -> None:
    """A ball on a plane: its angular velocity follows from the place of its centre."""
    N, B = ReferenceFrame("N"), ReferenceFrame("B")
    B.set_ang_vel(N, (q2.diff() * -N.x + q1.diff() * N.y) / r)
    centre = Point("O")
    centre.set_vel(N, q1.diff() * N.x + q2.diff() * N.y)
    method = LagrangesMethod(
        m * (q1.diff() ** 2 + q2.diff() ** 2) / 2, [q1, q2], forcelist=[(B, N.x), (centre, N.y)], frame=N
    )
    robot = Robot("ball")
    x, y = (robot.prismatic(name, limit=1, rate_limit=1) for name in "xy")
    with pytest.raises(ModelError, match=r"frame B .*KanesMethod"):
        robot.mechanics(method, coordinates={q1: x, q2: y}, parameters={m: 1, r: 0.1})


def cart() -> tuple[Robot, Any, Any, Any, Any]:
    robot = Robot("cart")
    x, y = robot.prismatic("x", limit=1), robot.prismatic("y", limit=1)
    yaw = robot.revolute("yaw", limit=1, rate_limit=3)
    return robot, x, y, yaw, robot.speed("speed", limit=1, unit="m/s")


def test_bad_rates_are_refused() -> None:
    robot, x, y, yaw, speed = cart()
    for rates, words in (
        ({x: speed**2}, "unit|linear"),
        ({x: speed + 1.0}, "linear"),
        ({x: sp.Integer(0)}, "linear"),
        ({x: speed * yaw.rate}, "unit|linear|dimension|rad"),
        ({"x": speed}, "not a coordinate"),
        ({x: y.rate, y: speed}, "follows from other speeds itself"),
        ({}, "write {coordinate: rate"),
    ):
        with pytest.raises(ModelError, match=words):
            robot.roll(rates)  # type: ignore[arg-type]
    robot.roll({x: speed * sp.cos(yaw), y: speed * sp.sin(yaw)})
    with pytest.raises(ModelError, match="`x`"):
        robot.roll({x: speed})
    with pytest.raises(ModelError, match="`yaw` has a rate_limit"):
        robot.roll({yaw: speed / robot.parameter("length", 0.3, "m", tolerance=0.1)})


def test_a_kinetic_energy_holds_rates_and_no_declared_speed() -> None:
    robot, x, y, yaw, speed = cart()
    robot.roll({x: speed * sp.cos(yaw), y: speed * sp.sin(yaw)})
    robot.kinetic_energy(robot.parameter("mass", 1, "kg", tolerance=0.3) * speed**2 / 2)
    robot.apply(yaw, robot.input("turn", 1, "N m"))
    task(robot, x**2 + y**2 + yaw**2)
    with pytest.raises(ModelError, match="`speed`"):
        equations_of_motion(robot)


def test_more_speeds_than_coordinates_are_refused() -> None:
    robot = Robot("loose")
    x, y = (robot.prismatic(name, limit=1) for name in "xy")
    a, b, c = (robot.speed(name, limit=1, unit="m/s") for name in "abc")
    robot.roll({x: a * sp.cos(y) + b, y: b + c})
    robot.point_mass(1.0, (x, y, 0))
    robot.task(state_cost=x**2 + y**2, start={}, horizon=1, weight_at_horizon=0.5, control_rate=100)
    with pytest.raises(ModelError, match=r"2 .*3 .*a, b, c"):
        equations_of_motion(robot)


def test_a_motor_along_a_place_that_rolls() -> None:
    """Its torque falls with the speed of the place, which follows from that of the wheel: in closed form."""
    robot = Robot("wheel")
    place, turn = robot.prismatic("place", limit=2), robot.revolute("turn", limit=60, rate_limit=30)
    robot.roll({place: 0.05 * turn.rate})
    robot.body(1.0, 0.001, (place, 0.05), turn)
    robot.motor(place, robot.input("torque", 1, "N m"), gear=20.0, corner_speed=30.0)
    task(robot, place**2 + turn**2 + turn.rate**2)
    equations = equations_of_motion(robot)
    slope = compiled_evaluator(equations.state, equations.input_matrix)(np.array([[0.1, 2.0, 10.0]]))
    np.testing.assert_allclose(slope, [[[0.05 * 20 / np.sqrt(1 + (20 * 0.05 * 10 / 30) ** 2)]]])
