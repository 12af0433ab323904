"""Joints: coordinates with their limits, and the axes along and about which they move a link.

To add a kind of joint, add an entry to `JOINTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sympy import Expr, Float, ImmutableMatrix, Matrix, Symbol, cos, eye, sin, sqrt, srepr, zeros

from modelgen.errors import Place, calling_place, mistake
from modelgen.metadata import RATE
from modelgen.statement.checker import number

Kind = Literal["revolute", "prismatic", "quaternion"]
UNITS = {"revolute": "rad", "prismatic": "m", "quaternion": "1"}
#: Largest limits of coordinates and rates. No robot moves farther, and the solver samples the whole domain.
LARGEST, LARGEST_RATE = {"revolute": 100.0, "prismatic": 1e6, "quaternion": 1.0}, 1e6
RATE_UNITS = {"revolute": "rad/s", "prismatic": "m/s", "quaternion": "Hz"}


class Coordinate(Symbol):  # type: ignore[misc]
    """A generalized coordinate: a SymPy symbol with the symbol of its rate."""

    @property
    def rate(self) -> Symbol:
        """The symbol of the coordinate's rate, named NAME_rate."""
        return Symbol(f"{self.name}{RATE}", real=True)

    def diff(self, *symbols: Any, **assumptions: Any) -> Expr:
        """The derivative by symbols. Raises ModelError for one by time, which the symbol does not contain."""
        if not symbols or symbols[0] == Symbol("t"):  # the time of SymPy; what a robot declares is real
            raise mistake(f"`{self.name}` is a symbol and no function of time; write `{self.name}.rate` for its rate.")
        return super().diff(*symbols, **assumptions)


@dataclass(frozen=True)
class Joint:
    """A declared coordinate."""

    symbol: Coordinate
    kind: Kind
    limit: float
    rate_limit: float | None  # None: its rate is not an entry of the state
    continuous: bool
    meaning: str
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Speed:
    """An entry of v: the rate of a coordinate, or a speed declared for a system of sympy.physics.mechanics."""

    symbol: Symbol
    unit: str
    limit: float
    meaning: str
    place: Place = field(default_factory=calling_place)


@dataclass(frozen=True)
class Ball:
    """A joint with three rotations: a unit quaternion (w, x, y, z), and the angular velocity in the moved frame."""

    name: str
    quaternion: tuple[Coordinate, ...]  # (4,)
    turn: tuple[Coordinate, ...]  # (3,) small turns about the axes of the moved frame; only their rates are states
    limit: float  # rad, from the target; pi: any rotation
    rate_limits: tuple[float, ...]  # (3,) rad/s
    meaning: str
    place: Place = field(default_factory=calling_place)

    @property
    def rate(self) -> Matrix:
        """The angular velocity (3, 1), rad/s, in the moved frame."""
        return Matrix([turn.rate for turn in self.turn])

    @property
    def rotation(self) -> Matrix:
        """The rotation matrix (3, 3) from the moved frame to the frame before it."""
        w, x, y, z = self.quaternion
        return Matrix(
            [
                [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)],
            ]
        )

    def away(self, target: Sequence[float] = (0, 0, 0)) -> Matrix:
        """The turn (3, 1) from a target to the joint's rotation, for squares in a state cost.

        target: (roll, pitch, yaw) in rad. Its length is 2 sin(angle / 2), and its sign that of the quaternion.
        """
        w, x, y, z = (Float(entry) for entry in quaternion_of(target, f"target of `{self.name}`"))
        return 2 * Matrix([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]]) * Matrix(self.quaternion)

    @property
    def speeds(self) -> tuple[Speed, ...]:
        """The entries of v."""
        return tuple(
            Speed(rate, "rad/s", limit, f"angular velocity of {self.name} about its {axis} axis", self.place)
            for rate, limit, axis in zip(self.rate, self.rate_limits, "xyz", strict=True)
        )

    @property
    def quaternion_rates(self) -> dict[Symbol, Expr]:
        """Rate of each entry of the quaternion: half its product with the angular velocity."""
        return dict(zip((entry.rate for entry in self.quaternion), self._kinematics * self.rate / 2, strict=True))

    @property
    def spin(self) -> Matrix:
        """The angular velocity (3, 1) by the rates of the quaternion."""
        return 2 * self._kinematics.T * Matrix([entry.rate for entry in self.quaternion])

    @property
    def _kinematics(self) -> Matrix:
        w, x, y, z = self.quaternion
        return Matrix([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])


@dataclass(frozen=True)
class Floating(Ball):
    """A joint without restriction: three displacements along the axes of the frame before it, and a rotation."""

    position: ImmutableMatrix = field(default_factory=ImmutableMatrix)  # (3, 1) of coordinates

    @property
    def velocity(self) -> Matrix:
        """The rates (3, 1) of the displacements."""
        return Matrix([entry.rate for entry in self.position])


