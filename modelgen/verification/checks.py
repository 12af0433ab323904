"""A line of a verification, the sample points over a robot's whole domain, and the rounding of a function at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from sympy import lambdify

from modelgen.arrays import Array, on_sphere
from modelgen.backends import MODULES
from modelgen.derivation.numeric import samples
from modelgen.statement.robot import Robot

PRECISIONS = ("float64", "float32")
LIMITS = {"float64": 1e-9, "float32": 0.05}  # rounding in float32 stays below 0.05; a larger error is a defect
KERNELS = tuple(f"{backend} {precision}" for backend in MODULES for precision in PRECISIONS)


@dataclass(frozen=True)
class Check:
    """One line of a verification. `error` is None for a check that was skipped; `note` then gives the reason."""

    what: str
    case: str
    error: float | None
    limit: float
    note: str = ""
    where: str = ""  # the worst entry of a failed check: its name, the point, both values
    verdict: str = ""  # of a quantity on the whole domain; replaces the number

    @property
    def passed(self) -> bool:
        """Whether the check was skipped, or its error is within the limit."""
        return self.error is None or self.error <= self.limit


def table(checks: Sequence[Check]) -> str:
    """The checks as text: one line per check of the mechanics; one line per quantity, with one column per kernel."""
    lines = []
    by_quantity: dict[str, dict[str, Check]] = {}
    for check in checks:
        if check.case in KERNELS:
            by_quantity.setdefault(check.what, {})[check.case] = check
        else:
            lines.append(f"  {check.what:<46} {check.case:<15} {_cell(check):>18}  {check.note}".rstrip())
            lines += [f"    {check.where}"] * bool(check.where)
    if not by_quantity:
        return "\n".join(lines)
    cases = [case for case in KERNELS if any(case in cells for cells in by_quantity.values())]
    lines += ["", f"  {'kernels, limits 1e-9 and 5e-2':<46}" + "".join(f"{case:>17}" for case in cases)]
    for what, cells in by_quantity.items():
        shown = (_cell(cells.get(case)) for case in cases)
        lines.append(f"  {what:<46}" + "".join(f"{cell:>17}" for cell in shown))
        lines += [f"    {case}: {check.where}" for case, check in cells.items() if check.where]
    return "\n".join(lines)


def counts(checks: Sequence[Check]) -> dict[str, int]:
    """How many checks passed, failed and were skipped."""
    failed, skipped = sum(not check.passed for check in checks), sum(check.error is None for check in checks)
    return {"passed": len(checks) - failed - skipped, "failed": failed, "skipped": skipped}


def _cell(check: Check | None) -> str:
    if check is None:
        return "not checked"
    if check.verdict:
        return check.verdict if check.passed else f"{check.verdict} FAILED"
    if check.error is None:
        return "skipped"
    return f"{check.error:.1e}" + ("" if check.passed else " FAILED")


UNITS = 4  # in the last place


@dataclass(frozen=True)
class Points:
    """Samples over the whole domain, which single precision represents exactly."""

    x: Array  # (N, n)
    u: Array  # (N, m)
    costate: Array  # (N, n)
    theta: Array  # (N, p), or (p,) for all samples
    w: Array  # (N, m), whose optimal inputs are within the limits or saturated


def slopes_at_half(robot: Robot) -> Array:
    """dg/du (m,) of the action cost at half the limit: a typical size of w."""
    pairs = zip(robot.declared_task.input_costs, robot.inputs, strict=True)
    return np.array(
        [float(mpmath.diff(lambdify([cost.u], cost.cost, "mpmath"), declared.limit / 2)) for cost, declared in pairs]
    )


def sample_points(robot: Robot, count: int, seed: int = 1) -> Points:
    """`count` points, a quarter of them at the limits. Costates are scaled by the largest states."""
    random = np.random.default_rng(seed)
    x, theta = samples(robot, count, seed=seed)
    lower, upper = np.array([declared.range for declared in robot.inputs]).reshape(-1, 2).T
    scale = np.abs(x).max(axis=0)
    values = (
        x,
        random.uniform(lower, upper, (count, len(lower))),
        random.uniform(-1, 1, x.shape) / scale,
        theta,
        random.normal(size=(count, len(lower))) * 2 * slopes_at_half(robot),
    )
    points = Points(*(value.astype(np.float32).astype(np.float64) for value in values))
    on_sphere(points.x, robot.quaternions)  # exact to double precision: off the sphere, equations differ
    return points


def perturbed(x: Array, precision: type[np.floating] = np.float64) -> Array:
    """The points with every number changed by up to `UNITS` units in the last place of `precision`."""
    random = np.random.default_rng(3)
    change = UNITS * float(np.finfo(precision).eps)
    return np.asarray(x * (1 + change * random.uniform(-1, 1, x.shape)), np.float64)


def natural_scale(values: Array) -> Array:
    """The scale of each entry of `values` (N, ...): the geometric mean of the largest values along its axes.

    For a matrix it is sqrt(row largest * column largest), at least the entry itself. It changes with the units of rows
    and columns, so that it is a scale for an entry that should be zero. All entries of a vector have one scale.
    """
    largest = np.abs(values).max(axis=0)
    if largest.ndim < 2:
        return np.full_like(largest, largest.max(initial=0))
    result: Array = np.ones_like(largest)
    for axis in range(largest.ndim):
        others = tuple(other for other in range(largest.ndim) if other != axis)
        along = largest.max(axis=others, keepdims=True, initial=0)
        along = np.where(along > 0, along, largest.max(initial=0))  # a row of zeros has the scale of the whole
        result = result * along ** (1 / largest.ndim)
    return np.asarray(result, np.float64)


def numbers(values: Array) -> str:
    """A vector as text, for a message."""
    return f"({', '.join(f'{value:.6g}' for value in values)})"
