"""Energies of a tree of links.

The energies follow from positions in the world frame. They are independent of the recursion in `newton_euler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Expr, Matrix, S, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, world_frames
from modelgen.statement.bodies import BallAxes, Link, Motion


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
