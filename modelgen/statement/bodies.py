"""Rigid bodies and named points of a robot: point masses, planar bodies, links of a kinematic tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
from sympy import Basic, Expr, Matrix, MatrixBase, S, cos, eye, sin, srepr, zeros

from modelgen.errors import ModelError, Place, calling_place, mistake
from modelgen.statement.checker import identifier, number
from modelgen.statement.declared import Energy, Load
from modelgen.statement.drawing import Line, rod
from modelgen.statement.joints import AXES, JOINTS, Axes, Ball, Coordinate, Floating, Kind, of_ball, single, turn
from modelgen.statement.terms import Terms


def point_mass(check: Terms, mass: object, position: object, gravity: Expr) -> tuple[Energy, Energy, list[Expr]]:
    """The kinetic energy, the potential energy and the position of a point mass."""
    kinetic, weight, _, centre = _moving_mass(check, mass, position, gravity)
    return kinetic, weight, centre


def planar_body(
    check: Terms, mass: object, inertia: object, position: object, angle: object, gravity: Expr
) -> tuple[list[Energy], Energy, Line]:
    """The kinetic energies and the potential energy of a planar body, and the uniform rod that is drawn for it."""
    kinetic, weight, kilograms, centre = _moving_mass(check, mass, position, gravity)
    turned = check.smooth(angle, "angle of the body", "q", "rad")
    moment = check.never_negative(inertia, "inertia of the body", "q", "kg m^2")
    spin = Energy(moment * check.velocity(turned) ** 2 / 2)
    return [kinetic, spin], weight, rod(kilograms, moment, centre, turned)


def check_gravity(place: Place | None, heavy: Sequence[object]) -> None:
    """Raise ModelError if gravity was set at `place`, but no body has a weight."""
    if place and not heavy:
        raise ModelError(
            "gravity is set, but only robot.point_mass, robot.body and robot.link have a weight. An energy contains "
            "its own gravity: write it in robot.potential_energy(...), and remove this line.",
            place,
        )


def _moving_mass(
    check: Terms, mass: object, position: object, gravity: Expr
) -> tuple[Energy, Energy, Expr, list[Expr]]:
    """The kinetic energy and the weight's energy of a mass, the mass, and its position."""
    if not isinstance(position, tuple | list | MatrixBase) or len(position) not in (2, 3):
        raise mistake(f"the position is {position!r}; write (x, height) or (x, y, height), the height last.")
    kilograms = check.never_negative(mass, "mass", "q", "kg")
    centre = [check.smooth(component, "position", "q", "m") for component in position]
    kinetic = Energy(kilograms * sum(check.velocity(component) ** 2 for component in centre) / 2)
    weight = Energy(kilograms * gravity * centre[-1])
    return kinetic, weight, kilograms, centre


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid link: the pose of its frame in its parent's, the axes of its joint, its inertia in its own frame."""

    name: str
    parent: Link | None  # None: the ground
    position: Matrix  # (3, 1), of the joint in the parent's frame
    rotation: Matrix  # (3, 3), from this frame to the parent's, with all coordinates at zero
    axes: tuple[Axes, ...]  # from the parent outward; empty for a fixed link
    mass: Expr
    centre: Matrix  # (3, 1), of mass
    inertia: Matrix  # (3, 3), about the centre
    place: Place = field(default_factory=calling_place)

    @property
    def terms(self) -> tuple[Basic, ...]:
        """All expressions of the link."""
        return self.position, self.rotation, self.mass, self.centre, self.inertia

    def statement(self) -> list[object]:
        """The content of the link as text, for the content hash."""
        axes = [axis.statement() for axis in self.axes]
        return [self.name, self.parent.name if self.parent else None, axes, *map(srepr, self.terms)]


ROUNDING = 1e-9  # a negative principal moment below this share of the largest one is a rounding error


def make_link(links: Sequence[Link], check: Terms, arguments: Mapping[str, Any]) -> Link:
    """A checked link. `links` are the earlier ones; `arguments` are those of `Robot.link`.

    Raises ModelError for a wrong name, parent, joint, axis, vector or inertia.
    """
    name = identifier(arguments["name"], "link")
    parent = arguments["on"]
    if any(link.name == name for link in links):
        raise mistake(f"there are two links named `{name}`; give the second another name.")
    if parent is not None:
        _require_link(parent, links, f"the link `{name}` stands on", "on=LINK, or leave it out for the ground")
    return Link(
        name,
        parent,
        _vector(arguments["at"], f"position of `{name}`", "m", check),
        _rotation(_vector(arguments["turned"], f"turn of `{name}`", "rad", check)),
        _joint_axes(name, arguments["joint"], _axis(arguments["axis"], name), links, check),
        check.coefficient(arguments["mass"], f"mass of `{name}`", "", "kg"),
        _vector(arguments["centre"], f"centre of `{name}`", "m", check),
        _inertia(arguments["inertia"], name, check),
    )


