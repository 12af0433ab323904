"""From a kinematic tree to its mass matrix and bias forces, recursively; every intermediate gets a name.

The bias forces (at zero acceleration) follow by Newton-Euler: velocities and accelerations outward, forces
inward. The mass matrix follows by composite rigid bodies. Both work in the frames of the links; see
Featherstone, Rigid Body Dynamics Algorithms, chapters 5 and 6. Nothing is expanded and nothing simplified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, Symbol, cos, eye, sin, zeros

from modelgen.derivation.equations import Definition, used
from modelgen.statement.links import Link, Motion, skew, turn

LETTERS = "xyz"


@dataclass(frozen=True)
class Recursion:
    """M and the bias c of M vdot + c = generalized forces, in the coordinates' order."""

    definitions: tuple[Definition, ...]
    mass_matrix: Matrix  # (n_q, n_q)
    bias: Matrix  # (n_q, 1)


@dataclass(frozen=True)
class Frame:
    """A link, or a massless step between two coordinates of one joint, with one coordinate at most."""

    name: str
    parent: int | None
    position: Matrix
    rotation: Matrix
    motion: Motion | None
    mass: Expr
    moment: Matrix  # mass * centre
    inertia: Matrix  # about the frame's origin


class Names:
    """Definitions as they are made; what is a number, a name or its negative already stays what it is."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.definitions: list[Definition] = []
        self._taken = set(taken)

    def scalar(self, name: str, expression: Expr) -> Expr:
        if expression.is_Atom or (-expression).is_Atom:
            return expression
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        symbol = Symbol(name, real=True)
        self.definitions.append((symbol, expression))
        return symbol

    def vector(self, name: str, vector: Matrix) -> Matrix:
        return Matrix([self.scalar(f"{name}_{LETTERS[i]}", vector[i]) for i in range(3)])

    def matrix(self, name: str, matrix: Matrix) -> Matrix:
        return Matrix(3, 3, [self.scalar(f"{name}_{LETTERS[i]}{LETTERS[j]}", matrix[i, j]) for i, j in _ALL])

    def symmetric(self, name: str, matrix: Matrix) -> Matrix:
        upper = {(i, j): self.scalar(f"{name}_{LETTERS[i]}{LETTERS[j]}", matrix[i, j]) for i, j in _ALL if i <= j}
        return Matrix(3, 3, lambda i, j: upper[min(i, j), max(i, j)])


_ALL = [(i, j) for i in range(3) for j in range(3)]


def recursion(links: Sequence[Link], coordinates: Sequence[Symbol], gravity: Expr, taken: Iterable[str]) -> Recursion:
    """Mass matrix and bias forces of a tree, gravity included in the bias; no name is among those `taken`."""
    names = Names(taken)
    frames = _frames(links, names)
    placed = [_placement(frame, names) for frame in frames]
    index = {coordinate: row for row, coordinate in enumerate(coordinates)}
    mass_matrix, bias = zeros(len(index), len(index)), zeros(len(index), 1)
    forces = _newton_euler(frames, placed, gravity, names)
    bodies = _composite(frames, placed, names)
    for number, frame in enumerate(frames):
        if frame.motion is None:
            continue
        row = index[frame.motion.coordinate]
        bias[row] = names.scalar(f"{frame.name}_bias", _along(frame.motion, *forces[number]))
        for other, value in _column(number, frames, placed, bodies[number], names):
            mass_matrix[row, index[other]] = mass_matrix[index[other], row] = value
    needed = used(names.definitions, [*mass_matrix, *bias])
    return Recursion(needed, mass_matrix, bias)


def energies(links: Sequence[Link], gravity: Expr, taken: Iterable[str]) -> tuple[tuple[Definition, ...], Expr, Expr]:
    """Definitions, kinetic and potential energy, from positions in the world: what the recursion is checked by."""
    names = Names(taken)
    frames = _frames(links, names)
    moved_by: list[list[tuple[Motion, Matrix, Matrix]]] = []  # motion, its axis and its origin in the world
    kinetic = potential = S.Zero
    for frame, (here, origin) in zip(frames, _worlds(frames, names), strict=True):
        motions = list(moved_by[frame.parent]) if frame.parent is not None else []
        if frame.motion:
            motions.append((frame.motion, names.vector(f"{frame.name}_axis", here * frame.motion.axis), origin))
        moved_by.append(motions)
        spin, velocity = zeros(3, 1), zeros(3, 1)  # of the frame's origin
        for motion, axis, centre in motions:
            rate = motion.coordinate.rate
            spin += rate * axis if motion.kind == "revolute" else zeros(3, 1)
            velocity += rate * (axis.cross(origin - centre) if motion.kind == "revolute" else axis)
        spin = names.vector(f"{frame.name}_spin", here.T * spin)
        velocity = names.vector(f"{frame.name}_velocity", here.T * velocity)
        kinetic += frame.mass * velocity.dot(velocity) / 2 + velocity.dot(spin.cross(frame.moment))
        kinetic += spin.dot(frame.inertia * spin) / 2
        potential += gravity * (frame.mass * origin[2] + (here * frame.moment)[2])
    return used(names.definitions, [kinetic, potential]), kinetic, potential


def outline(links: Sequence[Link], taken: Iterable[str]) -> tuple[tuple[Definition, ...], list[tuple[Matrix, Matrix]]]:
    """Definitions, and lines in the world: joint to joint, and at the ends of the tree through the centre of mass."""
    names = Names(taken)
    frames = _frames(links, names)
    worlds = _worlds(frames, names)
    centres = {link.name: link.centre for link in links}
    lines = []
    for number, (frame, (rotation, origin)) in enumerate(zip(frames, worlds, strict=True)):
        slides = frame.motion is not None and frame.motion.kind == "prismatic"
        start = worlds[frame.parent][1] if frame.parent is not None else origin if slides else zeros(3, 1)
        lines.append((start, origin))
        if all(other.parent != number for other in frames):  # a uniform link ends twice as far away as its centre
            lines.append((origin, origin + rotation * (2 * centres.get(frame.name, zeros(3, 1)))))
    return tuple(names.definitions), [(start, end) for start, end in lines if start != end]


def _worlds(frames: Sequence[Frame], names: Names) -> list[tuple[Matrix, Matrix]]:
    """Every frame's rotation to the world's, and its origin there."""
    worlds: list[tuple[Matrix, Matrix]] = []
    for frame in frames:
        rotation, position = _placement(frame, names)
        turned, origin = worlds[frame.parent] if frame.parent is not None else (eye(3), zeros(3, 1))
        here = names.matrix(f"{frame.name}_world", turned * rotation)
        worlds.append((here, names.vector(f"{frame.name}_origin", origin + turned * position)))
    return worlds


def _frames(links: Sequence[Link], names: Names) -> list[Frame]:
    """One frame a coordinate; parents before children."""
    frames: list[Frame] = []
    last: dict[str, int] = {}  # link -> its frame
    for link in links:
        parent = last[link.parent.name] if link.parent else None
        position, rotation = link.position, names.matrix(f"{link.name}_turned", link.rotation)
        for motion in link.motions[:-1]:
            step = f"{link.name}_{motion.coordinate}"
            frames.append(Frame(step, parent, position, rotation, motion, S.Zero, zeros(3, 1), zeros(3, 3)))
            parent, position, rotation = len(frames) - 1, zeros(3, 1), eye(3)
        c = link.centre
        moment = names.vector(f"{link.name}_moment", link.mass * c)
        about_origin = link.inertia + link.mass * (c.dot(c) * eye(3) - c * c.T)
        inertia = names.symmetric(f"{link.name}_inertia", about_origin)
        last_motion = link.motions[-1] if link.motions else None
        frames.append(Frame(link.name, parent, position, rotation, last_motion, link.mass, moment, inertia))
        last[link.name] = len(frames) - 1
    return frames


def _placement(frame: Frame, names: Names) -> tuple[Matrix, Matrix]:
    """Rotation from the frame to its parent's, and the position of its origin there."""
    motion = frame.motion
    if motion is None:
        return frame.rotation, frame.position
    q = motion.coordinate
    if motion.kind == "prismatic":
        return frame.rotation, names.vector(f"{frame.name}_position", frame.position + frame.rotation * motion.axis * q)
    cosine, sine = names.scalar(f"cos_{q}", cos(q)), names.scalar(f"sin_{q}", sin(q))
    return names.matrix(f"{frame.name}_rotation", frame.rotation * turn(motion.axis, cosine, sine)), frame.position


