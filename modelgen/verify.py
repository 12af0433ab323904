"""Proof of an artifact: its kernels against the model with 50 digits, and the model against mechanics."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from numpy.typing import NDArray

from modelgen.backends import MODULES
from modelgen.equations import EquationsOfMotion
from modelgen.inspection import evaluator, samples
from modelgen.reference import DIGITS, Energies, Reference, exact, slope
from modelgen.robot import Robot
from modelgen.routes import by_energies

Array = NDArray[np.float64]

PRECISIONS = ("float64", "float32")
LIMITS = {"float64": 1e-9, "float32": 0.05}  # beyond 0.05 a kernel is wrong, not merely rounded
EXACT = 1e-13  # for comparisons made with 50 digits, where the model's own numbers are doubles
BALANCE = 1e-8
UNRESOLVED = 1e-3  # an imbalance above it may be the integration's
SECONDS = (0.5, 0.05, 0.005)  # of a rollout; the shorter for robots whose inputs throw them about
ENERGY = "energy balance along rollouts"
LOOKS = 50  # at the size of the energy along a rollout, which is a scale for errors only
SAMPLES = 128
MECHANICS_SAMPLES = 24
CALLS: dict[str, tuple[str, ...]] = {
    "affine_dynamics": ("a", "B"),
    "dynamics": ("xdot",),
    "jacobians": ("a", "B", "da_dx", "dB_dx", "da_dtheta", "dB_dtheta"),
    "hamiltonian_gradient": ("dH_dx", "dH_du", "dH_dtheta"),
    "state_cost": ("q", "dq_dx"),
}


@dataclass(frozen=True)
class Check:
    """One line of the proof; `error` is None for a check that was not made, and `note` then says why."""

    what: str
    case: str
    error: float | None
    limit: float
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check was made and held, or could not be made."""
        return self.error is None or self.error <= self.limit


@dataclass(frozen=True)
class Points:
    """Samples over the whole domain, exact in single precision."""

    x: Array  # (N, n)
    u: Array  # (N, m)
    costate: Array  # (N, n)
    theta: Array  # (N, p), or (p,) for all


