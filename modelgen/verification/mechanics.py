"""Comparison of the equations of motion with their energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mpmath
import numpy as np
from mpmath import mpf
from sympy import Symbol

from modelgen.derivation.equations import EquationsOfMotion, mechanism_of
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.statement.robot import Robot
from modelgen.verification.checks import Check, Points
from modelgen.verification.reference import DIGITS, ExactReference, Lagrangian, along, exact, slope

EXACT = 1e-13  # limit of a comparison in 50 digits; the model's own numbers are doubles
SYMMETRIC = 1e-14
MECHANICS_SAMPLES = 24
HIDDEN = "not for velocities that hide rolling; Kane's equations hold"


def mechanics_checks(robot: Robot, equations: EquationsOfMotion, points: Points) -> list[Check]:
    """Check the derived equations against their energies, and the structure that every mechanism has."""
    energies = Lagrangian(robot, equations)
    few = [
        [mpf(float(value)) for value in (*x, *u, *theta)]
        for x, u, theta in list(zip(points.x, points.u, points.theta, strict=True))[:MECHANICS_SAMPLES]
    ]
    rates = [joint.symbol.rate for joint in robot.independent] == list(equations.velocities)
    symbols = energies.arguments
    with mpmath.workdps(DIGITS):
        rolls = bool(robot.system and robot.system.rolls)
        lagrange = (None, "") if rolls else _worst(_lagrange_residual(energies, equations, few), symbols, few)
        skew = _worst(_skew_residual(energies, equations, few), symbols, few) if rates else (None, "")
        momenta = _worst(_momenta_residual(energies, equations, few), symbols, few)
    arguments = [*equations.state, *equations.parameters]
    matrix = numpy_evaluator(arguments, equations.mass_matrix, equations.definitions)(*points.x.T, *points.theta.T)
    scale = 1 / np.sqrt(np.einsum("nii->ni", matrix))
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    uneven = np.abs(scaled - scaled.swapaxes(1, 2))
    _, row, column = np.unravel_index(uneven.argmax(), uneven.shape)
    entries = f"entries [{row}, {column}] and [{column}, {row}] differ by this share of their diagonal's scale"
    return [
        _check("Lagrange's equations hold", "50 digits", lagrange, note=HIDDEN if rolls else ""),
        _check("mass matrix is that of the kinetic energy", "50 digits", momenta),
        _check("mass matrix symmetric", "float64", (float(uneven.max()), entries), SYMMETRIC),
        _check("Mdot - 2C skew", "50 digits", skew, note="" if rates else "holds for rates of coordinates only"),
    ]


def _check(what: str, case: str, worst: tuple[float | None, str], limit: float = EXACT, note: str = "") -> Check:
    """A check of the worst error. If it fails, it says where, and what is allowed."""
    check = Check(what, case, worst[0], limit, note)
    allowed = f"{worst[1]}; {limit:g} is allowed, for rounding of the numbers in double precision"
    return check if check.passed else replace(check, where=allowed)


def _worst(errors: Sequence[tuple[mpf, str]], symbols: Sequence[Symbol], few: Sequence[list[mpf]]) -> tuple[float, str]:
    """The largest error of all points, with its text and point."""
    number = max(range(len(errors)), key=lambda index: errors[index][0])
    at = ", ".join(f"{symbol} = {float(value):.6g}" for symbol, value in zip(symbols, few[number], strict=False))
    return float(errors[number][0]), f"{errors[number][1]}, at {at}"


def _both(what: str, first: mpf, second: mpf) -> str:
    return f"{what}: {float(first):.12g} and {float(second):.12g}"


def _momenta_residual(
    energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]
) -> list[tuple[mpf, str]]:
    """|M - d2T/dv2| relative to the largest entry of M. Column j of M is the momentum at unit speed j, minus p(0)."""
    q, size = len(equations.coordinates), len(equations.velocities)
    momenta = exact(energies.arguments, energies.impulses, energies.definitions)
    matrix = exact(energies.arguments, list(mechanism_of(equations).mass_matrix), equations.definitions)
    result = []
    for point in few:

        def at(rates: list[mpf], point: list[mpf] = point) -> list[mpf]:
            return momenta(*point[:q], *rates, *point[q + size :])

        entries, still = matrix(*point), at([mpf(0)] * size)
        columns = [at([mpf(i == j) for i in range(size)]) for j in range(size)]
        moved = [columns[k % size][k // size] - still[k // size] for k in range(size**2)]
        k = max(range(size**2), key=lambda k: abs(moved[k] - entries[k]))
        words = _both(f"entry [{k // size}, {k % size}] of the energy and derived", moved[k], entries[k])
        result.append((abs(moved[k] - entries[k]) / max(map(abs, entries)), words))
    return result


def _lagrange_residual(
    energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]
) -> list[tuple[mpf, str]]:
    """|d/dt dT/dv - d(T - U)/dq - Q| relative to its largest term, with vdot from the derived equations."""
    n, m, rows = len(equations.state), len(equations.inputs), len(equations.velocities)
    reference = ExactReference(equations)
    held = [equations.velocities[row] for row in mechanism_of(equations).rows]
    commanded = {*held, *(q for q, rate in zip(energies.q, energies.rates, strict=True) if rate in held)}
    q = len(energies.rates)
    momenta = exact(energies.arguments, energies.momenta, energies.definitions)
    others = exact(energies.arguments, [*energies.gradient, *energies.forces], energies.definitions)
    #: Columns of velocities that the coordinates allow; quaternions keep their length by a force that is not modelled.
    allowed = exact(energies.arguments, list(energies.reach), energies.definitions)
    result = []
    for point in few:
        a, B = reference.affine([*point[:n], *point[n + m :]])
        xdot = [a[i] + mpmath.fsum(B[i * m + j] * point[n + j] for j in range(m)) for i in range(n)]
        rates = along(momenta, point, xdot)
        values = others(*point)
        inertial, forces = [rate - part for rate, part in zip(rates, values[:q], strict=True)], values[q:]
        size = max(abs(value) for value in (*rates, *values)) or mpf(1)
        names = energies.q
        if rows != q:
            columns = allowed(*point)
            inertial, forces = (
                [mpmath.fsum(columns[k * rows + i] * force for k, force in enumerate(each)) for i in range(rows)]
                for each in (inertial, forces)
            )
            names = [*equations.velocities]
        judged = [i for i in range(len(names)) if names[i] not in commanded] or [0]
        i = max(judged, key=lambda i: abs(inertial[i] - forces[i]))
        words = _both(f"d/dt dL/dv - dL/dq along `{names[i]}` and force", inertial[i], forces[i])
        result.append((abs(inertial[i] - forces[i]) / size, words))
    return result


def _skew_residual(
    energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]
) -> list[tuple[mpf, str]]:
    """|N + N'| with N = Mdot - dc/dv, relative to M times the largest rate; c are the inertial forces.

    For Christoffel terms c = C v, the derivative dc/dv is 2C, and N is the matrix Mdot - 2C. The error is not relative
    to Mdot: if M is constant up to the rounding of its numbers, Mdot is only rounding.
    """
    q, rows = len(equations.coordinates), len(equations.velocities)
    matrix = exact(energies.arguments, list(mechanism_of(equations).mass_matrix), equations.definitions)
    inertial = exact(
        energies.arguments,
        [passive - force for passive, force in zip(energies.passive, mechanism_of(equations).force, strict=True)],
        equations.definitions,
    )
    result = []
    for point in few:
        mdot = along(matrix, point, point[q : 2 * q])
        columns = [slope(lambda at: inertial(*at), point, q + j) for j in range(rows)]
        difference = [[mdot[i * rows + j] - columns[j][i] for j in range(rows)] for i in range(rows)]
        size = max(map(abs, (*mdot, *(entry for column in columns for entry in column))))
        size = max(size, max(map(abs, matrix(*point))) * max(map(abs, point[q : 2 * q])))
        pairs = [(i, j) for i in range(rows) for j in range(i + 1)]
        i, j = max(pairs, key=lambda pair: abs(difference[pair[0]][pair[1]] + difference[pair[1]][pair[0]]))
        symmetric = abs(difference[i][j] + difference[j][i])
        words = _both(f"entries [{i}, {j}] and [{j}, {i}]", difference[i][j], difference[j][i])
        result.append((symmetric / size if size else symmetric, words))
    return result