def _along(motion: Motion, force: Matrix, torque: Matrix) -> Expr:
    return motion.axis.dot(torque if motion.kind == "revolute" else force)


def _newton_euler(
    frames: Sequence[Frame], placed: Sequence[tuple[Matrix, Matrix]], gravity: Expr, names: Names
) -> list[tuple[Matrix, Matrix]]:
    """Force and torque that each frame's joint passes on at zero accelerations, in the frame, at its origin."""
    none = zeros(3, 1)
    spins: list[Matrix] = []
    twists: list[Matrix] = []  # angular accelerations
    origins: list[Matrix] = []  # accelerations of the origins, gravity taken for one of the ground
    fields: list[Matrix] = []  # the acceleration at r beside that of the origin is field * r
    forces: list[Matrix] = []
    torques: list[Matrix] = []
    for frame, (rotation, position) in zip(frames, placed, strict=True):
        at, p = frame.name, frame.parent
        spin = names.vector(f"{at}_carried", rotation.T * spins[p]) if p is not None else none
        twist = rotation.T * twists[p] if p is not None else none
        ground = Matrix([0, 0, gravity])
        origin = rotation.T * (origins[p] + fields[p] * position) if p is not None else rotation.T * ground
        if frame.motion:
            rate = frame.motion.axis * frame.motion.coordinate.rate
            if frame.motion.kind == "revolute":
                twist, spin = twist + spin.cross(rate), spin + rate
            else:
                origin += 2 * spin.cross(rate)
        w = names.vector(f"{at}_spin", spin)
        alpha = names.vector(f"{at}_twist", twist)
        a = names.vector(f"{at}_acceleration", origin)
        squares = names.symmetric(f"{at}_squares", w * w.T)
        field = names.matrix(f"{at}_field", skew(alpha) + squares - squares.trace() * eye(3))
        momentum = names.vector(f"{at}_momentum", frame.inertia * w)
        forces.append(frame.mass * a + field * frame.moment)
        torques.append(frame.inertia * alpha + w.cross(momentum) + frame.moment.cross(a))
        for each, value in zip((spins, twists, origins, fields), (w, alpha, a, field), strict=True):
            each.append(value)
    for number in reversed(range(len(frames))):
        frame, (rotation, position) = frames[number], placed[number]
        forces[number] = names.vector(f"{frame.name}_force", forces[number])
        torques[number] = names.vector(f"{frame.name}_torque", torques[number])
        if frame.parent is not None:
            passed = names.vector(f"{frame.name}_passed", rotation * forces[number])
            forces[frame.parent] += passed
            torques[frame.parent] += rotation * torques[number] + position.cross(passed)
    return list(zip(forces, torques, strict=True))


