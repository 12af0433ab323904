"""Frames of a tree of links: their poses relative to the parent and in the world frame, and the gaps of closed loops.

Line segments that show a robot in a vertical plane: the drawing of its file, or its bodies and links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sympy import Expr, Integer, Matrix, S, Symbol, cos, eye, sin, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.errors import ModelError, Place
from modelgen.statement.bodies import Link
from modelgen.statement.drawing import PlanePoint, projected
from modelgen.statement.joints import Axes, Motion, turn
from modelgen.statement.loops import Loop
from modelgen.statement.robot import Robot, fixed_values

LETTERS = "xyz"
ENTRIES = [(i, j) for i in range(3) for j in range(3)]


@dataclass(frozen=True)
class Frame:
    """A link, or a massless body between two coordinates of one link. It has one coordinate, a quaternion, or none."""

    name: str
    parent: int | None  # index of the parent; None: the ground
    position: Matrix  # (3, 1), in the parent's frame, at coordinate 0
    rotation: Matrix  # (3, 3), to the parent's frame, at coordinate 0
    joint: Axes | None
    mass: Expr
    first_moment: Matrix  # (3, 1), mass * centre
    inertia: Matrix  # about the frame's origin

    @property
    def motions(self) -> tuple[Motion, ...]:
        """The degrees of freedom of its joint."""
        return self.joint.motions if self.joint else ()


class Intermediates:
    """Names for intermediate expressions. `definitions` holds them in order.

    A number, a symbol or its negative needs no name and is returned unchanged.
    """

    def __init__(self, taken: Iterable[str]) -> None:
        self.definitions: list[Definition] = []
        self._taken = set(taken)

    def scalar(self, name: str, expression: Expr) -> Expr:
        """The symbol that replaces the expression."""
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        symbol = Symbol(name, real=True)
        self.definitions.append((symbol, expression))
        return symbol

    def vector(self, name: str, vector: Matrix) -> Matrix:
        """Symbols for three components, (3, 1)."""
        return Matrix([self.scalar(f"{name}_{LETTERS[i]}", vector[i]) for i in range(3)])

    def matrix(self, name: str, matrix: Matrix) -> Matrix:
        """Symbols for nine entries, (3, 3)."""
        return Matrix(3, 3, [self.scalar(f"{name}_{LETTERS[i]}{LETTERS[j]}", matrix[i, j]) for i, j in ENTRIES])

    def symmetric(self, name: str, matrix: Matrix) -> Matrix:
        """Symbols for the six different entries of a symmetric matrix, (3, 3)."""
        upper = {(i, j): self.scalar(f"{name}_{LETTERS[i]}{LETTERS[j]}", matrix[i, j]) for i, j in ENTRIES if i <= j}
        return Matrix(3, 3, lambda i, j: upper[min(i, j), max(i, j)])


def frames_of(links: Sequence[Link], names: Intermediates) -> list[Frame]:
    """One frame per coordinate of each link, and one for a fixed link. Parents come before children."""
    frames: list[Frame] = []
    last: dict[str, int] = {}  # link -> its frame
    for link in links:
        parent = last[link.parent.name] if link.parent else None
        position, rotation = link.position, names.matrix(f"{link.name}_turned", link.rotation)
        for joint in link.axes[:-1]:
            step = f"{link.name}_{joint.name}"
            frames.append(Frame(step, parent, position, rotation, joint, S.Zero, zeros(3, 1), zeros(3, 3)))
            parent, position, rotation = len(frames) - 1, zeros(3, 1), eye(3)
        c = link.centre
        moment = names.vector(f"{link.name}_moment", link.mass * c)
        about_origin = link.inertia + link.mass * (c.dot(c) * eye(3) - c * c.T)
        inertia = names.symmetric(f"{link.name}_inertia", about_origin)
        last_joint = link.axes[-1] if link.axes else None
        frames.append(Frame(link.name, parent, position, rotation, last_joint, link.mass, moment, inertia))
        last[link.name] = len(frames) - 1
    return frames


def placement(frame: Frame, names: Intermediates) -> tuple[Matrix, Matrix]:
    """The rotation to the parent's frame (3, 3) and the position of the origin in it (3, 1), at any coordinate."""
    joint = frame.joint
    if joint is None:
        return frame.rotation, frame.position
    if joint.kind == "ball":
        return names.matrix(f"{frame.name}_rotation", joint.placed(frame.rotation, frame.position)[0]), frame.position
    if joint.kind == "prismatic":
        return frame.rotation, names.vector(f"{frame.name}_position", joint.placed(frame.rotation, frame.position)[1])
    (q,), axis = joint.coordinates, joint.motions[0].axis
    cosine, sine = names.scalar(f"cos_{q}", cos(q)), names.scalar(f"sin_{q}", sin(q))
    return names.matrix(f"{frame.name}_rotation", frame.rotation * turn(axis, cosine, sine)), frame.position


def world_frames(frames: Sequence[Frame], names: Intermediates) -> list[tuple[Matrix, Matrix]]:
    """The rotation of each frame to the world frame (3, 3), and the position of its origin there (3, 1)."""
    worlds: list[tuple[Matrix, Matrix]] = []
    for frame in frames:
        rotation, position = placement(frame, names)
        turned, origin = worlds[frame.parent] if frame.parent is not None else (eye(3), zeros(3, 1))
        here = names.matrix(f"{frame.name}_world", turned * rotation)
        worlds.append((here, names.vector(f"{frame.name}_origin", origin + turned * position)))
    return worlds


