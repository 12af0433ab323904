"""A second derivation for robots stated by links: expand their energies, and use Lagrange's equations."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from sympy import Expr, Symbol, preorder_traversal

from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.link_energies import energies
from modelgen.statement.declarations import Energy
from modelgen.statement.robot import Robot

LONGEST = 400  # operations of an expanded kinetic energy; a longer one takes minutes to differentiate and collect


def by_energies(robot: Robot) -> EquationsOfMotion | None:
    """The equations of motion without the recursion; None where the expanded kinetic energy is too long."""
    definitions, *terms = energies(robot.links, robot.downward_acceleration, robot.symbols)
    if _expanded_length(definitions, terms[0]) > LONGEST:
        return None
    known: dict[Symbol, Expr] = {}
    for symbol, value in definitions:
        known[symbol] = value.xreplace(known)
    kinetic, potential = (term.xreplace(known) for term in terms)
    restated = copy(robot)
    restated.links = []
    restated.kinetic = [*robot.kinetic, Energy(kinetic, robot.place)]
    restated.potential = [*robot.potential, Energy(potential, robot.place)]
    return equations_of_motion(restated)


def _expanded_length(definitions: Sequence[Definition], expression: Expr) -> int:
    """The number of operations of an expression with its definitions substituted, without substituting them."""
    lengths: dict[Expr, int] = {}
    for symbol, value in (*definitions, (None, expression)):
        lengths[symbol] = int(value.count_ops()) + sum(lengths.get(each, 0) for each in preorder_traversal(value))
    return lengths[None]
