"""Ball and floating joints against MuJoCo's ball and free joints and Pinocchio's, and against Euler's equations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from modelgen import Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.verification.kernels import power_balance
from tests.modelgen.engines.test_engines import Derived, compared, uncompiled

pytestmark = pytest.mark.slow


def manipulator() -> Robot:
    """A floating base whose centre of mass is not its origin, with an arm of a hinge, a ball joint and a slider."""
    robot = Robot("manipulator", "A floating base with an arm")
    torque, push = robot.input("torque", 2, "N m"), robot.input("push", 3, "N")
    mass = robot.parameter("mass", 1.5, "kg", tolerance=0.3)
    base = robot.floating("base", limit=2, rate_limit=3, turn_rate_limit=4)
    shoulder = robot.revolute("shoulder", continuous=True, rate_limit=5)
    wrist = robot.ball("wrist", rate_limit=(3, 4, 5))
    slide = robot.prismatic("slide", limit=1, rate_limit=2)
    body = robot.link("body", base, mass=mass, centre=(0.1, -0.2, 0.05), inertia=(0.3, 0.4, 0.5, 0.02, -0.01, 0.03))
    upper = robot.link("upper", shoulder, on=body, at=(0.3, 0, 0.1), turned=(0.4, 0.2, -0.3), mass=0.7, inertia=0.05)
    hand = robot.link("hand", wrist, on=upper, at=(0, 0, 0.4), turned=(0, 1, 0), mass=0.4, centre=(0, 0.1, 0.2))
    robot.link("tip", slide, on=hand, axis="x", mass=0.2, centre=(0.1, 0, 0), inertia=0.01)
    robot.rotor(shoulder, 0.02)
    robot.apply(shoulder, torque)
    robot.damp(wrist.turn[1], 0.1)
    robot.potential_energy(2.0 * wrist.rotation[2, 2] * base.rotation[0, 0])  # J
    robot.push(hand, (push, 0.5, 0), at=(0.1, 0.2, 0), torque=(0, 0, torque))
    robot.task(
        state_cost=base.away().dot(base.away()) + slide**2,
        action_cost=Quadratic(1.0),
        start={},
        horizon=2,
        weight_at_horizon=0.5,
        control_rate=50,
        free=["shoulder"],
    )
    return robot


@pytest.fixture(scope="module")
def derived() -> Derived:
    """The robot, its equations, and its program evaluated node by node."""
    return uncompiled(manipulator())


@pytest.mark.parametrize("engine", ["mujoco", "pinocchio"])
def test_an_arm_on_a_floating_base_moves_as_in_the_other_engine(engine: str, derived: Derived) -> None:
    """Mass matrix, accelerations, and their derivatives along the manifold and by the parameters."""
    pytest.importorskip(engine)
    checks = compared(engine, derived)
    assert len(checks) == 5
    assert [check.what for check in checks if not check.passed] == []


def test_the_power_of_a_pushed_link_changes_the_energy(derived: Derived) -> None:
    check = power_balance(*derived, 8)
    assert check.passed, check.where


def accelerations(robot: Robot) -> Callable[..., np.ndarray]:
    """vdot (n_v,) from x, u and theta by NumPy."""
    equations = equations_of_motion(robot)
    arguments = [*equations.state, *equations.parameters]
    parts = [equations.mass_matrix, equations.force, equations.input_matrix]
    functions = [numpy_evaluator(arguments, part, equations.definitions) for part in parts]

    def at(x: np.ndarray, u: np.ndarray, theta: np.ndarray) -> np.ndarray:
        M, force, B = (function(*np.array([*x, *theta])[:, None])[0] for function in functions)
        return np.linalg.solve(M, force[:, 0] + B @ u)

    return at


def test_eulers_equations_and_a_pushed_body() -> None:
    """A body turns by I omega' = tau - omega x I omega, and its centre of mass falls and is pushed."""
    robot = Robot("body", "A rigid body")
    thrust, twist = robot.input("thrust", (0, 5), "N"), robot.input("twist", 1, "N m")
    base = robot.floating("base", limit=2, rate_limit=3, turn_rate_limit=4)
    body = robot.link("body", base, mass=2, inertia=(0.3, 0.4, 0.6))
    robot.push(body, (0, 0, thrust), at=(0.1, -0.2, 0), torque=(twist, 0, 0))
    robot.task(
        state_cost=base.away().dot(base.away()),
        action_cost=Quadratic(1.0),
        start={},
        target=dict(base=(0, 0, 0.4)),
        horizon=2,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    random = np.random.default_rng(0)
    q = random.normal(size=4)
    q /= np.linalg.norm(q)
    v, omega, u = *random.normal(size=(2, 3)), np.array([3.0, 0.5])
    found = accelerations(robot)(np.array([0.1, 0.2, 0.3, *q, *v, *omega]), u, np.zeros(0))
    w, x, y, z = q
    upward = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    inertia = np.diag([0.3, 0.4, 0.6])
    torque = np.cross([0.1, -0.2, 0], [0, 0, u[0]]) - np.cross(omega, inertia @ omega)
    torque[0] += u[1]
    np.testing.assert_allclose(found[:3], u[0] * upward / 2 - [0, 0, 9.81], rtol=1e-12)
    np.testing.assert_allclose(found[3:], torque / [0.3, 0.4, 0.6], rtol=1e-12)