def push(check: Terms, links: Sequence[Link], link: object, force: object, at: object, torque: object) -> list[Load]:
    """The loads of a force and torque on a link, both in its frame, along every joint that carries it.

    Raises ModelError for something that is not a link of the robot, and for a link that no joint moves.
    """
    own = _require_link(link, links, "the force acts on", "robot.push(LINK, (fx, fy, fz))")
    name = own.name
    f = _vector(force, f"force on `{name}`", "N", check, "qvzu")
    t = _vector(torque, f"torque on `{name}`", "N m", check, "qvzu")
    t = t + _vector(at, f"point of the force on `{name}`", "m", check).cross(f)
    loads: list[Load] = []
    body: Link | None = own
    while body:
        axes = body.axes or (None,)
        poses = [(body.rotation, body.position), *[(eye(3), zeros(3, 1))] * (len(axes) - 1)]
        for axis, (rotation, position) in zip(reversed(axes), reversed(poses), strict=True):
            if axis:
                loads += [Load(each.along, each.axis.dot(t if each.turns else f)) for each in axis.motions]
                rotation, position = axis.placed(rotation, position)
            f = rotation * f
            t = rotation * t + position.cross(f)
        body = body.parent
    if not loads:
        raise mistake(f"no joint moves the link `{name}`, so that a force on it has no effect.")
    return [load for load in loads if load.force != 0]


def _require_link(link: object, links: Sequence[Link], what: str, write: str) -> Link:
    """The link. Raises ModelError for anything else than one of `links`."""
    if isinstance(link, Link) and any(link is own for own in links):
        return link
    raise mistake(
        f"{what} {getattr(link, 'name', repr(link))}, which is not a link of this robot. Write {write}, with the "
        "return value of an earlier robot.link(...)."
    )


def _joint_axes(name: str, joint: object, axis: Matrix, links: Sequence[Link], check: Terms) -> tuple[Axes, ...]:
    """The axes of the coordinates that move a link. No other link may have the same coordinate."""
    if isinstance(joint, Ball):
        return _spatial(name, joint, links, check)
    coordinates = tuple(joint) if isinstance(joint, tuple | list) else (joint,)
    kinds: dict[object, Kind] = {joint.symbol: joint.kind for joint in check.declared.coordinates}
    for coordinate in coordinates:
        if coordinate not in kinds:
            raise mistake(
                f"the link `{name}` is moved by {coordinate!r}, which is not a coordinate of this robot. Write the "
                "return value of robot.revolute(...) or robot.prismatic(...), or () for a fixed link."
            )
        mover = next((link.name for link in links for axis in link.axes if coordinate in axis.coordinates), None)
        if mover or coordinates.count(coordinate) > 1:
            raise mistake(
                f"the coordinate `{coordinate}` moves the link `{mover or name}` already; a joint of `{name}` needs a "
                "coordinate of its own."
            )
    kind = tuple(kinds[coordinate] for coordinate in coordinates)
    if kind not in JOINTS:
        known = "; ".join(" and ".join(kinds) or "nothing (fixed)" for kinds in JOINTS)
        raise mistake(
            f"the joint of `{name}` has the coordinates {' and '.join(kind)}. Joints are made of: {known}. For other "
            "joints, put links without mass in between."
        )
    return JOINTS[kind]([coordinate for coordinate in coordinates if isinstance(coordinate, Coordinate)], axis)


def _spatial(name: str, joint: Ball, links: Sequence[Link], check: Terms) -> tuple[Axes, ...]:
    """The axes of a ball or floating joint."""
    if not any(joint is declared for declared in check.declared.balls):
        raise mistake(f"the joint `{joint.name}` of `{name}` belongs to another robot.")
    mover = next((link.name for link in links for axis in link.axes if joint.quaternion[0] in axis.coordinates), None)
    if mover:
        raise mistake(f"the joint `{joint.name}` moves the link `{mover}` already; `{name}` needs its own.")
    slides = zip(joint.position, "xyz", strict=True) if isinstance(joint, Floating) else ()
    return (*(single(slide, "prismatic", Matrix(AXES[axis])) for slide, axis in slides), of_ball(joint))


