"""The trim u0 of a robot: the smallest input that holds the target, at nominal parameters.

States of first order whose target the file leaves out are solved for together with the input. Inputs are measured in
units of half their range, states and drifts in units of the limits of the states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from sympy import DiracDelta, Expr, Float, Matrix, S, Symbol

from modelgen.arrays import Array
from modelgen.derivation.equations import EquationsOfMotion, Followed
from modelgen.errors import ModelError
from modelgen.metadata import Reference, Task
from modelgen.statement.joints import UNITS
from modelgen.statement.robot import Robot

REST = 1e-6  # of a speed's limit per second: a smaller drift counts as rest
NEARLY = 1e-4  # weight of the size of the input in the search for the inputs that stay at a limit
INSIDE = 0.9999  # share of the way from the middle to the trim at which a cost has its curvature, also at a limit
STARTS = 12  # of Newton's method, besides zero
ROUNDS = 30  # of Newton's method, where the forces are not affine in the states of first order
LINEAR = 1e-5  # of a limit: how far a state of first order may be from a line over the bounds of a parameter
STEEPEST = 1e3  # curvature of an action cost at the trim, as a multiple of its curvature at the middle of the range


@dataclass(frozen=True)
class Trim:
    """The input that holds the target, and the drift that it leaves."""

    u: Array  # (m,) in SI units; the input nearest to zero where no input holds the target
    left: Array  # (n_v + n_z,) smallest drift in SI units per second; zero where the target is held
    rest: Array  # (n_z,) the states of first order at the target


def find_trim(robot: Robot, equations: EquationsOfMotion, changed: Mapping[Symbol, float] | None = None) -> Trim:
    """The trim of the equations of motion. States in `free` of the task need not be held.

    changed: values of parameters that are not nominal. Newton's method begins at zero states of first order. Where that
    leads nowhere, as with a force that is the square of a current, it begins at others within their limits.
    """
    target = robot.declared_task.numbers.target
    first = np.array(target[len(target) - len(equations.internal) :])
    sought = [row for row, state in enumerate(equations.internal) if state.name in robot.declared_task.unstated]
    found = _newton(robot, equations, first, sought, changed or {})
    random, reach = np.random.default_rng(0), np.array([robot.limits[equations.internal[row]] for row in sought])
    for _ in range(STARTS if sought and found.left.any() else 0):
        start = first.copy()
        start[sought] = random.uniform(-reach, reach)
        other = _newton(robot, equations, start, sought, changed or {})
        if not other.left.any():
            return other
    return found


def _newton(
    robot: Robot, equations: EquationsOfMotion, start: Array, sought: Sequence[int], changed: Mapping[Symbol, float]
) -> Trim:
    """The trim by Newton's method from states of first order `start` (n_z,), of which those `sought` are free."""
    ranges = np.array([each.range for each in robot.inputs]).reshape(-1, 2)
    nearest = np.clip(np.zeros(len(ranges)), ranges[:, 0], ranges[:, 1])
    moving = equations.velocities + equations.internal
    held = np.array([symbol.name not in robot.declared_task.numbers.free for symbol in moving])
    limits = np.array([robot.limits[symbol] for symbol in moving])
    reach = np.array([robot.limits[equations.internal[row]] for row in sought])
    bounds = np.vstack([np.outer(reach, (-1.0, 1.0)), ranges])
    scale = (bounds[:, 1] - bounds[:, 0]) / 2
    low, high = bounds.T / scale
    rest, left = start.copy(), np.zeros(len(moving))
    for _ in range(ROUNDS if sought else 1):
        drift, slope = _at_target(robot, equations, rest, sought, changed)
        if not (np.isfinite(drift).all() and np.isfinite(slope).all()):
            return Trim(nearest, left, rest)  # the checks of the domain name the line
        drift = drift - slope[:, : len(sought)] @ rest[sought]
        A, b = (slope / limits[:, None] * scale)[held], (-drift / limits)[held]
        solved = smallest_solution(A, b, low, high)
        if solved is None:
            best = scipy.optimize.lsq_linear(A, b, (low, high)).x if len(scale) else np.zeros(0)
            left[held] = (A @ best - b) * limits[held]
            return Trim(nearest, left, start)
        before, rest[sought] = rest[sought].copy(), (solved * scale)[: len(sought)]
        if (np.abs(rest[sought] - before) <= REST * reach).all():
            break
    u = (solved * scale)[len(sought) :]
    if sought:  # Newton's method may not have arrived
        drift, slope = _at_target(robot, equations, rest, sought, changed)
        drift += slope[:, len(sought) :] @ u
        left[held] = np.where(np.abs(drift) > REST * limits, drift, 0.0)[held]
    return Trim(u, left, rest)


