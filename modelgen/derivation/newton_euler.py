"""The mass matrix and bias forces of a tree of links by recursive algorithms. Every intermediate has a name.

The bias forces are those at zero acceleration. They follow by the recursive Newton-Euler algorithm: velocities and
accelerations from the ground outward, forces back inward. The mass matrix follows by the composite-rigid-body
algorithm. Both work in the frames of the links (Featherstone, Rigid Body Dynamics Algorithms, chapters 5 and 6).
Nothing is expanded or simplified.

Lagrange's equations: the mass matrix and forces of kinetic and potential energies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sympy import Expr, Matrix, S, Symbol, eye, factor_terms, zeros

from modelgen.derivation.equations import Definition, collapsed, is_expandable, used
from modelgen.derivation.frames import Frame, Intermediates, frames_of, placement
from modelgen.errors import ModelError, abridged
from modelgen.statement.bodies import Link
from modelgen.statement.declared import Energy
from modelgen.statement.joints import Motion, skew

Placements = Sequence[tuple[Matrix, Matrix]]  # per frame: rotation to the parent's frame, position of the origin there


@dataclass(frozen=True)
class LinkEquations:
    """M and the bias c of M vdot + c = generalized forces, in the order of the speeds."""

    definitions: tuple[Definition, ...]
    mass_matrix: Matrix  # (n_v, n_v)
    bias: Matrix  # (n_v, 1)


def newton_euler(links: Sequence[Link], speeds: Sequence[Symbol], gravity: Expr, taken: Iterable[str]) -> LinkEquations:
    """Mass matrix and bias forces of a tree; the bias includes gravity. No intermediate has a name in `taken`."""
    names = Intermediates(taken)
    frames = frames_of(links, names)
    placements = [placement(frame, names) for frame in frames]
    index = {speed: row for row, speed in enumerate(speeds)}
    mass_matrix, bias = zeros(len(index), len(index)), zeros(len(index), 1)
    forces = _bias_forces(frames, placements, gravity, names)
    bodies = _composite_bodies(frames, placements, names)
    for number, frame in enumerate(frames):
        for motion in frame.motions:
            row = index[motion.speed]
            bias[row] = names.scalar(f"{frame.name}_bias{motion.suffix}", _along(motion, *forces[number]))
            for other, value in _mass_matrix_entries(number, motion, frames, placements, bodies[number], names):
                mass_matrix[row, index[other]] = mass_matrix[index[other], row] = value
    needed = used(names.definitions, [*mass_matrix, *bias])
    return LinkEquations(needed, mass_matrix, bias)


def _along(motion: Motion, force: Matrix, torque: Matrix) -> Expr:
    """The component of a force and torque along a degree of freedom of a joint."""
    return motion.axis.dot(torque if motion.turns else force)


def _bias_forces(
    frames: Sequence[Frame], placements: Placements, gravity: Expr, names: Intermediates
) -> list[tuple[Matrix, Matrix]]:
    """The force and torque that each frame's joint transmits at zero vdot, in the frame, about its origin.

    The ground accelerates upward by `gravity`, which replaces the weights. At the offset r from a frame's origin the
    acceleration is acceleration + gradient r, with gradient = skew(alpha) + omega omega' - |omega|^2 I.
    """
    motions: list[tuple[Matrix, Matrix, Matrix, Matrix]] = []  # omega, alpha, acceleration of the origin, gradient
    forces, torques = list[Matrix](), list[Matrix]()
    for frame, (rotation, position) in zip(frames, placements, strict=True):
        at, p = frame.name, frame.parent
        if p is None:
            omega, alpha, acceleration = zeros(3, 1), zeros(3, 1), rotation.T * Matrix([0, 0, gravity])
        else:
            turning, spinning, carried, varying = motions[p]
            omega, alpha = names.vector(f"{at}_carried", rotation.T * turning), rotation.T * spinning
            acceleration = rotation.T * (carried + varying * position)
        if frame.joint:
            rate = frame.joint.rate
            if frame.joint.kind == "prismatic":
                acceleration += 2 * omega.cross(rate)
            else:
                alpha, omega = alpha + omega.cross(rate), omega + rate
        omega = names.vector(f"{at}_omega", omega)
        alpha = names.vector(f"{at}_alpha", alpha)
        acceleration = names.vector(f"{at}_acceleration", acceleration)
        squares = names.symmetric(f"{at}_squares", omega * omega.T)
        gradient = names.matrix(f"{at}_gradient", skew(alpha) + squares - squares.trace() * eye(3))
        momentum = names.vector(f"{at}_momentum", frame.inertia * omega)
        forces.append(frame.mass * acceleration + gradient * frame.first_moment)
        torques.append(frame.inertia * alpha + omega.cross(momentum) + frame.first_moment.cross(acceleration))
        motions.append((omega, alpha, acceleration, gradient))
    return _passed_inward(frames, placements, forces, torques, names)


def _passed_inward(
    frames: Sequence[Frame], placements: Placements, forces: list[Matrix], torques: list[Matrix], names: Intermediates
) -> list[tuple[Matrix, Matrix]]:
    """The force and torque of each frame, including those of all frames that it carries."""
    for number in reversed(range(len(frames))):
        frame, (rotation, position) = frames[number], placements[number]
        forces[number] = names.vector(f"{frame.name}_force", forces[number])
        torques[number] = names.vector(f"{frame.name}_torque", torques[number])
        if frame.parent is not None:
            passed = names.vector(f"{frame.name}_passed", rotation * forces[number])
            forces[frame.parent] += passed
            torques[frame.parent] += rotation * torques[number] + position.cross(passed)
    return list(zip(forces, torques, strict=True))


def _composite_bodies(
    frames: Sequence[Frame], placements: Placements, names: Intermediates
) -> list[tuple[Expr, Matrix, Matrix]]:
    """Mass, first moment and inertia of each frame with everything that it carries, about its origin."""
    masses = [frame.mass for frame in frames]
    moments = [frame.first_moment for frame in frames]
    inertias = [frame.inertia for frame in frames]
    for number in reversed(range(len(frames))):
        at, p, (rotation, position) = frames[number].name, frames[number].parent, placements[number]
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


def _mass_matrix_entries(
    number: int,
    own: Motion,
    frames: Sequence[Frame],
    placements: Placements,
    body: tuple[Expr, Matrix, Matrix],
    names: Intermediates,
) -> list[tuple[Symbol, Expr]]:
    """A row of the mass matrix: the forces on a frame's joint and the joints below, at unit acceleration of `own`."""
    mass, moment, inertia = body
    if own.turns:
        force, torque = own.axis.cross(moment), inertia * own.axis
    else:
        force, torque = mass * own.axis, moment.cross(own.axis)
    entries = []
    at: int | None = number
    while at is not None:
        frame, (rotation, position) = frames[at], placements[at]
        label = f"{frames[number].name}{own.suffix}_on_{frame.name}"
        force, torque = names.vector(f"{label}_force", force), names.vector(f"{label}_torque", torque)
        entries += [
            (other.speed, names.scalar(f"{label}{other.suffix}", _along(other, force, torque)))
            for other in frame.motions
        ]
        force = names.vector(f"{label}_passed", rotation * force)
        torque = rotation * torque + position.cross(force)
        at = frame.parent
    return entries


