"""What a robot states besides its equations of motion: its energies, and where its named points are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr, Float, Matrix, S

from modelgen.derivation import link_energies
from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class StatedMechanics:
    """Expressions of state, parameters and definitions. The equations' own definitions stand before these.

    A system of SymPy's that states no potential energy may have its weights among its loads: `potential` and `weight`
    are then None.
    """

    definitions: tuple[Definition, ...]
    kinetic: Expr  # J
    potential: Expr | None  # J
    weight: Expr | None  # J, the potential energy without springs and couplings
    points: Mapping[str, Matrix]  # name -> position in the world (3, 1), m: links' origins, then stated points


def stated_mechanics(robot: Robot, equations: EquationsOfMotion) -> StatedMechanics:
    """The energies as `link_energies` and the file state them, independent of the equations of motion."""
    taken = {*robot.symbols, *(symbol.name for symbol, _ in equations.definitions)}
    definitions, kinetic, potential = link_energies.energies(robot.links, robot.downward_acceleration, taken)
    kinetic = sum((energy.value for energy in robot.kinetic), kinetic)
    elastic = sum((energy.value for energy in robot.potential if energy.elastic), S.Zero)
    weight = sum((energy.value for energy in robot.potential if not energy.elastic), potential)
    system = robot.system
    if system:
        kinetic, weight = kinetic + system.kinetic, weight + system.potential
    known = not (system and system.potential == 0)
    placed, points = _points(robot, {*taken, *(symbol.name for symbol, _ in definitions)})
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}

    def stated(expression: Expr | Matrix) -> Expr | Matrix:
        return expression.xreplace(system.rates if system else {}).xreplace(fixed)

    return StatedMechanics(
        definitions=tuple((symbol, stated(value)) for symbol, value in (*definitions, *placed)),
        kinetic=stated(kinetic),
        potential=stated(weight + elastic) if known else None,
        weight=stated(weight) if known else None,
        points={name: stated(position) for name, position in points.items()},
    )


def _points(robot: Robot, taken: set[str]) -> tuple[list[Definition], dict[str, Matrix]]:
    """Definitions, and the position of every point in the world."""
    names = Intermediates(taken)
    frames = frames_of(robot.links, names)
    worlds = dict(zip((frame.name for frame in frames), world_frames(frames, names), strict=True))
    points = {link.name: worlds[link.name][1] for link in robot.links}
    for point in robot.points:
        rotation, origin = worlds[point.link.name] if point.link else (Matrix.eye(3), Matrix.zeros(3, 1))
        points[point.name] = origin + rotation * point.position
    return names.definitions, points


def point_hashes(robot: Robot) -> dict[str, str]:
    """Name -> SHA-256 of what the file states of it. Links are part of the robot's content hash, so theirs are empty.

    Points are no part of the content hash: stating one more leaves the artifact as it is.
    """
    stated = {point.name: hashlib.sha256(point.statement().encode()).hexdigest() for point in robot.points}
    return {**dict.fromkeys((link.name for link in robot.links), ""), **stated}
