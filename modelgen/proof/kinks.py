"""Kinks and jumps in forces and costs, where kernels have no derivative: found on the domain, and told in a warning.

Energies with a kink are refused, for forces are their derivatives. A force or cost with one has a value everywhere. Its
derivative at the kink, which an optimiser meets almost never, is the mean of both sides in the kernels (sign(0) = 0).
So it is built. Where `Abs`, `sign`, `Max` or `Min` stand, both sides are compared: `v * Abs(v)` has no kink.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sympy import Basic, Expr, Max, Min, preorder_traversal

from modelgen.derivation.lowering import scalars
from modelgen.errors import abridged
from modelgen.proof.guards import domain
from modelgen.proof.quantity import Quantity
from modelgen.proof.search import root, sampled
from modelgen.statement.checker import KINKS
from modelgen.statement.robot import Robot, fixed_values, model_expressions

Array = NDArray[np.float64]

ADVICE = (
    "Kernels take the mean of both sides there. Where a policy should act well there, write a smooth form: "
    "sqrt(y**2 + 1e-6) for Abs(y), tanh(y / 0.01) for sign(y), (y + sqrt(y**2 + 1e-6)) / 2 for Max(0, y)."
)

PAIRS = 4  # of points on either side, between which a kink is looked at
BESIDE = 1e-7  # of the domain's width: the distance at which the sides of a kink are compared
LEAST = 1e-2  # of the mean value or slope: a smaller difference of the sides is none


def warnings(robot: Robot) -> list[str]:
    """For each expression with a kink or jump within the domain: its line, where it is, and what to write instead."""
    found = {}
    for stated in model_expressions(robot):
        for entry in stated.entries:
            for node in preorder_traversal(entry):
                if isinstance(node, KINKS) and (stated.place, node) not in found:
                    what = _broken(robot, entry, node)
                    if what:
                        found[stated.place, node] = f"{stated.place}: {what}"
    return list(found.values())


def _broken(robot: Robot, entry: Expr, node: Basic) -> str:
    """What an expression does where one of its functions changes sides; nothing where it is smooth there."""
    known = fixed_values(robot)
    whole = domain(robot).of([entry.xreplace(known)])
    for side in _sides(node):
        graph, inputs, nodes = scalars(whole.symbols, [entry.xreplace(known), side.xreplace(known)])
        value, change = (Quantity(whole, graph, inputs, each) for each in nodes)
        points = sampled(whole)
        signs = change.values(points)
        for low, high in zip(points[signs < 0][-PAIRS:], points[signs > 0][-PAIRS:], strict=False):
            at = root(change, low, high)
            broken = _compared(value, change, at, points)
            if broken:
                return (
                    f"`{abridged(str(entry))}` {broken} by `{abridged(str(node))}`, where `{abridged(str(side))}` "
                    f"changes its sign, as at {whole.words(at)}. {ADVICE}"
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
    """Whether an expression jumps or has a kink at a point, in words."""
    width = value.domain.upper - value.domain.lower
    slope = change.value_and_slope(at)[1] * width
    if not np.isfinite(slope).all() or not slope.any():
        return ""
    step = BESIDE * width * slope / np.linalg.norm(slope)
    (above, slope_above), (below, slope_below) = (value.value_and_slope(at + sign * step) for sign in (1, -1))
    if abs(above - below) > LEAST * max(abs(above), abs(below), float(np.abs(value.values(points)).mean())):
        return f"jumps from {below:.4g} to {above:.4g}"
    slopes = [float(np.linalg.norm(each * width)) for each in (slope_above, slope_below)]
    several = [float(np.linalg.norm(value.value_and_slope(point)[1] * width)) for point in points[:: len(points) // 64]]
    if np.linalg.norm((slope_above - slope_below) * width) > LEAST * max(*slopes, float(np.mean(several))):
        return "has a kink, and so no derivative,"
    return ""
