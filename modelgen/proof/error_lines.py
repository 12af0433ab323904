"""Search for the line of a model file whose equations have no value at a state, or are too fast to be simulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sympy import Expr, Float, diff

from modelgen.arrays import Array
from modelgen.derivation.regularity import Lines
from modelgen.errors import Place
from modelgen.proof.guards import domain
from modelgen.proof.quantity import Quantity, quantity_of
from modelgen.proof.search import sampled
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
    owners = {symbol.rate: symbol for symbol in (*(joint.symbol for joint in robot.joints), *robot.turns)}
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
