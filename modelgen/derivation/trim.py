"""The trim u0 of a robot: the smallest input that holds the target, at nominal parameters.

Inputs are measured in units of half their range, and drifts in units of the limits of the speeds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from sympy import Expr, Float, Matrix

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.errors import ModelError
from modelgen.statement.robot import Robot

Array = NDArray[np.float64]

REST = 1e-6  # of a speed's limit per second: a smaller drift counts as rest
NEARLY = 1e-4  # weight of the size of the input in the search for the inputs that stay at a limit
INSIDE = 0.9999  # share of the way from the middle to the trim at which a cost has its curvature, also at a limit
STEEPEST = 1e3  # curvature of an action cost at the trim, as a multiple of its curvature at the middle of the range


@dataclass(frozen=True)
class Trim:
    """The input that holds the target, and the drift that it leaves."""

    u: Array  # (m,) in SI units; the input nearest to zero where no input holds the target
    left: Array  # (n_v,) smallest drift of the speeds in SI units per second; zero where the target is held


def find_trim(robot: Robot, equations: EquationsOfMotion) -> Trim:
    """The trim of the equations of motion. Speeds in `free` of the task need not be held."""
    task = robot.declared_task.numbers
    ranges = np.array([declared.range for declared in robot.inputs])
    nearest = np.clip(np.zeros(len(ranges)), ranges[:, 0], ranges[:, 1])
    drift, slope = _at_target(robot, equations)
    held = np.array([symbol.name not in task.free for symbol in equations.velocities])
    if not (np.isfinite(drift).all() and np.isfinite(slope).all()):
        return Trim(nearest, np.zeros(len(drift)))  # the checks of the domain name the line
    limits = np.array([speed.limit for speed in robot.velocities])
    scale = (ranges[:, 1] - ranges[:, 0]) / 2
    A, b = (slope / limits[:, None] * scale)[held], (-drift / limits)[held]
    z = smallest_solution(A, b, ranges[:, 0] / scale, ranges[:, 1] / scale)
    left = np.zeros(len(drift))
    if z is not None:
        return Trim(z * scale, left)
    best = lsq_linear(A, b, (ranges[:, 0] / scale, ranges[:, 1] / scale)).x
    left[held] = (A @ best - b) * limits[held]
    return Trim(nearest, left)


def smallest_solution(A: Array, b: Array, lower: Array, upper: Array) -> Array | None:
    """The shortest z with A z = b and lower <= z <= upper; None if no z solves it to `REST`."""
    nearest = np.clip(np.zeros(len(lower)), lower, upper)
    if np.abs(A @ nearest - b).max(initial=0.0) <= REST:
        return nearest
    weight = NEARLY * np.linalg.norm(A)
    rough = lsq_linear(
        np.vstack([A, weight * np.eye(len(lower))]), np.append(b, np.zeros(len(lower))), (lower, upper), tol=1e-14
    ).x
    room = 1e-3 * (upper - lower)
    inside = (rough > lower + room) & (rough < upper - room)
    at_limits = np.where(rough < (lower + upper) / 2, lower, upper)
    polished = np.where(inside, 0.0, at_limits)
    polished[inside] = np.linalg.lstsq(A[:, inside], b - A @ polished, rcond=1e-12)[0]
    for z in (polished, np.linalg.lstsq(A, b, rcond=1e-12)[0], lsq_linear(A, b, (lower, upper), tol=1e-14).x):
        within = np.clip(z, lower, upper)
        if np.abs(A @ within - b).max() <= REST:
            return np.asarray(within)
    return None


def _at_target(robot: Robot, equations: EquationsOfMotion) -> tuple[Array, Array]:
    """vdot (n_v,) without input and its slope in the inputs (n_v, m), at the target and nominal parameters."""
    theta = [parameter.value for parameter in robot.parameters if not parameter.fixed]
    at = (*robot.declared_task.numbers.target, *theta)
    known = dict(zip((*equations.state, *equations.parameters), map(Float, at), strict=True))
    for symbol, value in equations.definitions:
        known[symbol] = value.xreplace(known)
    whole = Matrix.hstack(equations.mass_matrix, equations.force, equations.input_matrix)
    values = np.array([_number(entry.xreplace(known)) for entry in whole]).reshape(whole.shape)
    size = len(values)
    mass, right = values[:, :size], values[:, size:]
    if not np.isfinite(values).all() or np.linalg.matrix_rank(mass) < size:
        return np.full(size, np.nan), np.full((size, right.shape[1] - 1), np.nan)
    solved = np.linalg.solve(mass, right)
    return solved[:, 0], solved[:, 1:]


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
    return replace(equations, input_costs=tuple(costs), trim=held, unheld=tuple(trim.left.tolist()))


def unheld(robot: Robot, equations: EquationsOfMotion) -> str:
    """The coordinate that moves at the target under every input within the limits, and how fast; empty if none does."""
    share = np.abs(equations.unheld) / [speed.limit for speed in robot.velocities]
    worst = int(share.argmax())
    if share[worst] <= REST:
        return ""
    speed = robot.velocities[worst]
    ranges = ", ".join(
        f"`{declared.symbol}` {declared.range[0]:g} to {declared.range[1]:g} {declared.unit}"
        for declared in robot.inputs
    )
    return (
        f"{robot.declared_task.place}: no input within the limits ({ranges}) holds the target: "
        f"`{speed.symbol}` changes there by at least {equations.unheld[worst]:.3g} {speed.unit} per second. Choose "
        f"another target=..., widen the limits, or write free=['{speed.symbol}'] if its final value does not matter."
    )
