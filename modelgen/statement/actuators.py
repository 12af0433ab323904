"""Forces, losses and actuators: what a line of a model file adds, from its checked values.

Every function takes the arguments of the method of `Robot` that calls it; the method says what they mean. A loss takes
energy at every rate; an actuator is affine in its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Abs, Expr, Max, exp, log, sqrt, tanh

from modelgen.errors import ModelError
from modelgen.statement.declared import Contribution, Energy, Load
from modelgen.statement.dimensions import per
from modelgen.statement.terms import Terms
from modelgen.statement.units import Dimension, divided

NARROWEST = 1e-4  # width of a stop, as a share of the way between the two


def applied(check: Terms, displacement: object, force: object) -> Contribution:
    """A force along a displacement."""
    along, span = check.along(displacement)
    return _load(check, along, check.term(force, "applied force", "qvu", per("J", span)))


def damping(check: Terms, displacement: object, coefficient: object) -> Contribution:
    """Viscous friction."""
    along, span = check.along(displacement)
    resistance = check.coefficient(coefficient, "damping coefficient", "q", per("J s", span, 2))
    return _load(check, along, -resistance * check.velocity(along))


def dry_friction(check: Terms, displacement: object, force: object, smoothing: object) -> Contribution:
    """Coulomb friction, smooth."""
    along, span = check.along(displacement)
    friction = check.coefficient(force, "friction", "q", per("J", span))
    fading = check.coefficient(smoothing, "smoothing rate", "", per("Hz", span, -1), zero=False)
    return _load(check, along, -friction * tanh(check.velocity(along) / fading))


def spring(check: Terms, displacement: object, stiffness: object, rest: object) -> Contribution:
    """A linear spring."""
    along, span = check.along(displacement)
    stretch = along - check.term(rest, "rest position", "q", span)
    hardness = check.term(stiffness, "stiffness", "q", per("J", span, 2))
    return Contribution(potential=(Energy(hardness * stretch**2 / 2, check.place, elastic=True),))


def coupling(
    check: Terms, first: object, second: object, stiffness: object, ratio: object, damping: object
) -> Contribution:
    """A spring and damper between two coordinates."""
    (one, span), (other, reach) = check.along(first), check.along(second)
    fits = divided(span, reach) if span and reach else None
    gap = one - check.term(ratio, "ratio", "", fits) * other
    if one == other:
        raise ModelError(f"{one} is coupled with itself; name two coordinates.", check.place)
    hardness = check.term(stiffness, "stiffness", "q", per("J", span, 2))
    loss = check.coefficient(damping, "damping coefficient", "q", per("J s", span, 2))
    loads = (Load(gap, -loss * check.velocity(gap), check.place),) if loss != 0 else ()
    return Contribution(potential=(Energy(hardness * gap**2 / 2, check.place, elastic=True),), loads=loads)


def end_stops(
    check: Terms, displacement: object, limit: object, stiffness: object, width: object, damping: object
) -> Contribution:
    """Elastic stops at both ends."""
    along, span = check.along(displacement)
    lower, upper = _ends(check, limit, span)
    hardness = check.term(stiffness, "stiffness", "", per("J", span, 2))
    loss = check.coefficient(damping, "damping coefficient", "", per("J s", span, 2))
    bend = check.coefficient(width, "width", "", span, zero=False)
    least, stated = NARROWEST * float(check.nominal(upper - lower)), float(check.nominal(bend))
    if stated < least:
        raise ModelError(
            f"the width is {stated:g}, over which no derivative follows the force; write width={least:.2g} at least, "
            f"{NARROWEST:g} of the way between the stops.",
            check.place,
        )
    loads = []
    for depth in (along - upper, lower - along):
        # log(1 + exp(y / width)) and 1 / (1 + exp(-y / width)) in forms that do not overflow.
        bent = Max(depth, 0) + bend * log(1 + exp(-Abs(depth) / bend))
        contact = (1 + tanh(depth / (2 * bend))) / 2
        push = hardness * bent + loss * contact * check.velocity(depth)
        loads.append(Load(depth, -push, check.place))
    return Contribution(loads=tuple(loads))


def _ends(check: Terms, limit: object, span: Dimension | None) -> tuple[Expr, Expr]:
    """Where the stops are, the lower one first."""
    if not isinstance(limit, tuple | list):
        upper = check.term(limit, "limit", "", span)
        lower = -upper
    elif len(limit) == 2:
        lower, upper = (check.term(end, "limit", "", span) for end in limit)
    else:
        raise ModelError(f"the limit of the end stops is {limit!r}; write limit or (lower, upper).", check.place)
    if not check.nominal(upper - lower) > 0:
        raise ModelError(
            f"the end stops are at ({lower}, {upper}), the larger first; write (lower, upper).", check.place
        )
    return lower, upper


def rotor(check: Terms, displacement: object, inertia: object, gear: object) -> Contribution:
    """The spin of a rotor behind a gear."""
    along, span = check.along(displacement)
    speed = _gear(check, gear, span) * check.velocity(along)
    moment = check.coefficient(inertia, "rotor inertia", "q", "kg m^2")
    return Contribution(kinetic=(Energy(moment * speed**2 / 2, check.place),))


def motor(
    check: Terms,
    displacement: object,
    torque: object,
    gear: object,
    gear_efficiency: object,
    rotor_inertia: object,
    corner_speed: object | None,
) -> Contribution:
    """A motor commanded by its torque."""
    along, span = check.along(displacement)
    ratio = _gear(check, gear, span)
    given = check.term(torque, "torque", "qvu", "N m")
    if corner_speed is not None:
        corner = check.coefficient(corner_speed, "corner speed", "", "rad/s", zero=False)
        given = given / sqrt(1 + (ratio * check.velocity(along) / corner) ** 2)
    return _geared(check, along, given, ratio, gear_efficiency, rotor_inertia)


def dc_motor(check: Terms, displacement: object, voltage: object, stated: Mapping[str, Any]) -> Contribution:
    """A DC motor driven by a voltage; `stated` holds the keyword arguments of `Robot.dc_motor`."""
    along, span = check.along(displacement)
    ratio = _gear(check, stated["gear"], span)
    constant = check.term(stated["torque_constant"], "torque constant", "q", "N m/A")
    back_emf = stated["back_emf"]
    emf = constant if back_emf is None else check.term(back_emf, "back-EMF constant", "q", "V s/rad")
    ohms = check.coefficient(stated["resistance"], "resistance", "", "Ohm", zero=False)
    current = (check.term(voltage, "voltage", "qvu", "V") - emf * (ratio * check.velocity(along))) / ohms
    efficiency = check.coefficient(stated["efficiency"], "efficiency", "q", "1", most=1.0)
    torque = efficiency * constant * current
    return _geared(check, along, torque, ratio, stated["gear_efficiency"], stated["rotor_inertia"])


def _gear(check: Terms, gear: object, span: Dimension | None) -> Expr:
    """The radians that a shaft turns per unit of a displacement with the dimension `span`."""
    ratio = check.term(gear, "gear", "q", per("1", span))
    if ratio == 0:
        raise ModelError("the gear is 0, so that the shaft never turns; write its radians per unit.", check.place)
    return ratio


def _geared(
    check: Terms, along: Expr, torque: Expr, ratio: Expr, gear_efficiency: object, rotor_inertia: object
) -> Contribution:
    """A shaft's torque behind a gear that passes a fraction of it, and of what its rotor needs."""
    passed = check.coefficient(gear_efficiency, "gear efficiency", "q", "1", most=1.0)
    inertia = check.coefficient(rotor_inertia, "rotor inertia", "q", "kg m^2")
    speed = ratio * check.velocity(along)
    kinetic = (Energy(passed * inertia * speed**2 / 2, check.place),) if inertia != 0 else ()
    return Contribution(kinetic=kinetic, loads=(Load(along, passed * ratio * torque, check.place),))


def _load(check: Terms, along: Expr, force: Expr) -> Contribution:
    return Contribution(loads=(Load(along, force, check.place),))
