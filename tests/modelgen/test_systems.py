"""Systems of sympy.physics.mechanics as robots: against shipped robots, trees and Lagrange, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Lagrangian,
    Particle,
    PinJoint,
    Point,
    PrismaticJoint,
    ReferenceFrame,
    RigidBody,
    System,
    dynamicsymbols,
    inertia,
)

import modelgen
from modelgen import LogCos, ModelError, Robot
from modelgen.build import build_artifact
from modelgen.inspection import evaluator, inspect, samples
from modelgen.mechanics import equations_of_motion, metadata
from modelgen.modelfile import SHIPPED, content_hash, load
from modelgen.reference import Reference
from modelgen.verify import _points, energy_balance, kernel_checks, mechanics_checks

q1, q2, q3, u1, u2, u3, F, T = dynamicsymbols("q1 q2 q3 u1 u2 u3 F T")
m1, m2, l1, l2, g, b, c, A, B, C = sp.symbols("m1 m2 l1 l2 g b c A B C")
TIME = dynamicsymbols._t
TASK = {
    "action_cost": LogCos(1), "start": {}, "horizon": 5, "weight_at_horizon": 0.5, "control_rate": 125
}  # fmt: skip


def evaluated(robot, x, theta):
    """rates of q, M, force, input matrix at states and parameters."""
    equations = equations_of_motion(robot)
    inspect(robot, equations)
    parts = (equations.coordinate_rates, equations.mass_matrix, equations.force, equations.input_matrix)
    arguments = [*equations.state, *equations.parameters]
    return [evaluator(arguments, part, equations.definitions)(*x.T, *theta.T) for part in parts]


def acceleration(robot, x, theta, u):
    """vdot (N, n_v)."""
    _, M, force, inputs = evaluated(robot, x, theta)
    return np.linalg.solve(M, force + inputs @ np.asarray(u)[:, None])[..., 0]


def proven(robot):
    """The checks of mechanics pass; returns them by name."""
    equations = equations_of_motion(robot)
    checks = mechanics_checks(robot, equations, _points(robot, 16))
    assert all(check.passed for check in checks), checks
    return {check.what: check for check in checks}


def kane(speeds=(u1, u2), rates=(u1, u2)):
    """A cart and a pole by Kane: a script as a user has it."""
    N = ReferenceFrame("N")
    origin = Point("O")
    origin.set_vel(N, 0)
    hinge = origin.locatenew("C", q1 * N.x)
    hinge.set_vel(N, rates[0] * N.x)
    pole = N.orientnew("R", "Axis", (q2, N.y))
    pole.set_ang_vel(N, rates[1] * N.y)
    tip = hinge.locatenew("P", l1 * pole.z)
    tip.v2pt_theory(hinge, N, pole)
    bodies = [Particle("cart", hinge, m1), Particle("bob", tip, m2)]
    loads = [(hinge, (F - b * rates[0]) * N.x), (tip, -m2 * g * N.z), (pole, -c * rates[1] * N.y)]
    method = KanesMethod(N, [q1, q2], speeds, kd_eqs=[q1.diff() - rates[0], q2.diff() - rates[1]])
    method.kanes_equations(bodies, loads)
    return method


def lagrange():
    """The same by Lagrange."""
    N = ReferenceFrame("N")
    origin = Point("O")
    origin.set_vel(N, 0)
    hinge = origin.locatenew("C", q1 * N.x)
    hinge.set_vel(N, q1.diff() * N.x)
    pole = N.orientnew("R", "Axis", (q2, N.y))
    tip = hinge.locatenew("P", l1 * pole.z)
    tip.v2pt_theory(hinge, N, pole)
    bob = Particle("bob", tip, m2)
    bob.potential_energy = m2 * g * l1 * sp.cos(q2)
    loads = [(hinge, (F - b * q1.diff()) * N.x), (pole, -c * q2.diff() * N.y)]
    return LagrangesMethod(Lagrangian(N, Particle("cart", hinge, m1), bob), [q1, q2], forcelist=loads, frame=N)


def joined():
    """The same by joints, its equations not formed yet."""
    rail, cart, pole = RigidBody("rail"), RigidBody("cart", mass=m1), RigidBody("pole", mass=m2)
    pole.central_inertia = inertia(pole.frame, 0, 0, 0)
    system = System.from_newtonian(rail)
    system.add_joints(
        PrismaticJoint("slide", rail, cart, q1, u1, joint_axis=rail.x),
        PinJoint("hinge", cart, pole, q2, u2, child_point=-l1 * pole.z, joint_axis=cart.y),
    )
    system.apply_uniform_gravity(-g * rail.z)
    system.add_loads((cart.masscenter, (F - b * u1) * rail.x), (pole.frame, -c * u2 * rail.y))
    return system


def cartpole(system, **changed):
    """A robot like the shipped one, of any of these."""
    robot = Robot("cartpole")
    cart = robot.prismatic("cart", limit=0.5, rate_limit=5)
    pole = robot.revolute("pole", continuous=True, rate_limit=20)
    values = (("cart_mass", 0.57, "kg"), ("pole_mass", 0.127, "kg"), ("pole_half_length", 0.3365 / 2, "m"))
    values += (("cart_damping", 0.1, "N s/m"), ("pole_damping", 1e-3, "N m s"))
    parameters = [robot.parameter(name, value, unit, tolerance=0.5) for name, value, unit in values]
    stated = {
        "coordinates": {q1: cart, q2: pole},
        "parameters": {**dict(zip((m1, m2, l1, b, c), parameters, strict=True)), g: 9.81},
        "inputs": {F: robot.input("force", 12, "N")},
    }
    robot.mechanics(system, **{**stated, **changed})
    return robot, cart, pole


def finished(robot):
    """With a task."""
    coordinates = [joint.symbol for joint in robot.joints]
    cost = sum(sp.sin(q / 2) ** 2 + q.rate**2 for q in coordinates)
    robot.task(state_cost=cost, **TASK)
    return robot


@pytest.mark.parametrize("system", [kane, lagrange, joined])
def test_cartpole_is_the_shipped_one(system):
    robot = finished(cartpole(system())[0])
    shipped = load(str(SHIPPED / "cartpole.py"))
    x, theta = samples(shipped, 50, seed=4)
    for ours, theirs in zip(evaluated(robot, x, theta), evaluated(shipped, x, theta), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert metadata(robot).inputs[0].coordinate == "cart"
    assert proven(robot)["Mdot - 2C skew"].error is not None


def test_forces_and_bodies_are_added_to_a_system():
    robot, cart, pole = cartpole(kane())
    robot.spring(cart, robot.parameter("stiffness", 7, "N/m", tolerance=0.1))
    robot.rotor(pole, 0.01)
    finished(robot)
    plain = finished(cartpole(kane())[0])
    x, theta = samples(robot, 20, seed=4)
    _, M, force, _ = evaluated(robot, x, theta)
    _, M0, force0, _ = evaluated(plain, x, theta[:, :5])
    np.testing.assert_allclose(M - M0, np.tile(np.diag([0, 0.01]), (20, 1, 1)), atol=1e-12)
    np.testing.assert_allclose((force - force0)[:, 0, 0], -theta[:, 5] * x[:, 0], rtol=1e-12)
    proven(robot)


def absolute():
    """Two rods by Kane, the speeds their absolute rates: u1 = q1', u2 = q1' + q2'."""
    N = ReferenceFrame("N")
    origin = Point("O")
    origin.set_vel(N, 0)
    upper, lower = N.orientnew("U", "Axis", (q1, N.y)), N.orientnew("L", "Axis", (q1 + q2, N.y))
    upper.set_ang_vel(N, u1 * N.y)
    lower.set_ang_vel(N, u2 * N.y)
    elbow, first = origin.locatenew("E", l1 * upper.z), origin.locatenew("G1", l1 / 2 * upper.z)
    for point in (elbow, first):
        point.v2pt_theory(origin, N, upper)
    second = elbow.locatenew("G2", l2 / 2 * lower.z)
    second.v2pt_theory(elbow, N, lower)
    bodies = [
        RigidBody("upper", first, upper, m1, (inertia(upper, 0, m1 * l1**2 / 12, 0), first)),
        RigidBody("lower", second, lower, m2, (inertia(lower, 0, m2 * l2**2 / 12, 0), second)),
    ]
    torque = (T - c * (u2 - u1)) * N.y
    loads = [(first, -m1 * g * N.z), (second, -m2 * g * N.z), (lower, torque), (upper, -torque - b * u1 * N.y)]
    equations = [u1 - q1.diff(), u2 - q1.diff() - q2.diff()]
    method = KanesMethod(N, [q1, q2], [u1, u2], kd_eqs=equations)
    method.kanes_equations(bodies, loads)
    return method