def smallest_solution(A: Array, b: Array, lower: Array, upper: Array) -> Array | None:
    """The shortest z with A z = b and lower <= z <= upper; None if no z solves it to `REST`."""
    nearest = np.clip(np.zeros(len(lower)), lower, upper)
    if np.abs(A @ nearest - b).max(initial=0.0) <= REST:
        return nearest
    weight = NEARLY * np.linalg.norm(A)
    rough = scipy.optimize.lsq_linear(
        np.vstack([A, weight * np.eye(len(lower))]), np.append(b, np.zeros(len(lower))), (lower, upper), tol=1e-14
    ).x
    room = 1e-3 * (upper - lower)
    inside = (rough > lower + room) & (rough < upper - room)
    at_limits = np.where(rough < (lower + upper) / 2, lower, upper)
    polished = np.where(inside, 0.0, at_limits)
    polished[inside] = np.linalg.lstsq(A[:, inside], b - A @ polished, rcond=1e-12)[0]
    bounded = scipy.optimize.lsq_linear(A, b, (lower, upper), tol=1e-14).x
    for z in (polished, np.linalg.lstsq(A, b, rcond=1e-12)[0], bounded):
        within = np.clip(z, lower, upper)
        if np.abs(A @ within - b).max() <= REST:
            return np.asarray(within)
    return None


def _at_target(
    robot: Robot, equations: EquationsOfMotion, rest: Array, sought: Sequence[int], changed: Mapping[Symbol, float]
) -> tuple[Array, Array]:
    """(vdot, zdot) without input, and its slopes in the states `sought` of z and in the inputs (n_v + n_z, s + m).

    At the target, at z = rest and nominal parameters, but for those `changed`.
    """
    theta = [changed.get(parameter.symbol, parameter.value) for parameter in robot.parameters if not parameter.fixed]
    z = [equations.internal[row] for row in sought]
    moving = len(robot.limits) - len(equations.internal)
    at = (*robot.declared_task.numbers.target[:moving], *rest, *theta)
    known = dict(zip((*equations.state, *equations.parameters), map(Float, at), strict=True))
    for symbol, value in equations.definitions:
        # sqrt(3) times a number stays an expression, which would grow with every step of Newton's method
        known[symbol] = value.xreplace(known).evalf()
    mass = _numbers(equations.mass_matrix, known)
    by_z = _slopes(equations.force, z)
    right = _numbers(Matrix.hstack(equations.force, by_z, equations.input_matrix), known)
    size = np.sqrt(np.abs(np.diag(mass)))  # a ship and its rudder differ by more than the digits of a number
    regular = size.all() and np.isfinite(mass).all() and np.isfinite(right).all()
    if not regular or np.linalg.matrix_rank(mass / size / size[:, None]) < len(mass):
        return np.full(len(equations.state), np.nan), np.full((len(equations.state), right.shape[1] - 1), np.nan)
    solved = np.linalg.solve(mass, right)
    if equations.internal:
        flow = _numbers(Matrix.hstack(equations.flow, _slopes(equations.flow, z), equations.flow_matrix), known)
        solved = np.vstack([solved, flow])
    return np.asarray(solved[:, 0], np.float64), np.asarray(solved[:, 1:], np.float64)


def _slopes(column: Matrix, z: Sequence[Symbol]) -> Matrix:
    """The slopes (rows, s) of a column along z. That of a sign is zero, also where it jumps, as in kernels."""
    slopes = column.jacobian(z) if z else Matrix.zeros(column.rows, 0)
    return slopes.replace(DiracDelta, lambda *_: S.Zero)


def _numbers(matrix: Matrix, known: Mapping[Symbol, Expr]) -> Array:
    """The matrix as numbers; NaN for entries that are complex or infinite."""
    return np.array([_number(entry.xreplace(known)) for entry in matrix]).reshape(matrix.shape)