def verify(
    robot: Robot, equations: EquationsOfMotion, load: Callable[..., Any], directory: Path | None = None
) -> list[Check]:
    """Every check of the artifact of `robot`; `load` is `modelgen.load`."""
    points = _points(robot, max(16, SAMPLES // len(robot.joints)))  # 50 digits take their time
    together = replace(points, theta=points.theta[0])
    exactly = Reference(equations)
    references = [(each, exactly.quantities(each.x, each.u, each.costate, each.theta)) for each in (points, together)]
    mechanics, kernels = mechanics_checks(robot, equations, points), []
    if robot.links:
        mechanics.append(routes_check(robot, equations, points))
    for backend in MODULES:
        if backend == "torch" and importlib.util.find_spec("torch") is None:
            mechanics.append(Check("kernels", backend, None, 0.0, "Torch is not installed"))
            continue
        for precision in PRECISIONS:
            compiled = load(robot.name, backend=backend, dtype=precision, directory=directory)
            if (backend, precision) == ("numba", "float64"):
                mechanics.append(energy_balance(robot, equations, compiled))
            for each, reference in references:
                kernels += kernel_checks(compiled, f"{backend} {precision}", reference, each, LIMITS[precision])
    return mechanics + kernels


def _points(robot: Robot, count: int) -> Points:
    random = np.random.default_rng(1)
    x, theta = samples(robot, count, seed=1)
    limits = np.array([drive.limit for drive in robot.drives])
    scale = np.abs(x).max(axis=0)
    values = (
        x,
        random.uniform(-limits, limits, (count, len(limits))),
        random.uniform(-1, 1, x.shape) / scale,
        theta,
    )
    return Points(*(value.astype(np.float32).astype(np.float64) for value in values))


def kernel_checks(kernels: Any, case: str, reference: dict[str, Array], points: Points, limit: float) -> list[Check]:
    """Every output of every call against the reference; theta per sample, or as one vector (p,)."""
    checks = []
    for call, names in CALLS.items():
        for name, result in zip(names, _called(kernels, call, points), strict=True):
            if reference[name].size:
                what = f"{call}: {name}" + (", one theta" if points.theta.ndim == 1 else "")
                checks.append(Check(what, case, relative_error(result, reference[name]), limit))
    return checks


def _called(kernels: Any, call: str, points: Points) -> list[Array]:
    """The outputs of one call as float64 arrays (N, entries)."""
    like = kernels.nominal_parameters
    arguments = {
        "affine_dynamics": [points.x],
        "dynamics": [points.x, points.u],
        "jacobians": [points.x],
        "hamiltonian_gradient": [points.x, points.u, points.costate],
        "state_cost": [points.x],
    }[call]
    # A Torch kernel's own parameters make arrays of their kind; Torch itself is not imported here.
    make = like.new_tensor if hasattr(like, "new_tensor") else lambda value: value.astype(like.dtype)
    results = getattr(kernels, call)(*map(make, arguments), theta=make(points.theta))
    count = len(points.x)
    outputs = results if isinstance(results, tuple) else (results,)
    return [np.asarray(output, dtype=np.float64).reshape(count, -1) for output in outputs]


def relative_error(got: Array, expected: Array) -> float:
    """Largest error, each entry (column) beside its own largest value over the samples; NaN where `got` is."""
    scale = np.abs(expected).max(axis=0)
    # An entry that is zero but for cancellation has no scale of its own.
    scale = np.where(scale > 1e-14 * scale.max(), scale, scale.max())
    errors = np.abs(got - expected).max(axis=0)
    return float(np.divide(errors, scale, out=np.where(errors > 0, math.inf, 0.0), where=scale > 0).max())


def mechanics_checks(robot: Robot, equations: EquationsOfMotion, points: Points) -> list[Check]:
    """The derived equations against the energies they came from, and the structure every mechanism has."""
    energies = Energies(robot, equations)
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
    smallest = float(np.linalg.eigvalsh(scaled).min())
    return [
        Check("Lagrange's equations hold", "50 digits", float(residual), EXACT),
        Check("mass matrix is that of the kinetic energy", "50 digits", float(momenta), EXACT),
        Check("mass matrix symmetric", "float64", float(np.abs(scaled - scaled.swapaxes(1, 2)).max()), 1e-14),
        Check(
            "mass matrix positive definite",
            "float64",
            0.0 if smallest > 1e-10 else 1.0,
            0.5,
            f"smallest eigenvalue {smallest:.1e} with unit diagonal",
        ),
        Check("Mdot - 2C skew", "50 digits", skew, EXACT, "" if rates else "holds for rates of coordinates only"),
    ]


def routes_check(robot: Robot, equations: EquationsOfMotion, points: Points) -> Check:
    """Accelerations of the recursion beside those of Lagrange's equations, both as derived, of a robot with links."""
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


def _momenta_residual(energies: Energies, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|M - d2T/dv2|: the momenta at one unit speed after the other are the columns of M, and p(0) is no part of it."""
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


def _lagrange_residual(energies: Energies, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|d/dt dT/dv - d(T - U)/dq - Q| beside its largest term, with vdot from the derived equations."""
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


def _skew_residual(energies: Energies, equations: EquationsOfMotion, few: Sequence[list[mpf]]) -> list[mpf]:
    """|N + N'| with N = Mdot - dc/dv beside M times the largest rate, c being the inertial forces that rates make.

    For Christoffel terms c = C v the derivative dc/dv is 2C, so that N is the matrix Mdot - 2C. Mdot itself is no
    measure: of an M that is constant but for the rounding of its numbers it is rounding too.
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


def energy_balance(robot: Robot, equations: EquationsOfMotion, kernels: Any) -> Check:
    """Change of energy less the work of all forces along rollouts of the numba kernel, beside the energy.

    Half of the rollouts are unforced, half have a constant input; all run for half a second, or less where no step
    resolves that. The step is halved until the integration error is below the limit, so that what remains is the
    kernel's.
    """
    points = _points(robot, 32)
    x, u = points.x / 2, points.u.copy()
    u[::2] = 0
    energies = Energies(robot, equations)
    rest = [*u.T, *points.theta.T]

    def measure(what: Any) -> Callable[[Array], Array]:
        function = evaluator(energies.arguments, what, energies.definitions)
        return lambda state: function(*state.T, *rest)

    energy, size, power = measure(energies.energy), measure(energies.size), measure(energies.power)

    def flow(state: Array) -> tuple[Array, Array]:
        return np.asarray(kernels.dynamics(np.ascontiguousarray(state), u, theta=points.theta)), power(state)

    for seconds in SECONDS:
        error, before, steps = math.inf, math.inf, 250
        while error > BALANCE and steps <= 16_000:
            before, error = error, _imbalance(flow, energy, size, x, seconds / steps, steps)
            steps *= 2
            if error > before / 2 and (math.isfinite(error) or steps > 2_000):
                break  # a smaller step does not help: the kernel is at fault, or the motion too wild
        if error <= UNRESOLVED:
            break
    return Check(ENERGY, "numba float64", error, BALANCE)


def _imbalance(
    flow: Callable[[Array], tuple[Array, Array]],
    energy: Callable[[Array], Array],
    size: Callable[[Array], Array],
    start: Array,
    step: float,
    steps: int,
) -> float:
    """Runge-Kutta of order 4 for the state and the work together; the energy is looked at LOOKS times."""
    state, work = start, np.zeros(len(start))
    largest = size(start)
    for step_number in range(1, steps + 1):
        rates, powers = zip(*_stages(flow, state, step), strict=True)
        state = state + step / 6 * (rates[0] + 2 * rates[1] + 2 * rates[2] + rates[3])
        work = work + step / 6 * (powers[0] + 2 * powers[1] + 2 * powers[2] + powers[3])
        if step_number % (steps // LOOKS) == 0:
            largest = np.maximum(largest, size(state) + np.abs(work))
        if not np.isfinite(state).all():
            return math.inf
    return float((np.abs(energy(state) - energy(start) - work) / largest).max())


def _stages(flow: Callable[[Array], tuple[Array, Array]], state: Array, step: float) -> list[tuple[Array, Array]]:
    stages = [flow(state)]
    for fraction in (0.5, 0.5, 1.0):
        stages.append(flow(state + fraction * step * stages[-1][0]))
    return stages


def table(checks: Sequence[Check]) -> str:
    """The checks as text: one line a check of mechanics, one line a quantity and one column a kernel."""
    lines = []
    columns = [f"{backend} {precision}" for backend in MODULES for precision in PRECISIONS]
    by_quantity: dict[str, dict[str, Check]] = {}
    for check in checks:
        if check.case in columns and check.what != ENERGY:
            by_quantity.setdefault(check.what, {})[check.case] = check
        else:
            lines.append(f"  {check.what:<46} {check.case:<15} {_cell(check):>18}  {check.note}".rstrip())
    if not by_quantity:
        return "\n".join(lines)
    lines += ["", f"  {'kernels, limits 1e-9 and 5e-2':<46}" + "".join(f"{case:>17}" for case in columns)]
    for what, cells in by_quantity.items():
        shown = (_cell(cells.get(case)) for case in columns)
        lines.append(f"  {what:<46}" + "".join(f"{cell:>17}" for cell in shown))
    return "\n".join(lines)


def _cell(check: Check | None) -> str:
    if check is None:
        return "not checked"
    if check.error is None:
        return "skipped"
    return f"{check.error:.1e}" + ("" if check.passed else " FAILED")