@dataclass(frozen=True)
class Sketch:
    """Points as expressions of coordinates, parameters and definitions, and the pairs of points that are joined."""

    definitions: tuple[Definition, ...]
    points: tuple[PlanePoint, ...]
    places: tuple[Place, ...]  # per point: the line of the file that draws it, or the line of the robot
    segments: tuple[tuple[int, int], ...]


def sketch(robot: Robot) -> Sketch:
    """The drawing of the file. Without one: the bodies as rods, the point masses joined by lines, and the links."""
    lines = list(robot.lines)
    definitions: tuple[Definition, ...] = ()
    if not lines:
        definitions, joined = _outline(robot.links, robot.symbols)
        outline = [(projected(start), projected(end)) for start, end in joined] + robot.rods
        masses = [projected(position) for position in robot.masses]
        if masses:
            outline.append(tuple(masses if len(masses) > 1 else [(Integer(0), Integer(0)), *masses]))
        lines = [(line, robot.place) for line in outline]
    fixed = fixed_values(robot)
    folded = [tuple((across.xreplace(fixed), up.xreplace(fixed)) for across, up in line) for line, _ in lines]
    places: dict[PlanePoint, Place] = {}
    for line, (_, place) in zip(folded, lines, strict=True):
        places |= {point: place for point in line if point not in places}
    points = tuple(places)
    number = {point: index for index, point in enumerate(points)}
    pairs = dict.fromkeys((number[a], number[b]) for line in folded for a, b in pairwise(line))
    named = tuple((symbol, value.xreplace(fixed)) for symbol, value in definitions)
    entries = [entry for point in points for entry in point]
    segments = tuple((a, b) for a, b in pairs if a != b)
    return Sketch(used(named, entries), points, tuple(places.values()), segments)


def _outline(links: Sequence[Link], taken: Iterable[str]) -> tuple[tuple[Definition, ...], list[tuple[Matrix, Matrix]]]:
    """Definitions, and lines in the world frame: from joint to joint, and at a last link through its centre of mass."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    worlds = world_frames(frames, names)
    centres = {link.name: link.centre for link in links}
    lines = []
    for number, (frame, (rotation, origin)) in enumerate(zip(frames, worlds, strict=True)):
        slides = frame.joint is not None and frame.joint.kind == "prismatic"
        start = worlds[frame.parent][1] if frame.parent is not None else origin if slides else zeros(3, 1)
        lines.append((start, origin))
        if all(other.parent != number for other in frames):  # a uniform link is twice as long as the way to its centre
            lines.append((origin, origin + rotation * (2 * centres.get(frame.name, zeros(3, 1)))))
    return tuple(names.definitions), [(start, end) for start, end in lines if start != end]


def loop_gap(loop: Loop) -> Matrix:
    """The gap of a loop (3, 1), in m: from its first to its second end, in a frame that carries both.

    Of two links (6, 1): also the sine of the angle between their frames, times its axis. Raises ModelError for a ball
    joint in the loop.
    """
    links = [end if isinstance(end, Link) else end.link for end in loop.ends]
    lines = [_ancestors(link) for link in links]
    common = next((link for link in lines[0] if link in lines[1]), None)
    for link in lines[0] + lines[1]:
        between = link not in lines[0] or link not in lines[1]
        ball = next((joint for joint in link.axes if joint.kind == "ball"), None)
        if between and ball:
            raise ModelError(
                f"the loop passes the ball joint `{ball.name}` of the link `{link.name}`. Make it of three "
                "revolute joints, with links without mass in between.",
                loop.place,
            )
    places = [zeros(3, 1) if isinstance(end, Link) else end.position for end in loop.ends]
    first, second = (_carried(place, link, common) for place, link in zip(places, links, strict=True))
    gap = second - first
    if not loop.frames:
        return gap
    twist = sum((one.cross(other) for one, other in zip(*_axes(links), strict=True)), zeros(3, 1)) / 2
    return gap.col_join(twist)


def _axes(links: Sequence[Link | None]) -> list[list[Matrix]]:
    """The three axes of the frames of two links, in a frame that carries both."""
    common = next((link for link in _ancestors(links[0]) if link in _ancestors(links[1])), None)
    return [[_carried(eye(3)[:, k], link, common, at=False) for k in range(3)] for link in links]


def facing(loop: Loop) -> Expr:
    """1 + 2 cos of the angle between the frames of two links, whose sine is zero at half a turn too; 3 for points."""
    links = [end for end in loop.ends if isinstance(end, Link)]
    return sum((one.dot(other) for one, other in zip(*_axes(links), strict=True)), S.Zero) if links else S(3)


def _ancestors(link: Link | None) -> list[Link]:
    line = []
    while link is not None:
        line.append(link)
        link = link.parent
    return line


def _carried(vector: Matrix, link: Link | None, until: Link | None, at: bool = True) -> Matrix:
    """A point (3, 1) of a link's frame in the frame of the link `until`, None for the ground. at=False: a direction."""
    while link is not None and link is not until:
        for joint in (joint for joint in reversed(link.axes) if joint.kind != "ball"):
            rotation, position = joint.placed(eye(3), zeros(3, 1))
            vector = rotation * vector + (position if at else zeros(3, 1))
        vector = link.rotation * vector + (link.position if at else zeros(3, 1))
        link = link.parent
    return vector
