"""Links of a kinematic tree as a model file states them. A kind of joint is one entry of `JOINTS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
from sympy import Basic, Expr, Matrix, S, cos, eye, sin, sqrt, srepr, zeros

from modelgen.errors import ModelError, Place
from modelgen.statement.checker import identifier, number
from modelgen.statement.declared import Coordinate, Kind
from modelgen.statement.terms import Terms

AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "-x": (-1, 0, 0), "-y": (0, -1, 0), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class JointAxis:
    """One coordinate of a joint: it turns about an axis of the link's frame, or slides along it."""

    coordinate: Coordinate
    kind: Kind
    axis: Matrix  # (3, 1), of length one


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid link: the place of its frame in its parent's, the axes of its joint, and its inertia in its own frame."""

    name: str
    parent: Link | None  # None: the ground
    position: Matrix  # (3, 1), of the joint in the parent's frame
    rotation: Matrix  # (3, 3), from this frame to the parent's, all coordinates at zero
    axes: tuple[JointAxis, ...]  # from the parent outward; empty for a fixed link
    mass: Expr
    centre: Matrix  # (3, 1), of mass
    inertia: Matrix  # (3, 3), about the centre
    place: Place

    @property
    def terms(self) -> tuple[Basic, ...]:
        """All its expressions."""
        return self.position, self.rotation, self.mass, self.centre, self.inertia

    def statement(self) -> list[object]:
        """All that the line states, as text, for the content hash."""
        axes = [[each.coordinate.name, each.kind, srepr(each.axis)] for each in self.axes]
        return [self.name, self.parent.name if self.parent else None, axes, *map(srepr, self.terms)]


def _planar(coordinates: Sequence[Coordinate], axis: Matrix) -> tuple[JointAxis, ...]:
    """Forward, upward, then a turn about the axis: with the axis y, the plane of (x, height)."""
    forward = next((Matrix(each) for each in ((1, 0, 0), (0, 1, 0)) if axis.dot(Matrix(each)) == 0), None)
    forward = axis.cross(Matrix((0, 0, 1))) if forward is None else forward
    forward = forward / sqrt(forward.dot(forward))
    upward = axis.cross(forward)
    upward = -upward if sum(upward) < 0 else upward
    first, second, angle = coordinates
    return (
        JointAxis(first, "prismatic", forward),
        JointAxis(second, "prismatic", upward),
        JointAxis(angle, "revolute", axis),
    )


ROUNDING = 1e-9  # share of the largest principal moment below which a negative one is none

#: The kinds of a link's coordinates -> a function that makes the axes of its joint. Add a kind of joint here.
JOINTS: dict[tuple[Kind, ...], Callable[[Sequence[Coordinate], Matrix], tuple[JointAxis, ...]]] = {
    (): lambda _coordinates, _axis: (),
    ("revolute",): lambda coordinates, axis: (JointAxis(coordinates[0], "revolute", axis),),
    ("prismatic",): lambda coordinates, axis: (JointAxis(coordinates[0], "prismatic", axis),),
    ("prismatic", "prismatic", "revolute"): _planar,
}


def make_link(links: Sequence[Link], check: Terms, stated: Mapping[str, Any]) -> Link:
    """A checked link. `links` are the earlier ones; `stated` are the arguments of `Robot.link`, explained there."""
    place = check.place
    name = identifier(stated["name"], "link", place)
    parent = stated["on"]
    if any(link.name == name for link in links):
        raise ModelError(f"there are two links named `{name}`; give the second another name.", place)
    if parent is not None and not any(link is parent for link in links):
        raise ModelError(
            f"the link `{name}` stands on {getattr(parent, 'name', repr(parent))}, which is no link of this robot. "
            "Write on=LINK with what an earlier robot.link(...) returned, or leave it out for the ground.",
            place,
        )
    return Link(
        name,
        parent,
        _vector(stated["at"], f"position of `{name}`", "m", check),
        _rotation(_vector(stated["turned"], f"turn of `{name}`", "rad", check)),
        _joint_axes(name, stated["joint"], _axis(stated["axis"], name, place), links, check),
        check.coefficient(stated["mass"], f"mass of `{name}`", "", "kg"),
        _vector(stated["centre"], f"centre of `{name}`", "m", check),
        _inertia(stated["inertia"], name, check),
        place,
    )