def lagrange(
    kinetic: Sequence[Energy], potential: Sequence[Energy], q: Sequence[Symbol], rates: Sequence[Symbol]
) -> tuple[Matrix, Matrix]:
    """M (n_q, n_q) and force (n_q, 1) of M(q) qddot = force(q, qdot), without applied forces.

    With T = qdot' M qdot / 2 + b' qdot + T0 (all functions of q), force = -c(q, qdot) + d(T0 - U)/dq, where c holds
    the Christoffel terms of M and the gyroscopic terms of b. Raises ModelError if T is not quadratic in the rates.
    """
    mass_matrix = _mass_matrix(kinetic, rates)
    force = _remainder(kinetic, q, rates) - _christoffel(mass_matrix, q, rates)
    return mass_matrix, force - _gradient([energy.value for energy in potential], q)


def _mass_matrix(kinetic: Sequence[Energy], rates: Sequence[Symbol]) -> Matrix:
    """M = d2T/dqdot2. Raises ModelError if it depends on the rates."""
    size = len(rates)
    matrix = Matrix.zeros(size, size)
    for energy in kinetic:
        for row in range(size):
            slope = energy.value.diff(rates[row])
            for column in range(row, size):
                entry = slope.diff(rates[column])
                if not entry.free_symbols.isdisjoint(rates) and is_expandable(entry):
                    entry = entry.expand()
                if not entry.free_symbols.isdisjoint(rates):
                    raise ModelError(
                        f"the kinetic energy is not quadratic in `{rates[row]}` and `{rates[column]}`: its second "
                        f"derivative is {abridged(str(entry))}. Write energies such as mass * "
                        "coordinate.rate**2 / 2.",
                        energy.place,
                    )
                matrix[row, column] += entry
    for row in range(size):
        for column in range(row, size):
            matrix[row, column] = matrix[column, row] = collapsed(matrix[row, column])
    return matrix


def _christoffel(mass_matrix: Matrix, q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """c_i = sum_jk (dM_ij/dq_k - dM_jk/dq_i / 2) v_j v_k, with one coefficient per product of rates."""
    size = len(q)
    slopes = [
        [[mass_matrix[min(i, j), max(i, j)].diff(q[k]) for k in range(size)] for j in range(size)] for i in range(size)
    ]
    result = []
    for i in range(size):
        row = S.Zero
        for j in range(size):
            row += _compact(slopes[i][j][j] - slopes[j][j][i] / 2) * v[j] ** 2
            for k in range(j):
                row += _compact(slopes[i][j][k] + slopes[i][k][j] - slopes[j][k][i]) * v[j] * v[k]
        result.append(row)
    return Matrix(result)


def _compact(coefficient: Expr) -> Expr:
    """The expression without terms that cancel, and with common factors in front; unchanged if it is too long."""
    return factor_terms(coefficient.expand()) if is_expandable(coefficient) else coefficient


def _remainder(kinetic: Sequence[Energy], q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """Forces of the parts of T that are linear in the rates (gyroscopic) or independent of them."""
    at_rest = dict.fromkeys(v, S.Zero)
    linear = [S.Zero] * len(q)
    free = []
    for energy in kinetic:
        if energy.value.free_symbols.isdisjoint(v):
            free.append(energy.value)
            continue
        free.append(energy.value.xreplace(at_rest))
        for i, rate in enumerate(v):
            linear[i] += energy.value.diff(rate).xreplace(at_rest)
    gyroscopic = [
        sum(((linear[j].diff(q[i]) - linear[i].diff(q[j])) * v[j] for j in range(len(q))), S.Zero)
        for i in range(len(q))
    ]
    return Matrix(gyroscopic) + _gradient(free, q)


def _gradient(terms: Sequence[Expr], q: Sequence[Symbol]) -> Matrix:
    """d(sum of terms)/dq as a column."""
    total = sum(terms, S.Zero)
    slopes = [total.diff(symbol) for symbol in q]
    return Matrix([factor_terms(slope) if is_expandable(slope) else slope for slope in slopes])
