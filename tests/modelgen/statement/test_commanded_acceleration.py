"""Commanded accelerations: a cart of a thousand tonnes, inverse dynamics by hand, SymPy's specified motion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me
from sympy import Symbol, cos, pi, sin

import modelgen
from modelgen import ModelError, Quadratic, Robot
from modelgen.builder import build
from modelgen.derivation.derive import equations_of_motion
from modelgen.program.differentiate import FUNCTIONS
from modelgen.verification import quick
from modelgen.verification.checks import sample_points
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.declared import rejects

TASK: dict[str, Any] = {
    "action_cost": Quadratic(0.001), "start": {}, "horizon": 3, "weight_at_horizon": 0.65, "control_rate": 100
}  # fmt: skip
BOB, REACH, CART, ROLLING, G = 0.1, 0.3, 0.5, 0.7, 9.81


def stepper(cart_mass: float = CART, heavy: float = 0.0) -> Robot:
    """A pendulum on a cart whose acceleration is the input. heavy: by the force on a cart of this mass."""
    robot = Robot("stepper")
    x = robot.prismatic("x", limit=0.5, rate_limit=2)
    a = robot.revolute("a", continuous=True, rate_limit=10)
    mass = robot.parameter("mass", BOB, "kg", tolerance=0.3)
    push = robot.input("push", 20, "m/s^2")
    if heavy:
        robot.point_mass(heavy, (x, 0))
        robot.apply(x, heavy * push)
    else:
        robot.accelerate(x, push)
        if cart_mass:
            robot.point_mass(cart_mass, (x, 0))
        robot.damp(x, ROLLING)
    robot.point_mass(mass, (x + REACH * sin(a), REACH * cos(a)))
    robot.damp(a, 0.001)
    robot.task(state_cost=x**2 + sin(a / 2) ** 2 + 0.1 * a.rate**2, **TASK)
    return robot


def specified(drag: float = 0.0, by_position: bool = False) -> Robot:
    """The same pendulum by SymPy, whose cart is no coordinate but has a specified velocity (or position)."""
    robot = Robot("specified")
    angle, omega, v, cart = me.dynamicsymbols("theta omega v cart")
    m, length, g = (Symbol(name) for name in ("m", "l", "g"))
    frame = me.ReferenceFrame("N")
    rod = frame.orientnew("A", "Axis", (angle, -frame.z))
    pivot, origin = me.Point("S"), me.Point("O")
    origin.set_vel(frame, 0)
    speed = cart.diff() if by_position else v
    pivot.set_vel(frame, speed * frame.x)
    tip = pivot.locatenew("P", length * rod.y)
    if not by_position:
        rod.set_ang_vel(frame, -omega * frame.z)
    tip.v2pt_theory(pivot, frame, rod)
    bob = me.Particle("bob", tip, m)
    pull = -drag * speed * frame.x if drag else 0 * frame.x
    loads = [(tip, -m * g * frame.y + pull)]
    method: Any
    if by_position:
        method = me.LagrangesMethod(me.Lagrangian(frame, bob), [angle], forcelist=loads, frame=frame)
        method.form_lagranges_equations()
    else:
        method = me.KanesMethod(frame, [angle], [omega], kd_eqs=[angle.diff() - omega])
        method.kanes_equations([bob], loads)
    a = robot.revolute("a", continuous=True, rate_limit=10)
    mass = robot.parameter("mass", BOB, "kg", tolerance=0.3)
    robot.mechanics(
        method,
        coordinates={angle: a},
        parameters={m: mass, length: REACH, g: G},
        inputs={cart.diff().diff() if by_position else v.diff(): robot.input("push", 20, "m/s^2")},
    )
    robot.damp(a, 0.001)
    robot.task(state_cost=sin(a / 2) ** 2 + 0.1 * a.rate**2, **TASK)
    return robot


def built(robot: Robot, folder: Path, *more: str) -> modelgen.loader.CompiledRobot:
    """The robot in float64, from an artifact in the folder with more functions than usual."""
    list(build(robot, folder, (*FUNCTIONS, *more)))
    return modelgen.load(robot.name, directory=folder)


def points(columns: tuple[int, ...] = (0, 1, 2, 3)) -> np.ndarray:
    """States over the domain."""
    x = np.random.default_rng(0).uniform(-1, 1, (20, 4)) * [0.5, 3, 2, 10]
    return np.ascontiguousarray(x[:, columns])


@pytest.mark.slow
def test_it_moves_as_on_a_cart_of_a_thousand_tonnes(tmp_path: Path) -> None:
    ours = built(stepper(), tmp_path / "a").affine_dynamics(points())
    theirs = built(stepper(heavy=1e6), tmp_path / "b").affine_dynamics(points())
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.slow
def test_specified_motion_of_sympy_moves_the_same(by_position: bool, tmp_path: Path) -> None:
    whole = built(stepper(), tmp_path).affine_dynamics(points())
    part = built(specified(by_position=by_position), tmp_path).affine_dynamics(points((1, 3)))
    for one, other in zip(part, whole, strict=True):
        np.testing.assert_allclose(one, other[:, [1, 3]], atol=1e-12)


@pytest.mark.parametrize("cart_mass", [CART, 0.0])
def test_the_reaction_is_that_of_inverse_dynamics(cart_mass: float, tmp_path: Path) -> None:
    kernels = built(stepper(cart_mass), tmp_path, "reaction")
    x, u = points(), np.random.default_rng(1).uniform(-20, 20, (20, 1))
    (a, speed, omega), push = x.T[[1, 2, 3]], u[:, 0]
    alpha = kernels.dynamics(x, u)[:, 3]
    inertial = (cart_mass + BOB) * push + BOB * REACH * (alpha * np.cos(a) - omega**2 * np.sin(a))
    np.testing.assert_allclose(kernels.reaction(x, u)[:, 0], inertial + ROLLING * speed, rtol=1e-10)
    np.testing.assert_allclose(kernels.dynamics(x, u)[:, 2], push, rtol=1e-14)


@pytest.mark.parametrize("make", [stepper, specified])
@pytest.mark.slow
def test_the_model_is_verified(make: Any, tmp_path: Path) -> None:
    robot = make()
    list(build(robot, tmp_path, (*FUNCTIONS, "reaction") if robot.commanded else FUNCTIONS))
    equations = equations_of_motion(robot)
    checks = [
        *mechanics_checks(robot, equations, sample_points(robot, 16)),
        *quick(robot, equations, modelgen.load, tmp_path),
    ]
    assert all(check.passed for check in checks), [check for check in checks if not check.passed]


def test_the_command_may_be_lagged(tmp_path: Path) -> None:
    robot = Robot("slow")
    x = robot.prismatic("x", limit=1, rate_limit=2)
    push = robot.input("push", 20, "m/s^2")
    robot.accelerate(x, robot.lag(push, seconds=0.05))
    robot.task(state_cost=x**2 + x.rate**2, **TASK)
    rates = built(robot, tmp_path).dynamics(np.array([[0.1, 0.2, 3.0]]), np.array([[5.0]]))
    np.testing.assert_allclose(rates, [[0.2, 3.0, (5 - 3) / 0.05]], rtol=1e-12)


class TestRefusals:
    def test_statements(self) -> None:
        robot = Robot("cart")
        x = robot.prismatic("x", limit=1, rate_limit=2)
        push, force = robot.input("push", 1, "m/s^2"), robot.input("force", 1, "N")
        rejects("robot.accelerate is called for push", action=lambda: robot.accelerate(push, push))
        rejects("acceleration of `x`", "m/s^2", action=lambda: robot.accelerate(x, force))
        robot.accelerate(x, push)
        rejects("commanded twice", action=lambda: robot.accelerate(x, push))
        rejects("acts already", "Move robot.lag", action=lambda: robot.lag(push, seconds=0.05))

    def test_a_command_that_is_not_affine(self) -> None:
        robot = Robot("cart")
        x = robot.prismatic("x", limit=1, rate_limit=2)
        robot.accelerate(x, 2.0 * sin(robot.input("push", 1, "1")) * pi)
        robot.task(state_cost=x**2, **TASK)
        with pytest.raises(ModelError, match=r"`x`.*`push`"):
            equations_of_motion(robot)

    def test_no_reaction_without_a_command(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"`reaction`.*robot\.accelerate"):
            list(build(specified(), tmp_path, ("reaction",)))

    def test_a_force_that_depends_on_the_specified_velocity(self) -> None:
        with pytest.raises(ModelError, match=r"v\(t\).*robot\.accelerate"):
            specified(drag=0.2)
