"""Frames of a tree of links: their poses relative to the parent and in the world frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, Symbol, cos, eye, sin, zeros

from modelgen.derivation.equations import Definition
from modelgen.statement.bodies import BallAxes, JointAxis, Link, Motion, turn

LETTERS = "xyz"
ENTRIES = [(i, j) for i in range(3) for j in range(3)]


@dataclass(frozen=True)
class Frame:
    """A link, or a massless body between two coordinates of one link. It has one coordinate, a quaternion, or none."""

    name: str
    parent: int | None  # index of the parent; None: the ground
    position: Matrix  # (3, 1), in the parent's frame, at coordinate 0
    rotation: Matrix  # (3, 3), to the parent's frame, at coordinate 0
    joint: JointAxis | BallAxes | None
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
    if isinstance(joint, BallAxes):
        return names.matrix(f"{frame.name}_rotation", frame.rotation * joint.ball.rotation), frame.position
    q = joint.coordinate
    if joint.kind == "prismatic":
        return frame.rotation, names.vector(f"{frame.name}_position", frame.position + frame.rotation * joint.axis * q)
    cosine, sine = names.scalar(f"cos_{q}", cos(q)), names.scalar(f"sin_{q}", sin(q))
    return names.matrix(f"{frame.name}_rotation", frame.rotation * turn(joint.axis, cosine, sine)), frame.position


def world_frames(frames: Sequence[Frame], names: Intermediates) -> list[tuple[Matrix, Matrix]]:
    """The rotation of each frame to the world frame (3, 3), and the position of its origin there (3, 1)."""
    worlds: list[tuple[Matrix, Matrix]] = []
    for frame in frames:
        rotation, position = placement(frame, names)
        turned, origin = worlds[frame.parent] if frame.parent is not None else (eye(3), zeros(3, 1))
        here = names.matrix(f"{frame.name}_world", turned * rotation)
        worlds.append((here, names.vector(f"{frame.name}_origin", origin + turned * position)))
    return worlds
