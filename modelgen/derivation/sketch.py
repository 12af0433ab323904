"""Line segments that show a robot in a vertical plane: the drawing of its file, or its bodies and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sympy import Float, Integer, Matrix, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.errors import Place
from modelgen.statement.bodies import Link
from modelgen.statement.drawing import PlanePoint, projected
from modelgen.statement.robot import Robot


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
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
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
