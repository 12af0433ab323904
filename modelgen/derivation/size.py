"""How large a program will be, and what its build will take: reckoned from the model file, before the work.

With n coordinates, m inputs and p parameters in the mass matrix M, a solution of M c = r takes O(n^2) operations after
a factorisation of O(n^3) (Golub and Van Loan, Matrix Computations, section 4.1). The dynamics hold one solution and
affine_dynamics one for each input. Jacobians hold one for each of them and each variable of M, together
O(n^2 m (n + p)), which is all that counts in a large robot. Zeros of M that branches leave are not counted. Where the
measured constants are from: docs/concepts/performance.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sympy import Symbol, preorder_traversal

from modelgen.errors import ModelError
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.functions import MOST_OPERATIONS
from modelgen.program.mechanics import MECHANICS
from modelgen.statement.robot import Robot, entries

#: What a large robot can afford, as `--functions` takes it.
SMALLER = {"dynamics,affine_dynamics": ("dynamics", "affine_dynamics"), "mechanics": tuple(MECHANICS)}

LINK, PAIR = 80, 10  # operations of a link, and of each coordinate that moves it
SECONDS, DERIVATION = 1.8e-4, 0.04  # of one processor: for an operation, and for the square of the coordinates
BYTES, START = 1_500, 130e6  # of memory: for an operation, and without any


@dataclass(frozen=True)
class Size:
    """Operations by function, and what their build takes on one processor; right to a factor of two or so."""

    coordinates: int
    operations: dict[str, int]

    @property
    def total(self) -> int:
        """Operations of all functions."""
        return sum(self.operations.values())

    def __str__(self) -> str:
        seconds = 0.5 + DERIVATION * self.coordinates**2 + SECONDS * self.total
        memory = (START + BYTES * self.total) / 1e6
        return f"about {_round(self.total)} operations, {_duration(seconds)}, {_round(memory)} MB"


def size(robot: Robot, functions: Collection[str] = FUNCTIONS) -> Size:
    """The size of the named functions, from the structure of the mass matrix and the terms of the file."""
    base, joints = _equations(robot), [joint.symbol for joint in robot.joints]
    dynamics = affine = base
    jacobians = (2 * len(joints) + sum(not each.fixed for each in robot.parameters)) * base // 3
    coupled = _coupled(robot)
    for part in _parts(coupled, joints):
        lower = _filled([group for group in coupled if group <= part], [each for each in joints if each in part])
        n, below, m = len(lower), sum(map(len, lower)), len(_inputs(robot, part))
        inertial, others = _parameters(robot, part)
        factorisation = sum(2 * len(row & lower[j]) + 1 for row in lower for j in row) + 2 * below + n
        solution = 4 * below + n
        dynamics += factorisation + solution
        affine += factorisation + (m + 1) * solution
        jacobians += ((n + inertial) * (m + 1) + n + others) * (solution + below + n)
    made = {
        "affine_dynamics": affine,
        "dynamics": dynamics,
        "jacobians": affine + jacobians,
        "hamiltonian_gradient": 3 * dynamics,
        **dict.fromkeys(MECHANICS, base),
    }
    return Size(len(joints), {name: count for name, count in made.items() if name in functions})


def refuse_too_large(robot: Robot, stated: Size, most: int = MOST_OPERATIONS) -> None:
    """Raise ModelError for more operations than a build may have, with what to do."""
    if stated.total <= most:
        return
    fewer = " or ".join(f"--functions {words} ({size(robot, names)})" for words, names in SMALLER.items())
    largest = max(stated.operations, key=lambda name: stated.operations[name])
    raise ModelError(
        f"this robot would take {stated}; the limit is {_round(most)} operations. Of these, `{largest}` has "
        f"{_round(stated.operations[largest])}, for {len(robot.joints)} coordinates and {len(robot.inputs)} inputs. "
        f"Build fewer functions: {fewer}. Or hold joints that do not matter, state well known masses "
        f"and lengths with fixed=True, or allow it: --most-operations {float(f'{2 * stated.total:.0e}'):.0f}.",
        robot.place,
    )


def _coupled(robot: Robot) -> list[set[Symbol]]:
    """Sets of coordinates between which M has entries: those that move one link, and those of one kinetic energy."""
    rates = {joint.symbol.rate: joint.symbol for joint in robot.joints}
    found = [{rates[each] for each in energy.value.free_symbols & rates.keys()} for energy in robot.kinetic]
    found += [set(rates.values())] if robot.system else []
    return [group for group in (*found, *_moving(robot).values()) if group]


def _parts(coupled: Iterable[set[Symbol]], coordinates: Iterable[Symbol]) -> list[set[Symbol]]:
    """The coordinates in sets between which M has no entries: its inverse has none there either."""
    parts = [{each} for each in coordinates]
    for group in coupled:
        apart = [part for part in parts if not part & group]
        parts = [*apart, set().union(*(part for part in parts if part & group))]
    return parts


def _moving(robot: Robot) -> dict[str, set[Symbol]]:
    """Link -> the coordinates that move it."""
    moving: dict[str, set[Symbol]] = {}
    for link in robot.links:  # a parent comes before its links
        below = moving[link.parent.name] if link.parent else set()
        moving[link.name] = below | {axis.coordinate for axis in link.axes}
    return moving


def _filled(coupled: Iterable[set[Symbol]], coordinates: list[Symbol]) -> list[set[int]]:
    """For each row of L in M = L D L', the columns of its entries below the diagonal, which the elimination fills."""
    rows: list[set[int]] = [set() for _ in coordinates]
    number = {symbol: row for row, symbol in enumerate(coordinates)}
    for group in coupled:
        for row in (number[each] for each in group):
            rows[row] |= {number[each] for each in group if number[each] < row}
    for column in range(len(rows)):
        below = [row for row in range(column + 1, len(rows)) if column in rows[row]]
        for row in below:
            rows[row] |= {each for each in below if each < row}
    return rows


