"""Comparison of compiled kernels with the model in 50 digits, and their power balance at sample points.

With a kernel's xdot, the energy of the model changes by the power of its forces.

Nothing is integrated in time, so that fast and stiff robots are checked as exactly as slow ones. The tolerance is
computed: it is a bound of the rounding of all terms, also of terms that cancel, such as the weights on a wheel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
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
from modelgen.program.functions import SIGNATURES
from modelgen.proof.intervals import EXACT, enclosures
from modelgen.statement.robot import Robot
from modelgen.verification.checks import Check, Points, natural_scale, numbers, perturbed, sample_points
from modelgen.verification.reference import DIGITS, Energies, along, exact

ZERO = 1e-25  # SI units; smaller than any quantity of a robot
FLOOR = 1e-6  # smallest scale of an entry, as a share of the scale of its row and column
ROUNDING = 30  # times the change of an entry when the arguments move by rounding; not an error of the kernel


def kernel_checks(
    kernels: Any,
    case: str,
    reference: dict[str, Array],
    points: Points,
    limit: float,
    most_operations: float = math.inf,
) -> list[Check]:
    """Compare every output of every built function with the reference. theta: (N, p), or (p,) for all samples.

    The rounding of each entry is measured by a second call at states moved by a few units in the last place.
    Functions of more than `most_operations` are skipped.
    """
    checks = []
    near = replace(points, x=perturbed(points.x, np.finfo(_precision(kernels)).dtype.type))
    for call, (arguments, names) in SIGNATURES.items():
        if call not in kernels.functions or (points.theta.ndim == 1 and "theta" not in arguments):
            continue
        if kernels.operations.get(call, 0) > most_operations:
            note = f"has more than {most_operations:.0f} operations"
            checks += [Check(f"{call}: {name}", case, None, limit, note) for name in names]
            continue
        again = _called(kernels, call, near) if "x" in arguments else [None] * len(names)
        for name, result, other in zip(names, _called(kernels, call, points), again, strict=True):
            if not reference[name].size:
                continue
            what = f"{call}: {name}" + (", one theta" if points.theta.ndim == 1 else "")
            expected = reference[name].reshape(result.shape)
            least = 0.0 if other is None else ROUNDING / limit * abs(other - result).max(axis=0)
            least = np.maximum(least, _of_zero(name, expected, reference, points.theta))
            error = relative_error(result, expected, least)
            check = Check(what, case, error, limit)
            checks.append(
                check if check.passed else replace(check, where=_worst(result, expected, points, least, limit))
            )
    return checks


def _of_zero(name: str, expected: Array, reference: dict[str, Array], theta: Array) -> Array | float:
    """The scale of derivatives by theta if all are zero, such as those of the weight over the mass; else zero.

    It is the size of what is differentiated over that of the parameter, because such terms cancel up to rounding.
    """
    of = name.removesuffix("_dtheta").removeprefix("d")
    if not name.endswith("_dtheta") or of not in reference or np.abs(expected).max() > ZERO:
        return 0.0
    size = np.abs(reference[of]).max(axis=0).reshape(-1, 1)
    parameter = np.abs(theta).reshape(-1, theta.shape[-1]).max(axis=0)
    scale = np.divide(size, parameter, out=np.zeros((len(size), len(parameter))), where=parameter > 0)
    return np.asarray(scale.reshape(expected.shape[1:]))


def _worst(got: Array, expected: Array, points: Points, least: Array | float, limit: float) -> str:
    """The entry with the largest error relative to its scale: both values, the tolerance and its reason, the point."""
    scale, difference = _scale(expected, least), abs(got - expected)
    errors = np.divide(difference, scale, out=np.where(difference == 0, 0.0, np.inf), where=scale > 0)
    sample, *entry = np.unravel_index(np.where(np.isfinite(errors), errors, np.inf).argmax(), errors.shape)
    theta = np.broadcast_to(points.theta, (len(points.x), points.theta.shape[-1]))
    at = {"x": points.x, "u": points.u, "theta": theta}
    size = float(scale[tuple(entry)])
    rounds = size > 0 and size <= float(np.broadcast_to(least, scale.shape)[tuple(entry)])
    reason = "its rounding" if rounds else f"{limit:g} of its largest value over the samples, {size:.3g}"
    return (
        f"entry {[int(index) for index in entry]}: {got[sample, *entry]:.12g}, in 50 digits "
        f"{expected[sample, *entry]:.12g}, difference {difference[sample, *entry]:.3g}, allowed {limit * size:.3g} "
        f"({reason}), at " + ", ".join(f"{name} = {numbers(values[sample])}" for name, values in at.items())
    )


def _precision(kernels: Any) -> Any:
    """The dtype of the kernel's numbers, as the name of a NumPy dtype."""
    return str(kernels.nominal_parameters.dtype).removeprefix("torch.")


def _called(kernels: Any, call: str, points: Points) -> list[Array]:
    """The outputs of one call as float64 arrays (N, ...)."""
    like = kernels.nominal_parameters
    arguments = {name: getattr(points, name) for name in SIGNATURES[call][0]}
    # a Torch kernel's parameters make Torch tensors, so that Torch itself is not imported here
    make = like.new_tensor if hasattr(like, "new_tensor") else lambda value: value.astype(like.dtype)
    results = getattr(kernels, call)(**{name: make(value) for name, value in arguments.items()})
    outputs = results if isinstance(results, tuple) else (results,)
    return [np.asarray(output, dtype=np.float64) for output in outputs]


def relative_error(got: Array, expected: Array, least: Array | float = 0.0) -> float:
    """The largest error of `got` (N, ...), each entry relative to its largest expected value over the samples.

    least: the smallest scale of each entry. An entry that is much smaller than the others of its row and column is
    relative to those. NaN or infinite if one of the arrays is not finite.
    """
    scale, errors = _scale(expected, least), np.abs(got - expected).max(axis=0)
    return float(np.divide(errors, scale, out=np.where(errors == 0, 0.0, math.inf), where=scale > 0).max())


def _scale(expected: Array, least: Array | float) -> Array:
    """The scale of the error of each entry."""
    scale = np.abs(expected).max(axis=0)
    if scale.ndim > 1:
        scale = np.maximum(scale, FLOOR * natural_scale(expected))
    # An entry that is zero up to cancellation has the scale of the whole output.
    scale = np.where(scale > 1e-14 * scale.max(), scale, scale.max())
    # If all entries are zero, central differences in 50 digits leave about 1e-40, which is not a scale either.
    return np.asarray(np.maximum(np.where((scale > 0) & (scale < ZERO), 1.0, scale), least))


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
            at, moving = ([mpf(float(value)) for value in values] for values in (np.concatenate(point), rates))
            change = along(evaluate, at, moving)[0]
            power = evaluate(*at)[1] + driven(at, moving)
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
