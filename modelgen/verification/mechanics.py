"""The equations of motion against the energies they came from, and against a second way to derive them."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath
import numpy as np
from mpmath import mpf

from modelgen.derivation.by_energies import by_energies
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.numeric import evaluator
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check
from modelgen.verification.points import Points
from modelgen.verification.reference import DIGITS, Lagrangian, Reference, exact, slope

EXACT = 1e-13  # for comparisons made with 50 digits, where the model's own numbers are doubles
MECHANICS_SAMPLES = 24


def mechanics_checks(robot: Robot, equations: EquationsOfMotion, points: Points) -> list[Check]:
    """The derived equations against the energies they came from, and the structure every mechanism has."""
    energies = Lagrangian(robot, equations)
    few = [
        [mpf(float(value)) for value in (*x, *u, *theta)]
        for x, u, theta in list(zip(points.x, points.u, points.theta, strict=True))[:MECHANICS_SAMPLES]
    ]
    with mpmath.workdps(DIGITS):
        residual = max(_lagrange_residual(energies, equations, few))
        rates = all(joint.symbol.rate == v for joint, v in zip(robot.joints, equations.velocities, strict=True))
        skew = float(max(_skew_residual(energies, equations, few))) if rates else None
        momenta = max(_momenta_residual(energies, equations, few))
    arguments = [*equations.state, *equations.parameters]
    matrix = evaluator(arguments, equations.mass_matrix, equations.definitions)(*points.x.T, *points.theta.T)
    scale = 1 / np.sqrt(np.einsum("nii->ni", matrix))
    scaled = matrix * scale[:, :, None] * scale[:, None, :]
    return [
        Check("Lagrange's equations hold", "50 digits", float(residual), EXACT),
        Check("mass matrix is that of the kinetic energy", "50 digits", float(momenta), EXACT),
        Check("mass matrix symmetric", "float64", float(np.abs(scaled - scaled.swapaxes(1, 2)).max()), 1e-14),
        Check("Mdot - 2C skew", "50 digits", skew, EXACT, "" if rates else "holds for rates of coordinates only"),
    ]


def routes_check(robot: Robot, equations: EquationsOfMotion, points: Points) -> Check:
    """Compare the accelerations that the recursion and Lagrange's equations give for a robot with links, as derived."""
    what, other = "recursion and energies derive the same", by_energies(robot)
    if other is None:
        return Check(what, "50 digits", None, EXACT, "the energies are too long to be expanded")
    routes = [Reference(each) for each in (equations, other)]
    found: list[list[list[mpf]]] = [[], []]
    with mpmath.workdps(DIGITS):
        for x, theta in list(zip(points.x, points.theta, strict=True))[:MECHANICS_SAMPLES]:
            point = [mpf(float(value)) for value in (*x, *theta)]
            for route, rows in zip(routes, found, strict=True):
                rows.append([entry for part in route.affine(point) for entry in part])
        error = max(
            max(abs(a - b) for a, b in zip(*pair, strict=True)) / max(map(abs, pair[1]))
            for pair in zip(*found, strict=True)
        )
    return Check(what, "50 digits", float(error), EXACT)


def _momenta_residual(energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|M - d2T/dv2|, relative to the largest entry of M. Column j of M is the momentum at unit speed j, less p(0)."""
    q, n = len(equations.coordinates), len(equations.state)
    momenta = exact(energies.arguments, energies.impulses, energies.definitions)
    matrix = exact(energies.arguments, list(equations.mass_matrix), equations.definitions)
    result = []
    for point in few:

        def at(rates: list[mpf], point: list[mpf] = point) -> list[mpf]:
            return momenta(*point[:q], *rates, *point[n:])

        entries, still = matrix(*point), at([mpf(0)] * (n - q))
        columns = [at([mpf(i == j) for i in range(n - q)]) for j in range(n - q)]
        wrong = [columns[k % (n - q)][k // (n - q)] - still[k // (n - q)] - entry for k, entry in enumerate(entries)]
        result.append(max(map(abs, wrong)) / max(map(abs, entries)))
    return result


def _lagrange_residual(energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|d/dt dT/dv - d(T - U)/dq - Q| relative to its largest term, with vdot from the derived equations."""
    n, m, rows = len(equations.state), len(equations.inputs), len(equations.velocities)
    reference = Reference(equations)
    momenta = exact(energies.arguments, energies.momenta, energies.definitions)
    others = exact(energies.arguments, [*energies.gradient, *energies.forces], energies.definitions)
    result = []
    for point in few:
        a, B = reference.affine([*point[:n], *point[n + m :]])
        xdot = [a[i] + mpmath.fsum(B[i * m + j] * point[n + j] for j in range(m)) for i in range(n)]

        def moved(time: list[mpf], point: list[mpf] = point, xdot: list[mpf] = xdot) -> list[mpf]:
            ahead = [value + time[0] * rate for value, rate in zip(point, xdot, strict=False)]
            return momenta(*ahead, *point[n:])

        rates = slope(moved, [mpf(0)], 0)
        values = others(*point)
        gradient, forces = values[:rows], values[rows:]
        size = max(abs(value) for value in (*rates, *values)) or mpf(1)
        result.append(max(abs(rates[i] - gradient[i] - forces[i]) for i in range(rows)) / size)
    return result


def _skew_residual(energies: Lagrangian, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|N + N'| with N = Mdot - dc/dv, relative to M times the largest rate; c are the inertial forces of the rates.

    For Christoffel terms c = C v the derivative dc/dv is 2C, so that N is the matrix Mdot - 2C. The error is not
    relative to Mdot: where M is constant up to the rounding of its numbers, Mdot is nothing but rounding.
    """
    q, rows = len(equations.coordinates), len(equations.velocities)
    matrix = exact(energies.arguments, list(equations.mass_matrix), equations.definitions)
    inertial = exact(
        energies.arguments,
        [passive - force for passive, force in zip(energies.passive, equations.force, strict=True)],
        equations.definitions,
    )
    result = []
    for point in few:

        def moved(time: list[mpf], point: list[mpf] = point) -> list[mpf]:
            ahead = [point[i] + time[0] * point[q + i] for i in range(q)]
            return matrix(*ahead, *point[q:])

        mdot = slope(moved, [mpf(0)], 0)
        columns = [slope(lambda at: inertial(*at), point, q + j) for j in range(rows)]
        difference = [[mdot[i * rows + j] - columns[j][i] for j in range(rows)] for i in range(rows)]
        size = max(map(abs, (*mdot, *(entry for column in columns for entry in column))))
        size = max(size, max(map(abs, matrix(*point))) * max(map(abs, point[q : 2 * q])))
        symmetric = max(abs(difference[i][j] + difference[j][i]) for i in range(rows) for j in range(rows))
        result.append(symmetric / size if size else symmetric)
    return result
