"""Energies of a tree of links.

The energies follow from positions in the world frame. They are independent of the recursion in `newton_euler`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sympy import Expr, Matrix, S, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.derivation.frames import Intermediates, frames_of, world_frames
from modelgen.statement.bodies import JointAxis, Link


def link_energies(
    links: Sequence[Link], gravity: Expr, taken: Iterable[str]
) -> tuple[tuple[Definition, ...], Expr, Expr]:
    """Definitions, kinetic energy and potential energy of a tree of links. No definition has a name in `taken`."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    moved_by: list[list[tuple[JointAxis, Matrix, Matrix]]] = []  # per frame: joint, its axis and origin in the world
    kinetic = potential = S.Zero
    for frame, (rotation, origin) in zip(frames, world_frames(frames, names), strict=True):
        joints = list(moved_by[frame.parent]) if frame.parent is not None else []
        if frame.joint:
            joints.append((frame.joint, names.vector(f"{frame.name}_axis", rotation * frame.joint.axis), origin))
        moved_by.append(joints)
        omega, velocity = zeros(3, 1), zeros(3, 1)  # of the frame and of its origin
        for joint, axis, centre in joints:
            rate = joint.coordinate.rate
            if joint.kind == "revolute":
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
