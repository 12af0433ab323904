"""The line of a model file behind equations that have no value at a state, or move too fast to be simulated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, diff

from modelgen.derivation.regularity import Lines
from modelgen.errors import Place
from modelgen.proof.guards import domain
from modelgen.proof.quantity import Quantity, stated_quantity
from modelgen.proof.search import sampled
from modelgen.statement.robot import Robot, fixed_values, model_expressions

Array = NDArray[np.float64]


def lines(robot: Robot) -> Lines:
    """What a build asks for when its checks fail."""
    return Lines(robot.place, lambda x: _not_finite(robot, x), lambda state: _strongest(robot, state))


def _not_finite(robot: Robot, x: Array) -> Place | None:
    """Of the first expression without a value or a slope at the state x (n,), for the nominal parameters."""
    whole = domain(robot)
    states = dict(zip([*(j.symbol for j in robot.joints), *(v.symbol for v in robot.velocities)], x, strict=True))
    at = states | {each.symbol: each.value for each in robot.parameters} | {each.symbol: 0.0 for each in robot.inputs}
    for stated in model_expressions(robot):
        for entry in stated.entries:
            quantity = stated_quantity(entry.xreplace(fixed_values(robot)), whole)
            if quantity.domain.symbols:
                value, slope = quantity.value_and_slope(np.array([at[each] for each in quantity.domain.symbols]))
                if not np.isfinite([value, *slope]).all():
                    return stated.place
    return None


def _strongest(robot: Robot, state: int) -> Place | None:
    """Of the force with the largest value or slope on the coordinate of the n states' entry `state`."""
    coordinate = robot.joints[state % len(robot.joints)].symbol
    known, whole = fixed_values(robot), domain(robot)
    sizes: list[tuple[float, Place]] = []
    for force, place in _forces(robot, coordinate):
        quantity = stated_quantity(force.xreplace(known), whole)
        sizes.append((_size(quantity), place))
    return max(sizes, key=lambda each: each[0])[1] if sizes else None


def _forces(robot: Robot, coordinate: Expr) -> Iterator[tuple[Expr, Place]]:
    """The generalised forces on a coordinate that the file states as forces or potential energies."""
    for load in robot.loads:
        force = load.force * diff(load.displacement, coordinate)
        if force != 0:
            yield force, load.place
    for energy in robot.potential:
        force = -diff(energy.value, coordinate)
        if force != 0:
            yield force, energy.place


def _size(quantity: Quantity) -> float:
    """The largest of value and change over the domain, at sampled points; infinite where they are not finite."""
    if not quantity.domain.symbols:
        return 0.0
    points, width = sampled(quantity.domain), quantity.domain.upper - quantity.domain.lower
    values, slopes = quantity.compiled(points.T)
    both = np.concatenate([np.asarray(values), np.asarray(slopes) * width[:, None]])
    return float(np.nan_to_num(np.abs(both), nan=np.inf).max())
