"""Warnings about kinks and jumps of forces and costs on the domain, where kernels have no derivative.

An energy with a kink is refused, because forces are its derivatives. A force or cost with a kink has a value
everywhere, and an optimiser almost never meets the kink, so that it is built. Kernels return the mean of both slopes
there (sign(0) = 0). Both sides of `Abs`, `sign`, `Max` and `Min` are compared: `v * Abs(v)` has no kink.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sympy import Basic, Expr, Max, Min, preorder_traversal

from modelgen.arrays import Array
from modelgen.errors import abridged
from modelgen.proof.guards import domain
from modelgen.proof.quantity import Quantity, nodes_of
from modelgen.proof.search import root, sampled
from modelgen.statement.checker import KINKS
from modelgen.statement.robot import Robot, fixed_values, model_expressions

ADVICE = (
    "Kernels return the mean of both sides there. If a policy must act well there, write a smooth form: "
    "sqrt(y**2 + 1e-6) for Abs(y), tanh(y / 0.01) for sign(y), (y + sqrt(y**2 + 1e-6)) / 2 for Max(0, y)."
)

PAIRS = 4  # of points on either side, between which a kink is searched
OFFSET = 1e-7  # of the domain's width: the distance at which the sides of a kink are compared
LEAST = 1e-2  # smallest difference of the sides, relative to the mean value or slope


def warnings(robot: Robot) -> list[str]:
    """For each expression with a kink or jump on the domain: its line, the place on the domain, what to write instead.

    An expression is reported once per line.
    """
    messages = {}
    for written in model_expressions(robot):
        for entry in written.entries:
            for node in preorder_traversal(entry):
                if isinstance(node, KINKS) and (written.place, node) not in messages:
                    what = _broken(robot, entry, node)
                    if what:
                        messages[written.place, node] = f"{written.place}: {what}"
    return list(messages.values())


def _broken(robot: Robot, entry: Expr, node: Basic) -> str:
    """The message about an expression at a function that changes sides; empty if the expression is smooth there."""
    known = fixed_values(robot)
    whole = domain(robot)
    for side in _sides(node):
        within = nodes_of([entry.xreplace(known), side.xreplace(known)], whole)
        value, change = (Quantity(within, node) for node in within.nodes)
        points = sampled(within.domain)
        signs = change.values(points)
        for low, high in zip(points[signs < 0][-PAIRS:], points[signs > 0][-PAIRS:], strict=False):
            at = root(change, low, high)
            broken = _compared(value, change, at, points)
            if broken:
                return (
                    f"`{abridged(str(entry))}` {broken} by `{abridged(str(node))}`, where `{abridged(str(side))}` "
                    f"changes its sign, as at {within.domain.text(at)}. {ADVICE}"
                )
    return ""


def _sides(node: Basic) -> Iterator[Expr]:
    """The expressions at whose zeros a function changes sides."""
    if isinstance(node, Max | Min):
        for number, one in enumerate(node.args):
            yield from (one - other for other in node.args[:number])
    else:
        yield node.args[0]


def _compared(value: Quantity, change: Quantity, at: Array, points: Array) -> str:
    """The text "jumps ..." or "has a kink ..." of an expression at a point; empty if it is smooth there."""
    width = value.domain.upper - value.domain.lower
    slope = change.value_and_slope(at)[1] * width
    if not np.isfinite(slope).all() or not slope.any():
        return ""
    step = OFFSET * width * slope / np.linalg.norm(slope)
    (above, slope_above), (below, slope_below) = (value.value_and_slope(at + sign * step) for sign in (1, -1))
    if abs(above - below) > LEAST * max(abs(above), abs(below), float(np.abs(value.values(points)).mean())):
        return f"jumps from {below:.4g} to {above:.4g}"
    slopes = [float(np.linalg.norm(side * width)) for side in (slope_above, slope_below)]
    several = [float(np.linalg.norm(value.value_and_slope(point)[1] * width)) for point in points[:: len(points) // 64]]
    if np.linalg.norm((slope_above - slope_below) * width) > LEAST * max(*slopes, float(np.mean(several))):
        return "has a kink, and so no derivative,"
    return ""