def _joint_axes(name: str, joint: object, axis: Matrix, links: Sequence[Link], check: Terms) -> tuple[JointAxis, ...]:
    """The axes of the coordinates that move a link, each of which moves no other link."""
    coordinates = tuple(joint) if isinstance(joint, tuple | list) else (joint,)
    kinds: dict[object, Kind] = {each.symbol: each.kind for each in check.declared.joints}
    for each in coordinates:
        if each not in kinds:
            raise ModelError(
                f"the link `{name}` is moved by {each!r}, which is no coordinate of this robot. Write what "
                "robot.revolute(...) or robot.prismatic(...) returned, or () for a link that is fixed.",
                check.place,
            )
        mover = next((link.name for link in links for other in link.axes if other.coordinate == each), None)
        if mover or coordinates.count(each) > 1:
            raise ModelError(
                f"the coordinate `{each}` moves the link `{mover or name}` already; a joint of `{name}` needs a "
                "coordinate of its own.",
                check.place,
            )
    kind = tuple(kinds[each] for each in coordinates)
    if kind not in JOINTS:
        known = "; ".join(" and ".join(each) or "nothing (fixed)" for each in JOINTS)
        raise ModelError(
            f"no joint of `{name}` is made of {' and '.join(kind)}. Joints are made of: {known}. Put links without "
            "mass between for other joints.",
            check.place,
        )
    return JOINTS[kind]([each for each in coordinates if isinstance(each, Coordinate)], axis)


def _axis(axis: object, name: str, place: Place) -> Matrix:
    if isinstance(axis, str) and axis in AXES:
        return Matrix(AXES[axis])
    if isinstance(axis, str) or not isinstance(axis, tuple | list | Matrix) or len(axis) != 3:
        raise ModelError(f"the axis of `{name}` is {axis!r}; write one of {', '.join(AXES)} or (x, y, z).", place)
    values = [number(each, f"axis of `{name}`", place) for each in axis]
    length = sum(each**2 for each in values) ** 0.5
    if not length:
        raise ModelError(f"the axis of `{name}` is zero; write a direction such as (0, 0, 1).", place)
    unit = [each / length for each in values]
    return Matrix([int(each) if each in (-1, 0, 1) else S(each) for each in unit])


def _vector(value: object, what: str, unit: str, check: Terms) -> Matrix:
    if not isinstance(value, tuple | list | Matrix) or len(value) != 3:
        raise ModelError(f"the {what} is {value!r}; write three components, (x, y, z).", check.place)
    return Matrix([check.term(each, what, "", unit) for each in value])


def _inertia(value: object, name: str, check: Terms) -> Matrix:
    what = f"inertia of `{name}`"
    entries = list(value) if isinstance(value, tuple | list) else [value] * 3
    if len(entries) not in (3, 6):
        raise ModelError(
            f"the {what} has {len(entries)} entries; write (xx, yy, zz), (xx, yy, zz, xy, xz, yz), or one number for "
            "the same inertia about every axis.",
            check.place,
        )
    xx, yy, zz = (check.coefficient(each, what, "", "kg m^2") for each in entries[:3])
    xy, xz, yz = (check.term(each, what, "", "kg m^2") for each in entries[3:]) if entries[3:] else [S.Zero] * 3
    inertia = Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    nominal = inertia.applyfunc(check.nominal).evalf()
    moments = mpmath.eigsy(mpmath.matrix(nominal.tolist()), eigvals_only=True)
    if moments[0] < -ROUNDING * moments[2]:
        raise ModelError(
            f"the {what} has the principal moment {float(moments[0]):.4g} kg m^2; no body has a negative one. "
            "Check the signs of xy, xz and yz, and that they are in this order.",
            check.place,
        )
    return inertia


def _rotation(turned: Matrix) -> Matrix:
    """Roll about x, then pitch about y, then yaw about z, axes of the parent."""
    result = eye(3)
    for axis, angle in zip(("x", "y", "z"), turned, strict=True):
        result = turn(Matrix(AXES[axis]), cos(angle), sin(angle)) * result
    return result


def turn(axis: Matrix, cosine: Expr, sine: Expr) -> Matrix:
    """The rotation about an axis of length one."""
    outer = axis * axis.T
    result: Matrix = outer + cosine * (eye(3) - outer) + sine * skew(axis)
    return result


def skew(vector: Matrix) -> Matrix:
    """The matrix of the cross product by a vector."""
    x, y, z = vector
    result = zeros(3, 3)
    result[0, 1], result[0, 2], result[1, 2] = -z, y, -x
    result[1, 0], result[2, 0], result[2, 1] = z, -y, x
    return result
