"""Where a robot is, as line segments in a vertical plane: what its file says with `draw`, or its masses and links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from sympy import Expr, Float, Integer

from modelgen.derivation.equations import Definition, used
from modelgen.derivation.newton_euler import outline
from modelgen.statement.figure import Point, projected
from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class Sketch:
    """Points by expressions of coordinates, parameters and definitions, and the pairs of them that are joined."""

    definitions: tuple[Definition, ...]
    points: tuple[Point, ...]
    segments: tuple[tuple[int, int], ...]


def sketch(robot: Robot) -> Sketch:
    """What the file draws; without a drawing, its bodies as rods, its point masses joined, and its links."""
    lines = list(robot.lines)
    definitions: tuple[Definition, ...] = ()
    if not lines:
        definitions, joined = outline(robot.links, robot.symbols)
        lines = [(projected(start), projected(end)) for start, end in joined] + robot.rods
        masses = [projected(position) for position in robot.masses]
        if masses:
            lines.append(tuple(masses if len(masses) > 1 else [(Integer(0), Integer(0)), *masses]))
    fixed = {constant.symbol: Float(constant.value) for constant in robot.constants if constant.fixed}
    folded = [tuple((across.xreplace(fixed), up.xreplace(fixed)) for across, up in line) for line in lines]
    points = list(dict.fromkeys(point for line in folded for point in line))
    number = {point: index for index, point in enumerate(points)}
    pairs = dict.fromkeys((number[a], number[b]) for line in folded for a, b in pairwise(line))
    named = tuple((symbol, value.xreplace(fixed)) for symbol, value in definitions)
    return Sketch(used(named, _entries(points)), tuple(points), tuple((a, b) for a, b in pairs if a != b))


def _entries(points: Iterable[Point]) -> list[Expr]:
    return [entry for point in points for entry in point]
