"""Search for the line of a model file whose equations have no value at a state, or are too fast to be simulated.

Warnings about kinks and jumps of forces and costs on the domain, where kernels have no derivative.

An energy with a kink is refused, because forces are its derivatives. A force or cost with a kink has a value
everywhere, and an optimiser almost never meets the kink, so that it is built. Kernels return the mean of both slopes
there (sign(0) = 0). Both sides of `Abs`, `sign`, `Max` and `Min` are compared: `v * Abs(v)` has no kink.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sympy import Basic, Expr, Float, Max, Min, S, diff, preorder_traversal, sign

from modelgen.arrays import Array
from modelgen.derivation.integration import Lines
from modelgen.errors import Place, abridged
from modelgen.proof.guards import Quantity, domain, nodes_of, quantity_of
from modelgen.proof.search import root, sampled
from modelgen.statement.checker import KINKS
from modelgen.statement.robot import Robot, fixed_values, model_expressions


def lines(robot: Robot) -> Lines:
    """The lines of a robot, for the errors of a build."""
    return Lines(robot.place, lambda x: _not_finite(robot, x), lambda state: _strongest(robot, state))


def _not_finite(robot: Robot, x: Array) -> Place | None:
    """The line of the first expression without a value or slope at the state x (n,) and nominal parameters."""
    whole = domain(robot)
    at = dict(zip(robot.limits, x, strict=True)) | {parameter.symbol: parameter.value for parameter in robot.parameters}
    at |= {declared.symbol: 0.0 for declared in robot.inputs}
    known = fixed_values(robot) | {entry: Float(at[entry]) for ball in robot.balls for entry in ball.quaternion}
    for written in model_expressions(robot):
        for entry in written.entries:
            quantity = quantity_of(entry.xreplace(fixed_values(robot)).xreplace(known), whole)
            if quantity.domain.symbols:
                value, slope = quantity.value_and_slope(np.array([at[symbol] for symbol in quantity.domain.symbols]))
                if not np.isfinite([value, *slope]).all():
                    return written.place
    return None


def _strongest(robot: Robot, state: int) -> Place | None:
    """The line of the force with the largest value or slope along the coordinate of the state with this index."""
    states = list(robot.limits)
    owners = {symbol.rate: symbol for symbol in (*(joint.symbol for joint in robot.independent), *robot.turns)}
    coordinate = owners.get(states[state], states[state])
    known, whole = fixed_values(robot), domain(robot)
    sizes: list[tuple[float, Place]] = []
    for force, place in _forces(robot, coordinate):
        quantity = quantity_of(force.xreplace(known), whole)
        sizes.append((_size(quantity), place))
    return max(sizes, key=lambda size: size[0])[1] if sizes else None


def _forces(robot: Robot, coordinate: Expr) -> Iterator[tuple[Expr, Place]]:
    """The generalized forces along a coordinate that come from loads and potential energies, with their lines."""
    yield from ((flow.rate, flow.place) for flow in robot.flows if flow.state == coordinate)
    for load in robot.loads:
        force = load.force * diff(load.displacement, coordinate)
        if force != 0:
            yield force, load.place
    for energy in robot.potential:
        force = -diff(energy.value, coordinate)
        if force != 0:
            yield force, energy.place


def _size(quantity: Quantity) -> float:
    """The largest value or change over the domain, at sampled points; infinite if one is not finite."""
    if not quantity.domain.symbols:
        return 0.0
    points, width = sampled(quantity.domain), quantity.domain.upper - quantity.domain.lower
    values, slopes = quantity.values_and_slopes(points)
    both = np.hstack([values[:, None], slopes * width])
    return float(np.nan_to_num(np.abs(both), nan=np.inf).max())


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
        between = entry.xreplace({node: S.Zero}) if isinstance(node, sign) else entry  # where the side is zero
        within = nodes_of([each.xreplace(known) for each in (entry, side, between)], whole)
        value, change, on = (Quantity(within, each) for each in within.nodes)
        points = sampled(within.domain)
        signs = change.values(points)
        for low, high in zip(points[signs < 0][-PAIRS:], points[signs > 0][-PAIRS:], strict=False):
            at = root(change, low, high)
            broken = _compared(value, change, on, at, points)
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


def _compared(value: Quantity, change: Quantity, on: Quantity, at: Array, points: Array) -> str:
    """The text "jumps ..." or "has a kink ..." of an expression at a point; empty if it is smooth there."""
    width = value.domain.upper - value.domain.lower
    slope = change.value_and_slope(at)[1] * width
    if not np.isfinite(slope).all() or not slope.any():
        return ""
    step = OFFSET * width * slope / np.linalg.norm(slope)
    (above, slope_above), (below, slope_below) = (value.value_and_slope(at + side * step) for side in (1, -1))
    size = LEAST * max(abs(above), abs(below), float(np.abs(value.values(points)).mean()))
    if abs(above - below) > size:
        return f"jumps from {below:.4g} to {above:.4g}"
    if abs(float(on.values(at[None])[0]) - above) > size:
        return f"jumps from {above:.4g} to {float(on.values(at[None])[0]):.4g} and back"
    slopes = [float(np.linalg.norm(side * width)) for side in (slope_above, slope_below)]
    several = [float(np.linalg.norm(value.value_and_slope(point)[1] * width)) for point in points[:: len(points) // 64]]
    if np.linalg.norm((slope_above - slope_below) * width) > LEAST * max(*slopes, float(np.mean(several))):
        return "has a kink, and so no derivative,"
    return ""
