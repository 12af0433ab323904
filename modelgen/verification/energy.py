"""The power balance at sample points: with a kernel's xdot, the energy of the model changes by the power of its forces.

Nothing is integrated in time, so that fast and stiff robots are checked as exactly as slow ones. The tolerance is
computed: it is a bound of the rounding of all terms, also of terms that cancel, such as the weights on a wheel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from sympy import Dummy, Matrix

from modelgen.arrays import Array
from modelgen.derivation.equations import EquationsOfMotion, mechanism_of
from modelgen.derivation.lowering import scalars
from modelgen.derivation.numeric import numpy_evaluator
from modelgen.program.differentiate import reverse
from modelgen.proof.intervals import EXACT, enclosures
from modelgen.statement.robot import Robot
from modelgen.verification.check import Check
from modelgen.verification.points import Points, numbers, sample_points
from modelgen.verification.reference import DIGITS, Energies, exact, slope

WHAT, NOTE = "energy changes by the power of the forces", "of the bound of rounding"
POINTS = 32
SEED = 5  # gives other points than the other checks have


def power_balance(robot: Robot, equations: EquationsOfMotion, kernels: Any, count: int = POINTS) -> Check:
    """Check dE/dt = P at `count` points of the whole domain, half of them without input.

    dE/dt = dE/dx . xdot, with xdot from the kernel and derivatives in 50 digits. P is the power of all loads. The error
    is relative to the bound of the rounding, so that the limit is 1. NaN and a bound that is not finite fail.
    """
    points = sample_points(robot, count, SEED)
    points.u[::2] = 0
    x, u, theta = points.x, points.u, points.theta
    xdot = np.asarray(kernels.dynamics(np.ascontiguousarray(x), u, theta=theta), np.float64)
    energies = Energies(robot, equations)
    bound = _of_terms(energies, points, xdot) + _of_solution(equations, points, xdot)
    evaluate, worst, where = energies.evaluator(), 0.0, ""
    driven = _drive_power(equations)
    for size, rates, *point in zip(bound, xdot, x, u, theta, strict=True):
        if not np.isfinite([size, *rates]).all():
            return Check(WHAT, "llvm", np.nan, 1.0, NOTE, f"no finite value {_at(*point)}")
        with mpmath.workdps(DIGITS):
            at = [mpf(float(value)) for part in point for value in part]

            def moved(time: list[mpf], at: list[mpf] = at, rates: Array = rates) -> list[mpf]:
                ahead = [value + time[0] * mpf(float(rate)) for value, rate in zip(at, rates, strict=False)]
                return evaluate(*ahead, *at[len(rates) :])

            change = slope(moved, [mpf(0)], 0)[0]
            power = evaluate(*at)[1] + driven(at, [mpf(float(rate)) for rate in rates])
            missing = float(abs(change - power))
        error = missing / size if size else float(missing > 0) * np.inf
        if error > worst:
            worst = error
            both = f"dE/dt = {float(change):.12g}, power {float(power):.12g}, difference {missing:.3g}"
            where = f"{both}; rounding explains {size:.3g}, {_at(*point)}"
    return Check(WHAT, "llvm", worst, 1.0, NOTE, where if worst > 1 else "")


def _drive_power(equations: EquationsOfMotion) -> Callable[[list[mpf], list[mpf]], mpf]:
    """The power of the drives that command accelerations, at numbers of (x, u, theta) and with xdot (n,)."""
    free, q = mechanism_of(equations), len(equations.coordinates)
    accelerations = [Dummy() for _ in equations.velocities]
    u = Matrix(len(equations.inputs), 1, list(equations.inputs))
    missing = free.mass_matrix * Matrix(accelerations) - free.force - free.input_matrix * u
    arguments = [*equations.state, *equations.inputs, *equations.parameters, *accelerations]
    reactions = exact(arguments, [missing[row] for row in free.rows], equations.definitions)

    def power(at: list[mpf], xdot: list[mpf]) -> mpf:
        forces = reactions(*at, *xdot[q : q + len(accelerations)]) if free.rows else []
        return mpmath.fsum(force * at[q + row] for row, force in zip(free.rows, forces, strict=True))

    return power


def _at(x: Array, u: Array, theta: Array) -> str:
    return f"at x = {numbers(x)}, u = {numbers(u)}, theta = {numbers(theta)}"


def _of_terms(energies: Energies, points: Points, xdot: Array) -> Array:
    """A bound (N,) of the rounding of dE/dt - P in double precision: half the width in interval arithmetic.

    It holds for the terms as written in the file. The derived equations contain their sums and products, partly as
    numbers, which round as much. T + U has the same terms as the energy that forces change.
    """
    moving = energies.moving
    energy_terms = (energies.kinetic + energies.potential).xreplace(moving)
    definitions = [(symbol, value.xreplace(moving)) for symbol, value in energies.definitions]
    rates = [Dummy() for _ in range(xdot.shape[1])]
    terms = [energy_terms, energies.power]
    symbols = [*energies.arguments, *rates]
    graph, inputs, (energy, power) = scalars(symbols, terms, definitions, (), energies.implicit)
    slopes = reverse(graph, {energy: graph.one}, inputs[: len(rates)])
    balance = graph.sub(graph.dot(slopes, inputs[-len(rates) :]), power)
    at = np.hstack([points.x, points.u, points.theta, xdot])
    low, high = enclosures(graph, [balance], inputs, at, at)
    return np.asarray((high - low)[:, 0] / 2)


def _of_solution(equations: EquationsOfMotion, points: Points, xdot: Array) -> Array:
    """A bound (N,) of the power that the rounding of a solution of M vdot = f misses, for any condition of M.

    A factorisation of the n by n matrix M solves (M + E) vdot = f with |E_ij| < (3n + 1) eps sqrt(M_ii M_jj)
    (Higham, Accuracy and Stability of Numerical Algorithms, Theorem 10.4), so that v' E vdot is missing.
    """
    matrix = numpy_evaluator([*equations.state, *equations.parameters], equations.mass_matrix, equations.definitions)
    roots = np.sqrt(np.einsum("nii->ni", matrix(*points.x.T, *points.theta.T)))
    size = roots.shape[1]
    v = slice(len(equations.coordinates), len(equations.coordinates) + size)
    sizes = [(roots * np.abs(rates[:, v])).sum(axis=1) for rates in (points.x, xdot)]
    return np.asarray((3 * size + 1) * EXACT * sizes[0] * sizes[1])
