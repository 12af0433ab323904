"""Systems of sympy.physics.mechanics as robots: the shipped cart-pole by Kane, by Lagrange and by joints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import LagrangesMethod, Point, ReferenceFrame, dynamicsymbols

import modelgen
from modelgen import Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash, metadata
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import samples
from modelgen.verification.checks import sample_points
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.systems import cartpole, evaluated, finished, joined, kane, lagrange, proven

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("system", [kane, lagrange, joined])
def test_cartpole_is_the_shipped_one(system: Any) -> None:
    robot = finished(cartpole(system())[0])
    shipped = load(str(SHIPPED / "cartpole.py"))
    x, theta = samples(shipped, 50, seed=4)
    for ours, theirs in zip(evaluated(robot, x, theta), evaluated(shipped, x, theta), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert metadata(robot).inputs[0].coordinate == "cart"
    assert proven(robot)["Mdot - 2C skew"].error is not None


def test_forces_and_bodies_are_added_to_a_system() -> None:
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


def test_verification_finds_a_wrong_system() -> None:
    robot = finished(cartpole(kane())[0])
    assert robot.system is not None
    for broken, names in (
        (replace(robot.system, force=robot.system.force * 1.001), {"Lagrange's equations hold"}),
        (
            replace(robot.system, mass_matrix=robot.system.mass_matrix * 1.001),
            {"mass matrix is that of the kinetic energy"},
        ),
    ):
        system, robot.system = robot.system, broken
        checks = mechanics_checks(robot, equations_of_motion(robot), sample_points(robot, 16))
        robot.system = system
        assert names <= {check.what for check in checks if not check.passed}


def test_content_hash_changes_with_the_system() -> None:
    first, again, other = (content_hash(finished(cartpole(method())[0])) for method in (kane, kane, lagrange))
    assert first == again != other


@pytest.mark.parametrize("how", ["lag", "state"])
def test_an_input_that_acts_late_is_that_of_energies(how: str) -> None:
    """A cart on a curved rail, whose force follows its command: a system of SymPy, and the same by energies."""
    place, push = dynamicsymbols("place push")
    m, frame, point = sp.Symbol("m"), ReferenceFrame("N"), Point("P")
    point.set_vel(frame, place.diff() * frame.x)
    lagrangian = m * place.diff() ** 2 / 2 - m * 9.81 * sp.cos(place)

    def cart(name: str, by_sympy: bool) -> np.ndarray:
        robot = Robot(name)
        s, mass = robot.prismatic("s", limit=1, rate_limit=5), robot.parameter("mass", 2, "kg", tolerance=0.2)
        force = robot.input("force", 3, "N")
        if how == "lag":
            late = robot.lag(force, seconds=0.1)
        else:
            late = robot.state("late", limit=5, unit="N")
            robot.flow(late, (force - late) / robot.parameter("delay", 0.1, "s", fixed=True))
        if by_sympy:
            method = LagrangesMethod(lagrangian, [place], forcelist=[(point, push * frame.x)], frame=frame)
            robot.mechanics(method, coordinates={place: s}, parameters={m: mass}, inputs={push: late})
        else:
            robot.kinetic_energy(mass * s.rate**2 / 2)
            robot.potential_energy(mass * 9.81 * sp.cos(s))
            robot.apply(s, late)
        cost = dict(state_cost=s**2, action_cost=Quadratic(0.1), start={})
        robot.task(**cost, horizon=2, weight_at_horizon=0.5, control_rate=50)
        random = np.random.default_rng(0)
        return np.asarray(modelgen.compile(robot).dynamics(random.normal(size=(5, 3)), random.normal(size=(5, 1))))

    np.testing.assert_allclose(cart("by_sympy", True), cart("by_energies", False), rtol=1e-12)