def quaternion_of(angles: object, what: str) -> tuple[float, ...]:
    """The unit quaternion (4,), w >= 0, of (roll, pitch, yaw): about x, then y, then z, axes of the frame before."""
    if not isinstance(angles, tuple | list) or len(angles) != 3:
        raise mistake(f"the {what} is {angles!r}; write (roll, pitch, yaw) in rad.")
    halves = [number(angle, what) / 2 for angle in angles]
    (cr, cp, cy), (sr, sp, sy) = map(math.cos, halves), map(math.sin, halves)
    entries = (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )
    return entries if entries[0] >= 0 else tuple(-entry for entry in entries)


AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "-x": (-1, 0, 0), "-y": (0, -1, 0), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class Motion:
    """One degree of freedom of a joint, along or about an axis of the link's frame."""

    along: Coordinate  # the displacement along which a force acts
    turns: bool  # about the axis; False: along it
    axis: Matrix  # (3, 1), of length one
    suffix: str = ""  # of names that it gives

    @property
    def speed(self) -> Symbol:
        """The rate of the displacement."""
        return self.along.rate


@dataclass(frozen=True)
class Axes:
    """What moves a link: a rotation about an axis of its frame, a translation along one, or any rotation of a ball."""

    name: str
    kind: Literal["revolute", "prismatic", "ball"]
    coordinates: tuple[Coordinate, ...]  # one, or a quaternion
    motions: tuple[Motion, ...]
    ball: Ball | None = None

    @property
    def rate(self) -> Matrix:
        """The velocity (3, 1), angular or linear, relative to the frame before it."""
        return sum((motion.axis * motion.speed for motion in self.motions), zeros(3, 1))

    def placed(self, rotation: Matrix, position: Matrix) -> tuple[Matrix, Matrix]:
        """The pose of the moved frame, from that at coordinate 0."""
        if self.ball:
            return rotation * self.ball.rotation, position
        (q,), axis = self.coordinates, self.motions[0].axis
        if self.kind == "prismatic":
            return rotation, position + rotation * axis * q
        return rotation * turn(axis, cos(q), sin(q)), position

    def statement(self) -> list[str]:
        """The content as text, for the content hash."""
        return [self.name, self.kind, *(srepr(motion.axis) for motion in self.motions if not self.ball)]


def single(coordinate: Coordinate, kind: Literal["revolute", "prismatic"], axis: Matrix) -> Axes:
    """The axis (3, 1) of one coordinate."""
    return Axes(str(coordinate.name), kind, (coordinate,), (Motion(coordinate, kind == "revolute", axis),))


def of_ball(ball: Ball) -> Axes:
    """The three axes of a ball joint."""
    motions = (Motion(turn, True, Matrix(AXES[axis]), f"_{axis}") for turn, axis in zip(ball.turn, "xyz", strict=True))
    return Axes(ball.name, "ball", ball.quaternion, tuple(motions), ball)


def _planar(coordinates: Sequence[Coordinate], axis: Matrix) -> tuple[Axes, ...]:
    """Forward, upward, then a rotation about the axis. With the axis y, this is the plane of (x, height)."""
    horizontal = (Matrix((1, 0, 0)), Matrix((0, 1, 0)))
    forward = next((direction for direction in horizontal if axis.dot(direction) == 0), None)
    forward = axis.cross(Matrix((0, 0, 1))) if forward is None else forward
    forward = forward / sqrt(forward.dot(forward))
    upward = axis.cross(forward)
    upward = -upward if sum(upward) < 0 else upward
    first, second, angle = coordinates
    return single(first, "prismatic", forward), single(second, "prismatic", upward), single(angle, "revolute", axis)


#: The kinds of a joint's coordinates -> a function that makes its axes. Add a kind of joint here.
JOINTS: dict[tuple[Kind, ...], Callable[[Sequence[Coordinate], Matrix], tuple[Axes, ...]]] = {
    (): lambda _coordinates, _axis: (),
    ("revolute",): lambda coordinates, axis: (single(coordinates[0], "revolute", axis),),
    ("prismatic",): lambda coordinates, axis: (single(coordinates[0], "prismatic", axis),),
    ("prismatic", "prismatic", "revolute"): _planar,
}


def turn(axis: Matrix, cosine: Expr, sine: Expr) -> Matrix:
    """The rotation matrix (3, 3) about an axis of length one."""
    outer = axis * axis.T
    result: Matrix = outer + cosine * (eye(3) - outer) + sine * skew(axis)
    return result


def skew(vector: Matrix) -> Matrix:
    """The matrix (3, 3) of the cross product with a vector."""
    x, y, z = vector
    result = zeros(3, 3)
    result[0, 1], result[0, 2], result[1, 2] = -z, y, -x
    result[1, 0], result[2, 0], result[2, 1] = z, -y, x
    return result
