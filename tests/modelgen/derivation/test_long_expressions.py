"""Robots with long sums, expanded products, nested functions and closed chains are built, with the right values."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Add, expand, sin

import modelgen
from modelgen import Robot
from modelgen.builder import build_artifact
from modelgen.derivation.derive import equations_of_motion
from tests.modelgen.support.declared import TASK, cart

pytestmark = pytest.mark.slow

TERMS = range(1, 401)
FORCES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "400 terms": (
        lambda s: Add(*(sin(k * s) / (400 * k) for k in TERMS)),
        lambda s: sum(np.sin(k * s) / (400 * k) for k in TERMS),
    ),
    "an expanded product": (
        lambda s: expand((1 + sin(s) + s / 10) ** 12) / 1000,
        lambda s: (1 + np.sin(s) + s / 10) ** 12 / 1000,
    ),
    "100 nested sines": (
        lambda s: reduce(lambda e, _: sin(e), range(100), s),
        lambda s: reduce(lambda e, _: np.sin(e), range(100), s),
    ),
}


@pytest.mark.parametrize("name", FORCES)
def test_a_long_force_has_the_values_of_its_formula(name: str, tmp_path: Path) -> None:
    symbolic, formula = FORCES[name]
    robot, s, mass, force = cart()
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.apply(s, 1.0 * symbolic(s))
    robot.task(**{**TASK, "state_cost": s**2})
    build_artifact(robot, tmp_path)
    kernel = modelgen.load("cart", backend="llvm", directory=tmp_path)
    at = np.linspace(-1, 1, 9)
    a, _ = kernel.affine_dynamics(np.column_stack([at, 0 * at]))
    np.testing.assert_allclose(a[:, 1], formula(at), rtol=1e-11, atol=1e-13)


def linkage(angle: Any, library: Any) -> tuple[Any, Any, Any, Any]:
    """Pin of the crank, pin of the rocker (m), angle of the coupler and of the rocker of a four-bar linkage."""
    crank, coupler, rocker, base = 0.2, 0.5, 0.4, 0.5
    first = (crank * library.cos(angle), crank * library.sin(angle))
    across, up = base - first[0], -first[1]
    span = library.sqrt(across**2 + up**2)
    turned = library.atan2(up, across) + library.acos((coupler**2 + span**2 - rocker**2) / (2 * coupler * span))
    second = (first[0] + coupler * library.cos(turned), first[1] + coupler * library.sin(turned))
    return first, second, turned, library.atan2(second[1], second[0] - base)


def test_a_closed_chain_solved_in_closed_form_has_its_inertia() -> None:
    """The reference differentiates the positions of the bodies numerically. An expansion would take minutes."""
    robot = Robot("fourbar")
    crank = robot.revolute("crank", continuous=True, rate_limit=10)
    mass = robot.parameter("mass", 0.3, "kg", tolerance=0.3)

    def bodies(angle: Any, library: Any) -> list[tuple[Any, Any, Any]]:
        first, second, turned, rocker = linkage(angle, library)
        middle = ((first[0] + second[0]) / 2, (first[1] + second[1]) / 2)
        last = ((0.5 + second[0]) / 2, second[1] / 2)
        return [(first[0] / 2, first[1] / 2, angle), (*middle, turned), (*last, rocker)]

    for x, height, angle in bodies(crank, sympy):
        robot.body(mass, 0.002, (x, height), angle)
    robot.apply(crank, robot.input("torque", 3, "N m"))
    robot.task(**{**TASK, "state_cost": sin(crank / 2) ** 2})
    equations = equations_of_motion(robot)
    for angle, known in ((0.3, 0.009834), (1.0, 0.013835), (2.0, 0.020542)):
        step = 1e-6
        ahead, behind = (np.array(bodies(angle + sign * step, math)) for sign in (1, -1))
        slopes = (ahead - behind) / (2 * step)
        expected = (slopes**2 @ [0.3, 0.3, 0.002]).sum()
        inertia = float(equations.mass_matrix[0].subs({crank: angle, mass: 0.3}))
        assert inertia == pytest.approx(expected, rel=1e-8)
        assert inertia == pytest.approx(known, abs=1e-6)
