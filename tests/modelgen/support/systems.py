"""Systems of sympy.physics.mechanics, robots made of them, and functions to evaluate both."""

from __future__ import annotations

from typing import Any

import numpy as np
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

from modelgen import LogCos, Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.verification.checks import Check, sample_points
from modelgen.verification.mechanics import mechanics_checks

q1, q2, q3, u1, u2, u3, F, T = dynamicsymbols("q1 q2 q3 u1 u2 u3 F T")
m1, m2, l1, l2, g, b, c, A, B, C = sp.symbols("m1 m2 l1 l2 g b c A B C")
TASK: dict[str, Any] = {
    "action_cost": LogCos(1), "start": {}, "horizon": 5, "weight_at_horizon": 0.5, "control_rate": 125
}  # fmt: skip


def evaluated(robot: Robot, x: np.ndarray, theta: np.ndarray) -> list[Any]:
    """Rates of q, M, force and input matrix at states and parameters."""
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    parts = (equations.coordinate_rates, equations.mass_matrix, equations.force, equations.input_matrix)
    arguments = [*equations.state, *equations.parameters]
    return [numpy_evaluator(arguments, part, equations.definitions)(*x.T, *theta.T) for part in parts]


def acceleration(robot: Robot, x: np.ndarray, theta: np.ndarray, u: Any) -> np.ndarray:
    """Accelerations vdot (N, n_v)."""
    _, M, force, inputs = evaluated(robot, x, theta)
    return np.linalg.solve(M, force + inputs @ np.asarray(u)[:, None])[..., 0]


def proven(robot: Robot) -> dict[str, Check]:
    """The checks of the mechanics by name, which must pass."""
    equations = equations_of_motion(robot)
    checks = mechanics_checks(robot, equations, sample_points(robot, 16))
    assert all(check.passed for check in checks), checks
    return {check.what: check for check in checks}


def kane() -> Any:
    """A cart and a pole by Kane's method, as in a user's script."""
    N = ReferenceFrame("N")
    origin = Point("O")
    origin.set_vel(N, 0)
    hinge = origin.locatenew("C", q1 * N.x)
    hinge.set_vel(N, u1 * N.x)
    pole = N.orientnew("R", "Axis", (q2, N.y))
    pole.set_ang_vel(N, u2 * N.y)
    tip = hinge.locatenew("P", l1 * pole.z)
    tip.v2pt_theory(hinge, N, pole)
    bodies = [Particle("cart", hinge, m1), Particle("bob", tip, m2)]
    loads = [(hinge, (F - b * u1) * N.x), (tip, -m2 * g * N.z), (pole, -c * u2 * N.y)]
    method = KanesMethod(N, [q1, q2], [u1, u2], kd_eqs=[q1.diff() - u1, q2.diff() - u2])
    method.kanes_equations(bodies, loads)
    return method


def lagrange() -> Any:
    """A cart and a pole by Lagrange's method."""
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


def joined() -> Any:
    """A cart and a pole by joints, before its equations are formed."""
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


def cartpole(system: Any, **changed: Any) -> tuple[Robot, Any, Any]:
    """A robot like the shipped one, made of one of these systems."""
    robot = Robot("cartpole")
    cart = robot.prismatic("cart", limit=0.5, rate_limit=5)
    pole = robot.revolute("pole", continuous=True, rate_limit=20)
    values: tuple[tuple[str, float, str], ...] = (
        ("cart_mass", 0.57, "kg"),
        ("pole_mass", 0.127, "kg"),
        ("pole_half_length", 0.3365 / 2, "m"),
    )
    values += (("cart_damping", 0.1, "N s/m"), ("pole_damping", 1e-3, "N m s"))
    parameters = [robot.parameter(name, value, unit, tolerance=0.5) for name, value, unit in values]
    arguments = {
        "coordinates": {q1: cart, q2: pole},
        "parameters": {**dict(zip((m1, m2, l1, b, c), parameters, strict=True)), g: 9.81},
        "inputs": {F: robot.input("force", 12, "N")},
    }
    robot.mechanics(system, **{**arguments, **changed})
    return robot, cart, pole


def finished(robot: Robot) -> Robot:
    """The robot with a task."""
    coordinates = [joint.symbol for joint in robot.joints]
    cost = sum(sp.sin(q / 2) ** 2 + q.rate**2 for q in coordinates)
    robot.task(state_cost=cost, **TASK)
    return robot


def absolute() -> Any:
    """Two rods by Kane's method, with absolute rates as speeds: u1 = q1', u2 = q1' + q2'."""
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


def top() -> Any:
    """A heavy body on a ball joint by Kane's method, with the angular velocity in its own axes as speeds."""
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


def lift() -> Robot:
    """A mass that two inputs hold together."""
    robot = Robot("lift")
    height = robot.prismatic("height", limit=1, rate_limit=2)
    rope, push = robot.input("rope", (0, 40), "N"), robot.input("push", (-5, 8), "N")
    robot.point_mass(robot.parameter("mass", 2, "kg", tolerance=0.5), (0, height))
    robot.apply(height, rope + push)
    cost = Quadratic(0.01)
    robot.task(state_cost=height**2, action_cost=cost, start={}, horizon=2, weight_at_horizon=0.5, control_rate=50)
    return robot
