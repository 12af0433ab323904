"""Expressions of a robot besides its equations of motion: energies, and positions of its named points.

The energies follow from positions in the world frame. They are independent of the recursion in `newton_euler`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, zeros

from modelgen.derivation.equations import Definition, EquationsOfMotion, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, world_frames
from modelgen.errors import ModelError
from modelgen.statement.bodies import Link
from modelgen.statement.joints import BallAxes, Motion
from modelgen.statement.robot import Robot, fixed_values


def link_energies(
    links: Sequence[Link], gravity: Expr, taken: Iterable[str]
) -> tuple[tuple[Definition, ...], Expr, Expr]:
    """Definitions, kinetic energy and potential energy of a tree of links. No definition has a name in `taken`."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    moved_by: list[list[tuple[Motion, Expr, Matrix, Matrix]]] = []  # per frame: rate, axis and origin in the world
    kinetic = potential = S.Zero
    for frame, (rotation, origin) in zip(frames, world_frames(frames, names), strict=True):
        joints = list(moved_by[frame.parent]) if frame.parent is not None else []
        for motion, rate in zip(frame.motions, _rates(frame), strict=True):
            axis = names.vector(f"{frame.name}_axis{motion.suffix}", rotation * motion.axis)
            joints.append((motion, rate, axis, origin))
        moved_by.append(joints)
        omega, velocity = zeros(3, 1), zeros(3, 1)  # of the frame and of its origin
        for motion, rate, axis, centre in joints:
            if motion.turns:
                omega += rate * axis
                velocity += rate * axis.cross(origin - centre)
            else:
                velocity += rate * axis
        omega = names.vector(f"{frame.name}_omega", rotation.T * omega)
        velocity = names.vector(f"{frame.name}_velocity", rotation.T * velocity)
        kinetic += frame.mass * velocity.dot(velocity) / 2 + velocity.dot(omega.cross(frame.first_moment))
        kinetic += omega.dot(frame.inertia * omega) / 2
        potential += gravity * (frame.mass * origin[2] + (rotation * frame.first_moment)[2])
    return used(names.definitions, [kinetic, potential]), kinetic, potential


def _rates(frame: Frame) -> list[Expr]:
    """The speeds of a frame's joint by the rates of its coordinates."""
    joint = frame.joint
    return list(joint.ball.spin) if isinstance(joint, BallAxes) else [motion.speed for motion in frame.motions]


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
    _refuse_moving_points(robot, placed, points)
    fixed = fixed_values(robot)

    def final(expression: Expr | Matrix) -> Expr | Matrix:
        return expression.xreplace(fixed)

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


def _refuse_moving_points(robot: Robot, placed: Sequence[Definition], points: Mapping[str, Matrix]) -> None:
    """Raise ModelError for a point whose position depends on a coordinate that the state leaves out."""
    ignored = {joint.symbol for joint in robot.ignored}
    for name, position in points.items() if ignored else ():
        terms = [*position, *(value for _, value in used(placed, position))]
        moving = next((symbol for term in terms for symbol in term.free_symbols & ignored), None)
        if moving is not None:
            places = {each.name: each.place for each in robot.links} | {each.name: each.place for each in robot.points}
            raise ModelError(
                f"the point `{name}` moves with `{moving}`, which robot.ignore leaves out of the state. Remove the "
                "point, or robot.ignore.",
                places[name],
            )


def point_hashes(robot: Robot) -> dict[str, str]:
    """Name of a point -> SHA-256 of its line; empty for a link, which is part of the robot's content hash.

    Points are not part of the content hash: a further point leaves the artifact valid.
    """
    hashes = {point.name: hashlib.sha256(point.statement().encode()).hexdigest() for point in robot.points}
    return {**dict.fromkeys((link.name for link in robot.links), ""), **hashes}
