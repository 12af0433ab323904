"""All that is to be shown of a robot: its guards, the pivots of its mass matrix and the sign of its state cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelgen.derivation.equations import EquationsOfMotion, used
from modelgen.derivation.lowering import scalars
from modelgen.errors import Place, abridged
from modelgen.proof.guards import Domain, Guard, guards
from modelgen.proof.quantity import Quantity, pivots, stated_quantity
from modelgen.proof.search import Least, sampled, search
from modelgen.statement.declarations import Joint
from modelgen.statement.robot import Robot

ROUNDING = 1e-9  # beside the largest sampled cost: a smaller one counts as zero


@dataclass(frozen=True)
class Subject:
    """A guard and its quantity on the graph."""

    guard: Guard
    quantity: Quantity
    slack: float = 0.0  # how far below zero a value may be by rounding, where zero is allowed

    def evident(self) -> bool:
        """Whether the graph shows it at once, such as a sum of squares: by one enclosure of the whole domain."""
        lower, upper = self.quantity.domain.lower[None], self.quantity.domain.upper[None]
        low, high = self.quantity.enclosure(lower, upper)
        return bool(low[0] > 0 or (self.guard.zero and low[0] >= 0) or (self.guard.either and high[0] < 0))

    def search(self, seconds: float) -> Least:
        """The least value that is found in that time."""
        return search(self.quantity, seconds, zero=self.guard.zero, either=self.guard.either, slack=self.slack)


def stated(robot: Robot, whole: Domain) -> list[Subject]:
    """Divisors and arguments of roots, logarithms and inverse functions that the file states."""
    return [Subject(guard, stated_quantity(guard.expression, whole)) for guard in guards(robot)]


def inertias(robot: Robot, equations: EquationsOfMotion, whole: Domain) -> list[Subject]:
    """The pivots of the mass matrix: the inertia along each coordinate when the later ones move freely."""
    matrix = equations.mass_matrix
    definitions = used(equations.definitions, list(matrix))
    size = matrix.rows
    lower = [matrix[i, j] for i in range(size) for j in range(i + 1)]
    inside = whole.of([*lower, *(value for _, value in definitions)])
    graph, inputs, nodes = scalars(inside.symbols, lower, definitions)
    rows = [nodes[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] for i in range(size)]
    found = []
    for number, pivot in enumerate(pivots(rows, graph)):
        joint, before = robot.joints[number], ", ".join(f"`{each.symbol}`" for each in robot.joints[:number])
        energy, place = _energy_of(robot, joint)
        claim = f"the mass matrix is not positive definite: the inertia along `{joint.symbol}`{energy}"
        claim += f", with {before} free to move, is" if before else " is"
        guard = Guard(
            "inertia along",
            f"`{joint.symbol}`",
            matrix[number, number],
            place,
            claim=claim,
            advice="Add the missing body or inertia (a rod has inertia about its own centre; a point mass has none), "
            "or a rotor inertia to the joint; check the signs of the energies and the bounds of the parameters.",
        )
        found.append(Subject(guard, Quantity(inside, graph, inputs, pivot)))
    return found


def _energy_of(robot: Robot, joint: Joint) -> tuple[str, Place]:
    """The only kinetic energy that moves with a coordinate, and its line; else the line of the coordinate."""
    moving = [each for each in robot.kinetic if joint.symbol.rate in each.value.free_symbols]
    if len(moving) != 1 or robot.links or robot.system:
        return "", joint.place
    return f" by the kinetic energy `{abridged(str(moving[0].value))}`", moving[0].place


def cost(robot: Robot, equations: EquationsOfMotion, whole: Domain) -> Subject:
    """The sign of the state cost."""
    guard = Guard(
        "state cost",
        "",
        equations.state_cost,
        robot.declared_task.place,
        zero=True,
        claim=f"the state cost `{abridged(str(robot.declared_task.state_cost))}` is",
        advice="The reward would be positive there. A cost is zero at the target and positive elsewhere; write squares "
        "such as coordinate**2, and check the signs.",
    )
    inside = stated_quantity(equations.state_cost, whole)
    return Subject(guard, inside, ROUNDING * float(np.abs(inside.values(sampled(inside.domain))).max()))
