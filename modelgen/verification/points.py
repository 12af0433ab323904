"""Sample points of a verification over the whole domain of a robot, and the rounding of a function at them."""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
from sympy import lambdify

from modelgen.arrays import Array, on_sphere
from modelgen.derivation.numeric import samples
from modelgen.statement.robot import Robot

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
    assert robot.declared_task
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
