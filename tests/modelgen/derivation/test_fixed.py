"""Fixed parameters become numbers and the others theta, for a robot of energies, of links and of a SymPy system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import sympy as sp
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

from modelgen import LogCos, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash, metadata
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.lowering import mechanism


def by_energies(robot: Robot, q: Any, mass: Any, length: Any, damping: Any) -> None:
    robot.point_mass(mass, (length * sp.sin(q), length * sp.cos(q)))
    robot.damp(q, damping)


def by_links(robot: Robot, q: Any, mass: Any, length: Any, damping: Any) -> None:
    robot.link("arm", q, mass=mass, centre=(0, 0, length))
    robot.damp(q, damping)


def by_system(robot: Robot, q: Any, mass: Any, length: Any, damping: Any) -> None:
    angle, rate = dynamicsymbols("angle rate")
    m, l, d = sp.symbols("m l d")
    N = ReferenceFrame("N")
    pivot = Point("O")
    pivot.set_vel(N, 0)
    rod = N.orientnew("R", "Axis", (angle, N.y))
    rod.set_ang_vel(N, rate * N.y)
    tip = pivot.locatenew("P", l * rod.z)
    tip.v2pt_theory(pivot, N, rod)
    loads = [(tip, sp.Float("-9.81") * m * N.z), (rod, -d * rate * N.y)]
    kane = KanesMethod(
        N, [angle], [rate], kd_eqs=[angle.diff() - rate], bodies=[Particle("bob", tip, m)], forcelist=loads
    )
    robot.mechanics(kane, coordinates={angle: q}, parameters={m: mass, l: length, d: damping})


def arm(route: Callable[..., None], fixed: Sequence[str] = (), mass: float = 0.5) -> Robot:
    robot = Robot("arm")
    q = robot.revolute("q", continuous=True, rate_limit=5)
    values = {"mass": (mass, "kg"), "length": (0.3, "m"), "damping": (0.01, "N m s")}
    parameters = [
        robot.parameter(name, value, unit, fixed=True)
        if name in fixed
        else robot.parameter(name, value, unit, tolerance=0.3)
        for name, (value, unit) in values.items()
    ]
    route(robot, q, *parameters)
    robot.apply(q, robot.input("torque", 1, "N m"))
    robot.task(
        state_cost=sp.sin(q / 2) ** 2,
        action_cost=LogCos(1),
        start={},
        horizon=1,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return robot


def symbols(equations: EquationsOfMotion) -> set[str]:
    """All symbols of the equations without the names of intermediates."""
    parts = [equations.coordinate_rates, equations.mass_matrix, equations.force, equations.input_matrix]
    parts += [equations.state_cost, *(value for _, value in equations.definitions)]
    named = {symbol for symbol, _ in equations.definitions}
    return {str(symbol) for part in parts for symbol in part.free_symbols - named}


@pytest.mark.parametrize("route", [by_energies, by_links, by_system])
@pytest.mark.slow
def test_fixed_parameters_are_numbers_and_free_ones_are_theta(route: Any) -> None:
    robot = arm(route, fixed=("mass", "damping"))
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    assert [symbol.name for symbol in equations.parameters] == ["length"]
    assert [parameter.name for parameter in metadata(robot).parameters] == ["length"]
    assert symbols(equations) == {"q", "q_rate", "length"}
    assert len(mechanism(equations).theta.entries) == 1
    free = equations_of_motion(arm(route))
    assert symbols(free) == {"q", "q_rate", "mass", "length", "damping"}


@pytest.mark.parametrize("route", [by_energies, by_links, by_system])
def test_the_value_of_a_fixed_parameter_changes_the_content_hash(route: Any) -> None:
    assert content_hash(arm(route, fixed=("mass",))) != content_hash(arm(route, fixed=("mass",), mass=0.6))


@pytest.mark.parametrize("route", [by_links, by_system])
def test_energies_links_and_system_have_the_same_acceleration(route: Any) -> None:
    at = {"q": 0.7, "q_rate": 1.3, "length": 0.31}

    def acceleration(robot: Robot) -> float:
        equations = equations_of_motion(robot)
        known: dict[Any, Any] = {}
        for symbol, value in equations.definitions:
            known[symbol] = value.xreplace(known)
        values = [(symbol, at[symbol.name]) for symbol in (*equations.state, *equations.parameters)]
        force, inertia = (part[0].xreplace(known).subs(values) for part in (equations.force, equations.mass_matrix))
        return float(force / inertia)

    fixed = ("mass", "damping")
    assert acceleration(arm(route, fixed)) == pytest.approx(acceleration(arm(by_energies, fixed)), rel=1e-13)