def _axis(axis: object, name: str) -> Matrix:
    if isinstance(axis, str) and axis in AXES:
        return Matrix(AXES[axis])
    if isinstance(axis, str) or not isinstance(axis, tuple | list | MatrixBase) or len(axis) != 3:
        raise mistake(f"the axis of `{name}` is {axis!r}; write one of {', '.join(AXES)} or (x, y, z).")
    values = [number(component, f"axis of `{name}`") for component in axis]
    length = sum(component**2 for component in values) ** 0.5
    if not length:
        raise mistake(f"the axis of `{name}` is zero; write a direction such as (0, 0, 1).")
    unit = [component / length for component in values]
    return Matrix([int(component) if component in (-1, 0, 1) else S(component) for component in unit])


def _vector(value: object, what: str, unit: str, check: Terms, may_contain: str = "") -> Matrix:
    if not isinstance(value, tuple | list | MatrixBase) or len(value) != 3:
        raise mistake(f"the {what} is {value!r}; write three components, (x, y, z).")
    return Matrix([check.term(component, what, may_contain, unit) for component in value])


def _inertia(value: object, name: str, check: Terms) -> Matrix:
    what = f"inertia of `{name}`"
    entries = list(value) if isinstance(value, tuple | list) else [value] * 3
    if len(entries) not in (3, 6):
        raise mistake(
            f"the {what} has {len(entries)} entries; write (xx, yy, zz), (xx, yy, zz, xy, xz, yz), or one number for "
            "the same inertia about every axis."
        )
    xx, yy, zz = (check.coefficient(entry, what, "", "kg m^2") for entry in entries[:3])
    xy, xz, yz = (check.term(entry, what, "", "kg m^2") for entry in entries[3:]) if entries[3:] else [S.Zero] * 3
    inertia = Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    nominal = inertia.applyfunc(check.nominal).evalf()
    moments = mpmath.eigsy(mpmath.matrix(nominal.tolist()), eigvals_only=True)
    if moments[0] < -ROUNDING * moments[2]:
        raise mistake(
            f"the {what} has the principal moment {float(moments[0]):.4g} kg m^2, which cannot be negative. "
            "Check the signs of xy, xz and yz, and that they are in this order."
        )
    return inertia


def _rotation(turned: Matrix) -> Matrix:
    """The rotation by roll about x, then pitch about y, then yaw about z, axes of the parent."""
    result = eye(3)
    for axis, angle in zip(("x", "y", "z"), turned, strict=True):
        result = turn(Matrix(AXES[axis]), cos(angle), sin(angle)) * result
    return result


@dataclass(frozen=True)
class Point:
    """A point in the world frame or in the frame of a link."""

    name: str
    position: Matrix  # (3, 1), the height last
    link: Link | None  # None: the world frame
    place: Place = field(default_factory=calling_place)

    def statement(self) -> str:
        """The content of the line as text, for the content hash."""
        return f"{self.link.name if self.link else ''} {srepr(self.position)}"


def make_point(
    check: Terms, points: Sequence[Point], links: Sequence[Link], name: object, position: object, on: object
) -> Point:
    """The point of one `Robot.point(...)`. Raises ModelError if a point or a link already has its name."""
    named = identifier(name, "point")
    if named in {point.name for point in points} | {link.name for link in links}:
        raise mistake(f"there is a point or link named `{named}` already; give this point another name.")
    if on is not None:
        _require_link(on, links, f"the point `{named}` stands on", "on=LINK, or leave it out for the world frame")
    if not isinstance(position, tuple | list | MatrixBase) or len(position) not in ((3,) if on is not None else (2, 3)):
        wanted = "(x, y, z) in the link's frame" if on is not None else "(x, height) or (x, y, height)"
        raise mistake(f"the position of `{named}` is {position!r}; write {wanted}.")
    may_contain = "" if on is not None else "q"
    entries: list[Expr] = [
        check.smooth(component, f"position of `{named}`", may_contain, "m") for component in position
    ]
    if len(entries) == 2:
        entries.insert(1, S.Zero)
    return Point(named, Matrix(entries), on if isinstance(on, Link) else None)
