"""Expressions of a robot besides its equations of motion: energies, and positions of its named points."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from sympy import Expr, Float, Matrix, S

from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.derivation.link_energies import link_energies
from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class MechanicsExpressions:
    """Expressions of state, parameters and definitions. The definitions of the equations of motion come first.

    A system of sympy.physics.mechanics without a potential energy may have its weights among its loads: `potential`
    and `weight` are then None.
    """

    definitions: tuple[Definition, ...]
    kinetic: Expr  # J
    potential: Expr | None  # J
    weight: Expr | None  # J, the potential energy without springs and couplings
    points: Mapping[str, Matrix]  # name -> position in the world (3, 1), m: origins of the links, then named points


def mechanics_expressions(robot: Robot, equations: EquationsOfMotion) -> MechanicsExpressions:
    """Energies of the links and of the file, independent of the equations of motion, and positions of the points."""
    taken = {*robot.symbols, *(symbol.name for symbol, _ in equations.definitions)}
    definitions, kinetic, potential = link_energies(robot.links, robot.downward_acceleration, taken)
    kinetic = sum((energy.value for energy in robot.kinetic), kinetic)
    elastic = sum((energy.value for energy in robot.potential if energy.elastic), S.Zero)
    weight = sum((energy.value for energy in robot.potential if not energy.elastic), potential)
    system = robot.system
    if system:
        kinetic, weight = kinetic + system.kinetic, weight + system.potential
    known = not (system and system.potential == 0)
    placed, points = _points(robot, {*taken, *(symbol.name for symbol, _ in definitions)})
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    rates = robot.rates

    def final(expression: Expr | Matrix) -> Expr | Matrix:
        return expression.xreplace(rates).xreplace(fixed)

    return MechanicsExpressions(
        definitions=tuple((symbol, final(value)) for symbol, value in (*definitions, *placed)),
        kinetic=final(kinetic),
        potential=final(weight + elastic) if known else None,
        weight=final(weight) if known else None,
        points={name: final(position) for name, position in points.items()},
    )


def _points(robot: Robot, taken: set[str]) -> tuple[list[Definition], dict[str, Matrix]]:
    """Definitions, and the position of each point in the world frame."""
    names = Intermediates(taken)
    frames = frames_of(robot.links, names)
    worlds = dict(zip((frame.name for frame in frames), world_frames(frames, names), strict=True))
    points = {link.name: worlds[link.name][1] for link in robot.links}
    for point in robot.points:
        rotation, origin = worlds[point.link.name] if point.link else (Matrix.eye(3), Matrix.zeros(3, 1))
        points[point.name] = origin + rotation * point.position
    return names.definitions, points


def point_hashes(robot: Robot) -> dict[str, str]:
    """Name of a point -> SHA-256 of its line; empty for a link, which is part of the robot's content hash.

    Points are not part of the content hash: a further point leaves the artifact valid.
    """
    hashes = {point.name: hashlib.sha256(point.statement().encode()).hexdigest() for point in robot.points}
    return {**dict.fromkeys((link.name for link in robot.links), ""), **hashes}