def test_speeds_that_are_sums_of_rates_move_as_the_rates_do():
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
    found = acceleration(ours, turned, theta, [1.5])
    np.testing.assert_allclose(found[:, 0], expected[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[:, 1] - found[:, 0], expected[:, 1], rtol=1e-9, atol=1e-9)
    rates = evaluated(ours, turned, theta)[0][..., 0]
    np.testing.assert_allclose(rates, x[:, 2:], atol=1e-12)
    cost = equations_of_motion(ours).state_cost  # written in the rates, kept in the speeds
    assert cost.free_symbols == {*angles, angles[0].rate, lower}
    checks = proven(ours)
    assert checks["Mdot - 2C skew"].error is None
    assert checks["Lagrange's equations hold"].error < 1e-13


def top():
    """A heavy body on a ball joint, by Kane, with the angular velocity in its own axes for speeds."""
    N, body = ReferenceFrame("N"), ReferenceFrame("B")
    body.orient_body_fixed(N, (q1, q2, q3), "123")
    omega = body.ang_vel_in(N)
    kinematics = [omega.dot(axis) - u for axis, u in zip((body.x, body.y, body.z), (u1, u2, u3), strict=True)]
    body.set_ang_vel(N, u1 * body.x + u2 * body.y + u3 * body.z)
    pivot = Point("O")
    pivot.set_vel(N, 0)
    centre = pivot.locatenew("G", l1 * body.z)
    centre.v2pt_theory(pivot, N, body)
    bodies = [RigidBody("top", centre, body, m1, (inertia(body, A, B, C), centre))]
    loads = [(centre, -m1 * g * N.z), (body, T * body.x - c * (u1 * body.x + u2 * body.y + u3 * body.z))]
    return KanesMethod(N, [q1, q2, q3], [u1, u2, u3], kd_eqs=kinematics, bodies=bodies, forcelist=loads)


@pytest.fixture(scope="module")
def gyro():
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


def axes(x):
    """W with omega = W(q) qdot, the rows the body's axes: a turn about x, then the new y, then the newest z."""
    _, pitch, yaw = x[:3]
    return np.array(
        [
            [np.cos(pitch) * np.cos(yaw), np.sin(yaw), 0],
            [-np.cos(pitch) * np.sin(yaw), np.cos(yaw), 0],
            [np.sin(pitch), 0, 1],
        ]
    )


def test_body_rates_move_as_a_tree_in_angles_does(gyro):
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
    turned[:, 3:] = [axes(each) @ each[3:] for each in x]
    found = acceleration(gyro, turned, theta, [0.7])
    for state, theirs, ours in zip(x, expected, found, strict=True):
        step = 1e-6
        ahead, behind = (axes(state[:3] + sign * step * state[3:]) for sign in (1, -1))
        omega = axes(state) @ theirs + (ahead - behind) / (2 * step) @ state[3:]
        np.testing.assert_allclose(ours, omega, rtol=1e-6, atol=1e-6)
    rates = evaluated(gyro, turned, theta)[0][..., 0]
    np.testing.assert_allclose(rates, x[:, 3:], atol=1e-10)


def test_kinematics_are_singular_only_where_the_angles_are(gyro):
    """SymPy's elimination divides by cos(yaw) too."""

    def divisors(parts):
        return [power.base for part in parts for power in part.atoms(sp.Pow) if power.exp.is_negative]

    assert any(base.has(sp.cos(q3)) for base in divisors(top().kindiffdict().values()))
    found = divisors([*gyro.system.rates.values(), *gyro.system.force])
    assert found
    assert not any(base.has(gyro.joints[2].symbol) for base in found)


def test_a_wrong_system_is_found_out(gyro):
    robot = finished(cartpole(kane())[0])
    for broken, names in (
        (replace(robot.system, force=robot.system.force * 1.001), {"Lagrange's equations hold"}),
        (
            replace(robot.system, mass_matrix=robot.system.mass_matrix * 1.001),
            {"mass matrix is that of the kinetic energy"},
        ),
    ):
        system, robot.system = robot.system, broken
        checks = mechanics_checks(robot, equations_of_motion(robot), _points(robot, 16))
        robot.system = system
        assert names <= {check.what for check in checks if not check.passed}
    rates = {rate: value * sp.Float("1.001") for rate, value in gyro.system.rates.items()}
    system, gyro.system = gyro.system, replace(gyro.system, rates=rates)
    checks = mechanics_checks(gyro, equations_of_motion(gyro), _points(gyro, 16))
    gyro.system = system
    assert "Lagrange's equations hold" in {check.what for check in checks if not check.passed}


def test_artifact_with_other_speeds_is_proven(gyro, tmp_path):
    build_artifact(gyro, tmp_path)
    equations, points = equations_of_motion(gyro), _points(gyro, 8)
    kernels = modelgen.load("gyro", backend="casadi", directory=tmp_path)
    reference = Reference(equations).quantities(points.x, points.u, points.costate, points.theta)
    checks = kernel_checks(kernels, "casadi", reference, points, 1e-9)
    checks.append(energy_balance(gyro, equations, kernels))
    assert len(checks) > 10
    assert not [check for check in checks if not check.passed]


def test_content_changes_with_the_system():
    hashes = {
        content_hash(finished(cartpole(method())[0])) for method in (kane, lambda: kane(rates=(u1, u2)), lagrange)
    }
    assert len(hashes) == 2


def rejects(words, action):
    with pytest.raises(ModelError) as caught:
        action()
    assert "test_systems.py" in str(caught.value)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_mistakes_name_what_is_missing():
    other = sp.Symbol("mass_of_cart")
    rejects(["m1", "robot.parameter"], lambda: cartpole(kane(), parameters={m2: 1, l1: 1, b: 1, c: 1, g: 9.81}))
    rejects(["F(t)", "inputs={F:"], lambda: cartpole(kane(), inputs={}))
    rejects(["nothing of q1(t)", "robot.revolute"], lambda: cartpole(kane(), coordinates={}))
    rejects(["`mass_of_cart`", "does not declare"], lambda: cartpole(kane(), parameters={m1: other}))
    rejects(["takes a System, a KanesMethod or a LagrangesMethod"], lambda: cartpole(3))
    robot, cart, pole = cartpole(kane())
    rejects(["twice"], lambda: robot.mechanics(kane(), coordinates={q1: cart, q2: pole}))
    rejects(["none of this robot's coordinates"], lambda: Robot("r").mechanics(kane(), coordinates={q1: 3}))


def bare(coordinates=2, **speeds):
    robot = Robot("bare")
    q = [robot.revolute(f"q{i}", limit=1, rate_limit=1) for i in range(coordinates)]
    return robot, q, {name: robot.speed(name, limit=1, unit="rad/s") for name in speeds}


def test_constraints_are_refused():
    N = ReferenceFrame("N")
    held = KanesMethod(
        N, [q1], [u1], [q1.diff() - u1, q2.diff() - u2],
        q_dependent=[q2], configuration_constraints=[q1 - sp.sin(q2)],
        u_dependent=[u2], velocity_constraints=[u1 - sp.cos(q2) * u2],
    )  # fmt: skip
    rolling = LagrangesMethod(q1.diff() ** 2 + q2.diff() ** 2, [q1, q2], nonhol_coneqs=[q1.diff() - l1 * q2.diff()])
    loop = joined()
    loop.add_holonomic_constraints(q1 - l1 * sp.sin(q2))
    for system in (held, rolling, loop):
        robot, (first, second), _ = bare()
        rejects(
            ["constraint", "cut the loop"],
            lambda r=robot, s=system, f=first, e=second: r.mechanics(s, coordinates={q1: f, q2: e}),
        )


def test_time_and_prescribed_motion_are_refused():
    for push, words in (
        (F * sp.sin(TIME), ["depends on time"]),
        (F + q3, ["q3(t)", "inputs={q3:"]),
        (F + q3.diff(), ["Derivative(q3(t), t)"]),
    ):
        method = LagrangesMethod(
            m1 * q1.diff() ** 2 / 2, [q1], forcelist=[(sliding()[1], push * sliding()[0].x)], frame=sliding()[0]
        )
        robot = Robot("r")
        s = robot.prismatic("s", limit=1, rate_limit=1)
        force = robot.input("force", 1, "N")
        rejects(
            words,
            lambda r=robot, m=method, s=s, f=force: r.mechanics(
                m, coordinates={q1: s}, parameters={m1: 1}, inputs={F: f}
            ),
        )


_FRAME = ReferenceFrame("N")
_POINT = Point("P")
_POINT.set_vel(_FRAME, q1.diff() * _FRAME.x)


def sliding():
    return _FRAME, _POINT


def test_bodies_must_be_known():
    method = KanesMethod(ReferenceFrame("N"), [q1], [u1], [q1.diff() - u1])
    robot, (q,), _ = bare(1)
    rejects(["no bodies", "kanes_equations(bodies, loads)"], lambda: robot.mechanics(method, coordinates={q1: q}))


def test_quaternions_and_auxiliary_speeds_are_refused():
    robot, (q,), _ = bare(1)
    uaux = KanesMethod(ReferenceFrame("N"), [q1], [u1], [q1.diff() - u1], u_auxiliary=[u2])
    rejects(["auxiliary speed u2(t)"], lambda: robot.mechanics(uaux, coordinates={q1: q}))


def test_speeds_are_stated_where_they_are_needed_and_only_there():
    robot, cart, pole = cartpole(kane())
    speed = robot.speed("speed", limit=1, unit="rad/s")
    rejects(["`speed` is no speed of the robot", "remove the line"], lambda: finished(robot))
    rejects(
        ["names u1(t)", "the system's are none", "takes that one's"],
        lambda: cartpole_with_speed(),
    )
    assert speed in robot.symbols.values()
    assert cart in robot.symbols.values()
    assert pole in robot.symbols.values()
    robot, angles, _ = bare(2)
    rejects(
        ["speeds={...} says nothing of u2(t)", "robot.speed"],
        lambda: robot.mechanics(absolute(), coordinates={q1: angles[0], q2: angles[1]}),
    )


def cartpole_with_speed():
    robot = Robot("r")
    pair = [robot.revolute(name, limit=1, rate_limit=1) for name in ("a", "b")]
    robot.mechanics(
        kane(), coordinates=dict(zip((q1, q2), pair, strict=True)), speeds={u1: robot.speed("s", limit=1, unit="1")}
    )


def test_limits_of_rates_are_stated_where_rates_are_states():
    robot = Robot("r")
    robot.prismatic("s", limit=1)
    robot.input("force", 1, "N")
    rejects(["`s` needs rate_limit", "m/s"], lambda: finished(robot))


def test_no_body_is_added_where_speeds_are_no_rates(gyro):
    robot = Robot("gyro")
    angles = [robot.revolute(name, limit=1.2) for name in ("roll", "pitch", "yaw")]
    speeds = [robot.speed(f"omega_{axis}", limit=10, unit="rad/s") for axis in "xyz"]
    stated = {
        "coordinates": dict(zip((q1, q2, q3), angles, strict=True)),
        "speeds": dict(zip((u1, u2, u3), speeds, strict=True)),
        "parameters": dict.fromkeys((m1, l1, A, B, C, g, c), 1.0),
    }
    robot.mechanics(top(), **stated, inputs={T: robot.input("torque", 2, "N m")})
    robot.damp(angles[0], 0.2)
    robot.spring(angles[1], 3.0)
    finished(robot)
    proven(robot)  # forces may be added
    robot.rotor(angles[0], 0.1)
    rejects(["a body is added", "`omega_x`", "the system's own bodies"], lambda: equations_of_motion(robot))
    assert gyro.system.own
