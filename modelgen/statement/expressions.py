"""All expressions that a model file states for its equations and its cost, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sympy import Basic, Expr, Float, MatrixBase, Symbol

from modelgen.errors import Place
from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class Stated:
    """One expression, or a matrix of them."""

    value: Basic
    place: Place
    slopes: int  # how often kernels hold a derivative of it

    @property
    def entries(self) -> list[Basic]:
        """The expressions."""
        return entries(self.value)


def entries(value: Basic) -> list[Basic]:
    """Those of a matrix, or the one expression itself."""
    return list(value) if isinstance(value, MatrixBase) else [value]


def stated_expressions(robot: Robot) -> Iterator[Stated]:
    """Energies, forces and displacements, links, gravity, a system of SymPy's, and the state cost, in this order."""
    for energy in (*robot.kinetic, *robot.potential):
        yield Stated(energy.value, energy.place, 2)
    for load in robot.loads:
        yield Stated(load.force, load.place, 1)
        yield Stated(load.displacement, load.place, 2)
    for link in robot.links:
        yield from (Stated(term, link.place, 1) for term in link.terms)
    if robot.gravity_place:
        yield Stated(robot.downward_acceleration, robot.gravity_place, 1)
    if robot.system:
        yield from (Stated(term, robot.system.place, 1) for term in robot.system.terms)
    yield Stated(robot.stated_task.state_cost, robot.stated_task.place, 1)


def numbered(robot: Robot) -> dict[Symbol, Expr]:
    """What stands for a symbol that is no entry of x, u or theta: fixed parameters, and rates that speeds replace."""
    fixed = {each.symbol: Float(each.value) for each in robot.parameters if each.fixed}
    rates = robot.system.rates if robot.system else {}
    return fixed | {symbol: value.xreplace(fixed) for symbol, value in rates.items()}
