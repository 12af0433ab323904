"""Energies of a tree of links, and a second derivation of its equations of motion from them.

The energies follow from positions in the world frame. They are independent of the recursion in `newton_euler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

from sympy import Expr, Matrix, S, Symbol, preorder_traversal, zeros

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import Definition, EquationsOfMotion, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, world_frames
from modelgen.statement.bodies import BallAxes, Link, Motion
from modelgen.statement.declarations import Energy
from modelgen.statement.robot import Robot

LONGEST_EXPANDED = 400  # operations of an expanded kinetic energy; differentiating a longer one takes minutes


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


def by_energies(robot: Robot) -> EquationsOfMotion | None:
    """The equations of motion by Lagrange's equations; None if the expanded kinetic energy is too long."""
    definitions, *terms = link_energies(robot.links, robot.downward_acceleration, robot.symbols)
    if _expanded_length(definitions, terms[0]) > LONGEST_EXPANDED:
        return None
    known: dict[Symbol, Expr] = {}
    for symbol, value in definitions:
        known[symbol] = value.xreplace(known)
    kinetic, potential = (term.xreplace(known) for term in terms)
    without_links = copy(robot)
    without_links.links = []
    without_links.kinetic = [*robot.kinetic, Energy(kinetic, robot.place)]
    without_links.potential = [*robot.potential, Energy(potential, robot.place)]
    return equations_of_motion(without_links)


def _expanded_length(definitions: Sequence[Definition], expression: Expr) -> int:
    """The number of operations of an expression after substitution of its definitions, computed without it."""
    lengths: dict[Expr, int] = {}
    for symbol, value in (*definitions, (None, expression)):
        lengths[symbol] = int(value.count_ops()) + sum(lengths.get(node, 0) for node in preorder_traversal(value))
    return lengths[None]
