"""Point masses and planar bodies: their kinetic energy and weight, from checked values."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Matrix

from modelgen.errors import ModelError, Place
from modelgen.statement.declared import Contribution, Energy
from modelgen.statement.figure import Line, rod
from modelgen.statement.terms import Terms


def point_mass(check: Terms, mass: object, position: object, gravity: Expr) -> tuple[Contribution, list[Expr]]:
    """The energies of a point mass, and its position."""
    contribution, _, where = _moved(check, mass, position, gravity)
    return contribution, where


def planar_body(
    check: Terms, mass: object, inertia: object, position: object, angle: object, gravity: Expr
) -> tuple[Contribution, Line]:
    """The energies of a planar body, and the uniform rod that shows it."""
    moved, kilograms, where = _moved(check, mass, position, gravity)
    turned = check.smooth(angle, "angle of the body", "q", "rad")
    moment = check.never_negative(inertia, "inertia of the body", "q", "kg m^2")
    spin = Energy(moment * check.velocity(turned) ** 2 / 2, check.place)
    return Contribution((*moved.kinetic, spin), moved.potential), rod(kilograms, moment, where, turned)


def check_gravity(place: Place | None, heavy: Sequence[object]) -> None:
    """Refuse a gravity, set at `place`, that acts on nothing."""
    if place and not heavy:
        raise ModelError(
            "gravity is set, but only robot.point_mass, robot.body and robot.link weigh anything; an energy states "
            "its own. Write it in robot.potential_energy(...), and remove this line.",
            place,
        )


def _moved(check: Terms, mass: object, position: object, gravity: Expr) -> tuple[Contribution, Expr, list[Expr]]:
    """The energies of a mass at a moving position, the mass, and the position."""
    if not isinstance(position, tuple | list | Matrix) or len(position) not in (2, 3):
        raise ModelError(
            f"the position is {position!r}; write (x, height) or (x, y, height), the height last.", check.place
        )
    kilograms = check.never_negative(mass, "mass", "q", "kg")
    where = [check.smooth(component, "position", "q", "m") for component in position]
    kinetic = Energy(kilograms * sum(check.velocity(each) ** 2 for each in where) / 2, check.place)
    weight = Energy(kilograms * gravity * where[-1], check.place)
    return Contribution((kinetic,), (weight,)), kilograms, where
