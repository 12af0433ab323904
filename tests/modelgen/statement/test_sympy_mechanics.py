"""Systems of sympy.physics.mechanics as robots: the shipped cart-pole by Kane, by Lagrange and by joints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash, metadata
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.numeric import samples
from modelgen.verification.checks import sample_points
from modelgen.verification.mechanics import mechanics_checks
from tests.modelgen.support.systems import cartpole, evaluated, finished, joined, kane, lagrange, proven


@pytest.mark.parametrize("system", [kane, lagrange, joined])
def test_cartpole_is_the_shipped_one(system: Any) -> None:
    robot = finished(cartpole(system())[0])
    shipped = load(str(SHIPPED / "cartpole.py"))
    x, theta = samples(shipped, 50, seed=4)
    for ours, theirs in zip(evaluated(robot, x, theta), evaluated(shipped, x, theta), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    assert metadata(robot).inputs[0].coordinate == "cart"
    assert proven(robot)["Mdot - 2C skew"].error is not None


@pytest.mark.slow
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