def _equations(robot: Robot) -> int:
    """Operations of M and the forces: a constant for each link, and the nodes of all else that the file states."""
    links = [coordinates for coordinates in _moving(robot).values() if coordinates]
    carried = LINK * len(robot.joints) if links else 0
    carried += PAIR * sum(len(each) for each in {frozenset(each) for each in links})
    energies = [each.value for each in (*robot.kinetic, *robot.potential)]
    forces = [each.force for each in robot.loads]
    terms = {node for each in (*energies, *forces) for node in preorder_traversal(each) if node.args}
    if robot.system:
        stated = (entry for each in robot.system.terms for entry in entries(each))
        terms |= {node for entry in stated for node in preorder_traversal(entry) if node.args}
    return carried + len(terms)


def _inputs(robot: Robot, part: set[Symbol]) -> set[Symbol]:
    """The inputs that act on some of the coordinates."""
    every = {each.symbol for each in robot.inputs}
    if robot.system:
        return every
    forces = [load.force for load in robot.loads if load.displacement.free_symbols & part]
    return {symbol for force in forces for symbol in force.free_symbols & every}


def _parameters(robot: Robot, part: set[Symbol]) -> tuple[int, int]:
    """How many uncertain parameters are in the mass matrix of the coordinates, and in their other forces alone."""
    rates, moving = {each.rate for each in part}, _moving(robot)
    inertial = [term for link in robot.links if moving[link.name] & part for term in link.terms]
    inertial += [each.value for each in robot.kinetic if each.value.free_symbols & rates]
    inertial += robot.system.terms if robot.system else ()
    others = [each.value for each in robot.potential if each.value.free_symbols & part]
    others += [load.force for load in robot.loads if load.displacement.free_symbols & part]
    uncertain = {each.symbol for each in robot.parameters if not each.fixed}
    first, second = ({symbol for term in terms for symbol in term.free_symbols} for terms in (inertial, others))
    return len(first & uncertain), len((second - first) & uncertain)


def _round(number: float) -> str:
    """Two digits."""
    rounded = float(f"{number:.1e}")
    return f"{rounded:,.0f}".replace(",", " ") if rounded >= 10 else f"{rounded:g}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{_round(seconds)} s"
    return f"{_round(seconds / 60)} min" if seconds < 5400 else f"{_round(seconds / 3600)} h"
