"""The line segments that show a robot, in a vertical plane: those its file draws, or its masses and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sympy import Float, Integer, Matrix, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.statement.figure import Point, projected
from modelgen.statement.links import Link
from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class Sketch:
    """Points as expressions of coordinates, parameters and definitions, and the pairs of them that are joined."""

    definitions: tuple[Definition, ...]
    points: tuple[Point, ...]
    segments: tuple[tuple[int, int], ...]


def sketch(robot: Robot) -> Sketch:
    """The drawing of the file; without one, its bodies as rods, its point masses joined by lines, and its links."""
    lines = list(robot.lines)
    definitions: tuple[Definition, ...] = ()
    if not lines:
        definitions, joined = _outline(robot.links, robot.symbols)
        lines = [(projected(start), projected(end)) for start, end in joined] + robot.rods
        masses = [projected(position) for position in robot.masses]
        if masses:
            lines.append(tuple(masses if len(masses) > 1 else [(Integer(0), Integer(0)), *masses]))
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    folded = [tuple((across.xreplace(fixed), up.xreplace(fixed)) for across, up in line) for line in lines]
    points = list(dict.fromkeys(point for line in folded for point in line))
    number = {point: index for index, point in enumerate(points)}
    pairs = dict.fromkeys((number[a], number[b]) for line in folded for a, b in pairwise(line))
    named = tuple((symbol, value.xreplace(fixed)) for symbol, value in definitions)
    entries = [entry for point in points for entry in point]
    return Sketch(used(named, entries), tuple(points), tuple((a, b) for a, b in pairs if a != b))


def _outline(links: Sequence[Link], taken: Iterable[str]) -> tuple[tuple[Definition, ...], list[tuple[Matrix, Matrix]]]:
    """Definitions, and lines in the world: joint to joint, and at the ends of the tree through the centre of mass."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    worlds = world_frames(frames, names)
    centres = {link.name: link.centre for link in links}
    lines = []
    for number, (frame, (rotation, origin)) in enumerate(zip(frames, worlds, strict=True)):
        slides = frame.joint is not None and frame.joint.kind == "prismatic"
        start = worlds[frame.parent][1] if frame.parent is not None else origin if slides else zeros(3, 1)
        lines.append((start, origin))
        if all(other.parent != number for other in frames):  # a uniform link ends twice as far away as its centre
            lines.append((origin, origin + rotation * (2 * centres.get(frame.name, zeros(3, 1)))))
    return tuple(names.definitions), [(start, end) for start, end in lines if start != end]