def _composite(
    frames: Sequence[Frame], placed: Sequence[tuple[Matrix, Matrix]], names: Names
) -> list[tuple[Expr, Matrix, Matrix]]:
    """Mass, first moment and inertia of each frame together with all that it carries, about its origin."""
    masses = [frame.mass for frame in frames]
    moments = [frame.moment for frame in frames]
    inertias = [frame.inertia for frame in frames]
    for number in reversed(range(len(frames))):
        at, p, (rotation, position) = frames[number].name, frames[number].parent, placed[number]
        mass = masses[number] = names.scalar(f"{at}_carried_mass", masses[number])
        moment = moments[number] = names.vector(f"{at}_carried_moment", moments[number])
        inertia = inertias[number] = names.symmetric(f"{at}_carried_inertia", inertias[number])
        if p is None:
            continue
        turned = names.vector(f"{at}_turned_moment", rotation * moment)
        half = names.matrix(f"{at}_half_turned", rotation * inertia)
        # Both shifts at once: the masses lie at position + r, and `turned` is the sum of mass * r.
        shift = names.vector(f"{at}_shift", turned + mass * position / 2)
        mixed = position * shift.T
        masses[p] += mass
        moments[p] += turned + mass * position
        inertias[p] += half * rotation.T + 2 * mixed.trace() * eye(3) - mixed - mixed.T
    return list(zip(masses, moments, inertias, strict=True))


def _column(
    number: int,
    frames: Sequence[Frame],
    placed: Sequence[tuple[Matrix, Matrix]],
    body: tuple[Expr, Matrix, Matrix],
    names: Names,
) -> list[tuple[Symbol, Expr]]:
    """One frame's entries of the mass matrix: the forces on the joints below it at its own unit acceleration."""
    own = frames[number].motion
    assert own
    mass, moment, inertia = body
    if own.kind == "revolute":
        force, torque = own.axis.cross(moment), inertia * own.axis
    else:
        force, torque = mass * own.axis, moment.cross(own.axis)
    entries = []
    at: int | None = number
    while at is not None:
        frame, (rotation, position) = frames[at], placed[at]
        label = f"{frames[number].name}_on_{frame.name}"
        force, torque = names.vector(f"{label}_force", force), names.vector(f"{label}_torque", torque)
        if frame.motion:
            entries.append((frame.motion.coordinate, names.scalar(label, _along(frame.motion, force, torque))))
        force = names.vector(f"{label}_passed", rotation * force)
        torque = rotation * torque + position.cross(force)
        at = frame.parent
    return entries