def _number(value: Expr) -> float:
    """A number; NaN for one that is complex or infinite."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def with_trim(robot: Robot, equations: EquationsOfMotion) -> EquationsOfMotion:
    """The equations with their trim, and with action costs that are measured from it.

    Raises ModelError where the action cost is so steep at the trim that the input could hardly leave it.
    """
    trim = find_trim(robot, equations)
    costs = []
    for declared, cost, u0 in zip(robot.inputs, equations.input_costs, trim.u, strict=True):
        measured = cost.measured_from(declared.middle, float(u0))
        if measured is not cost and not cost.curvature_ratio(INSIDE * (float(u0) - declared.middle)) <= STEEPEST:
            raise ModelError(
                f"the input `{declared.symbol}` holds the target with {u0:g} {declared.unit}, at its limits of "
                f"{declared.range[0]:g} to {declared.range[1]:g}, where the slope of the action cost is next to "
                "infinite. Widen the limits, or write action_cost=Quadratic(...), which has none.",
                declared.place,
            )
        costs.append(measured)
    held = tuple(float(u0) for u0 in trim.u)
    own = slice(len(equations.internal) - len(robot.internal), None)  # without coordinates, of a kinematic robot
    left, rest = tuple(trim.left.tolist()), tuple(trim.rest[own].tolist())
    followed = tuple((name, slopes[own]) for name, slopes in _followed(robot, equations, trim.rest))
    return replace(equations, input_costs=tuple(costs), trim=held, unheld=left, rest=rest, followed=followed)


def _followed(robot: Robot, equations: EquationsOfMotion, rest: Array) -> tuple[Followed, ...]:
    """Parameters with which the states of first order at the target change linearly in all of their bounds.

    A family moves its target with them. Other parameters that change these states cannot be told.
    """
    declared, reach = robot.declared_task, np.array([robot.limits[symbol] for symbol in equations.internal])
    references = {reference.name for reference in declared.numbers.references}
    if not declared.unstated:
        return ()
    found = []
    for parameter in robot.parameters:
        low, high = parameter.bounds
        if parameter.fixed or parameter.symbol.name in references or not low < high:
            continue
        ends = [find_trim(robot, equations, {parameter.symbol: value}).rest for value in (low, high)]
        slope = (ends[1] - ends[0]) / (high - low)
        missed = np.abs(ends[0] + (parameter.value - low) * slope - rest)
        if (missed <= LINEAR * reach).all() and (np.abs(ends[1] - ends[0]) > REST * reach).any():
            found.append((parameter.symbol.name, tuple(slope.tolist())))
    return tuple(found)


def task_at_rest(robot: Robot, rest: Sequence[float], followed: Sequence[Followed] = ()) -> Task:
    """The numbers of the task, in which `rest` (n_z,) gives targets and starts that the file leaves out.

    followed: as in the equations of motion.
    """
    declared = robot.declared_task
    numbers = declared.numbers
    target, mean = list(numbers.target), list(numbers.start_mean)
    first = len(target) - len(robot.internal)
    for place, (state, value) in enumerate(zip(robot.internal, rest, strict=False), start=first):
        target[place] = value
        if state.symbol.name in declared.unstarted:
            mean[place] = value
    begins = [float(state.symbol.name in declared.unstarted) for state in robot.internal]
    moved = []
    for name, slopes in followed:
        starts = [begun * slope for begun, slope in zip(begins, slopes, strict=True)]
        moved.append(Reference(name, (*[0.0] * first, *slopes), (*[0.0] * first, *starts)))
    return replace(numbers, target=tuple(target), start_mean=tuple(mean), followed=tuple(moved))


def unheld(robot: Robot, equations: EquationsOfMotion) -> str:
    """The coordinate that moves at the target under every input within the limits, and how fast; empty if none does."""
    moving = equations.velocities + equations.internal
    share = np.abs(equations.unheld) / [robot.limits[symbol] for symbol in moving]
    worst = int(share.argmax())
    if share[worst] <= REST:
        return ""
    name = moving[worst].name
    units = {joint.symbol.name: UNITS[joint.kind] for joint in robot.joints}
    units |= {speed.symbol.name: speed.unit for speed in robot.velocities}
    units |= {state.symbol.name: state.unit for state in robot.internal}
    ranges = ", ".join(
        f"`{declared.symbol}` {declared.range[0]:g} to {declared.range[1]:g} {declared.unit}"
        for declared in robot.inputs
    )
    return (
        f"{robot.declared_task.place}: no input within the limits ({ranges}) holds the target: "
        f"`{name}` changes there by at least {equations.unheld[worst]:.3g} {units[name]} per second. Choose "
        f"another target=..., widen the limits, or write free=['{name}'] if its final value does not matter."
    )
