"""Estimate of the size of a program and of its build, from the model file, before the work.

With n coordinates, m inputs and p parameters in the mass matrix M, a solution of M c = r takes O(n^2) operations after
a factorisation of O(n^3) (Golub and Van Loan, Matrix Computations, section 4.1). `dynamics` has one solution and
`affine_dynamics` one per input. `jacobians` has one for each of these and each variable of M: O(n^2 m (n + p)), which
dominates in a large robot. Zeros of M between branches are not counted. Source of the measured constants:
docs/concepts/performance.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sympy import Symbol, preorder_traversal

from modelgen.derivation.frames import loop_gap
from modelgen.derivation.loops import connected, leading
from modelgen.derivation.mechanics import MECHANICS
from modelgen.errors import ModelError
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.functions import MOST_OPERATIONS
from modelgen.statement.joints import Coordinate
from modelgen.statement.loops import Loop
from modelgen.statement.robot import Robot, entries

#: Smaller sets of functions for a large robot, by the argument of `--functions`.
SMALLER = {"dynamics,affine_dynamics": ("dynamics", "affine_dynamics"), "mechanics": tuple(MECHANICS)}

LINK, PAIR = 80, 10  # operations per link, and per coordinate that moves it
ALONE = 25  # operations of a body in space that carries nothing and turns about its centre
SECONDS, DERIVATION = 1.8e-4, 0.04  # s on one processor: per operation, and per square of the coordinates
GUESS, STEPS = 30, 5  # operations of the guess of a coordinate that a loop determines; solutions with its slopes
BYTES, START = 1_500, 130e6  # bytes of memory: per operation, and without any


@dataclass(frozen=True)
class Size:
    """Operations by function, and the time and memory of their build, within a factor of about two."""

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
    """The size of the named functions, from the structure of the mass matrix and the expressions of the file."""
    base, joints = _equations(robot), _directions(robot)
    dynamics = affine = base
    jacobians = (2 * len(joints) + sum(not parameter.fixed for parameter in robot.parameters)) * base // 3
    coupled, following = _coupled(robot), leading(robot)
    for part in _parts(coupled, joints):
        ordered = [joint for joint in joints if joint in part]
        lower = _filled([group for group in coupled if group <= part], ordered)
        moved = part | {symbol for symbol, leaders in following.items() if leaders & part}
        n, below, m = len(lower), sum(map(len, lower)), len(_inputs(robot, moved))
        inertial, others = _parameters(robot, moved)
        factorisation = sum(2 * len(row & lower[j]) + 1 for row in lower for j in row) + 2 * below + n
        solution = 4 * below + n
        dynamics += factorisation + solution
        affine += factorisation + (m + 1) * solution
        jacobians += ((n + inertial) * (m + 1) + n + others) * (solution + below + n)
    counts = {
        "affine_dynamics": affine,
        "dynamics": dynamics,
        "jacobians": affine + jacobians,
        "hamiltonian_gradient": 3 * dynamics,
        **dict.fromkeys(MECHANICS, base),
    }
    return Size(len(joints), {name: count for name, count in counts.items() if name in functions})


def refuse_too_large(robot: Robot, expected: Size, most: int = MOST_OPERATIONS) -> None:
    """Raise ModelError if a build would have more than `most` operations. The message lists smaller builds."""
    if expected.total <= most:
        return
    fewer = " or ".join(f"--functions {words} ({size(robot, names)})" for words, names in SMALLER.items())
    largest = max(expected.operations, key=lambda name: expected.operations[name])
    raise ModelError(
        f"this robot would take {expected}; the limit is {_round(most)} operations. Of these, `{largest}` has "
        f"{_round(expected.operations[largest])}, for {len(robot.joints)} coordinates and {len(robot.inputs)} inputs. "
        f"Build fewer functions: {fewer}. Or fix joints that do not matter, declare well known masses and lengths "
        f"with fixed=True, or allow it: --most-operations {float(f'{2 * expected.total:.0e}'):.0f}.",
        robot.place,
    )


def _coupled(robot: Robot) -> list[set[Symbol]]:
    """Sets of coordinates between which M has entries: those of one link, of one kinetic energy, or of a system."""
    rates = {symbol.rate: symbol for symbol in (*_directions(robot), *(joint.symbol for joint in robot.dependent))}
    groups = [{rates[rate] for rate in energy.value.free_symbols & rates.keys()} for energy in robot.kinetic]
    groups += [set(rates.values())] if robot.system else []
    leaders = leading(robot)
    whole = [*groups, *(part for moving in _moving(robot).values() for part in _uncoupled(robot, moving))]
    replaced = [{other for symbol in group for other in leaders.get(symbol, {symbol})} for group in whole]
    return [group for group in replaced if group]


def _parts(coupled: Iterable[set[Symbol]], coordinates: Iterable[Symbol]) -> list[set[Symbol]]:
    """The coordinates in sets between which M, and therefore its inverse, has no entries."""
    sets = [*({coordinate} for coordinate in coordinates), *coupled]
    return [set().union(*together) for together in connected((each, each) for each in sets)]


def _moving(robot: Robot) -> dict[str, set[Symbol]]:
    """Link -> the coordinates that move it."""
    moving: dict[str, set[Symbol]] = {}
    for link in robot.links:  # a parent comes before its links
        below = moving[link.parent.name] if link.parent else set()
        moving[link.name] = below | {motion.along for axis in link.axes for motion in axis.motions}
    return moving


def _directions(robot: Robot) -> list[Coordinate]:
    """One symbol for each speed: the coordinates, with three turns in place of a quaternion."""
    quaternions = {entry for ball in robot.balls for entry in ball.quaternion}
    return [joint.symbol for joint in robot.independent if joint.symbol not in quaternions] + robot.turns


def _uncoupled(robot: Robot, moving: set[Symbol]) -> list[set[Symbol]]:
    """The directions that move a link, in parts between which it has no inertia.

    They are several for a body in space that carries nothing and whose centre of mass is its origin.
    """
    of = _moving(robot)
    alone = [link for link in robot.links if {motion.along for axis in link.axes for motion in axis.motions} & moving]
    heavy = [link for link in robot.links if (link.mass, *link.inertia) != (0,) * 10 and of[link.name] & moving]
    if len(alone) != 1 or heavy != alone or not any(axis.kind == "ball" for axis in alone[0].axes):
        return [moving]
    body = alone[0]
    turns = moving & set(robot.turns)
    if any(body.centre) or not body.inertia.is_diagonal():
        return [moving] if any(body.centre) else [*({each} for each in moving - turns), turns]
    return [{each} for each in moving]


def _filled(coupled: Iterable[set[Symbol]], coordinates: list[Symbol]) -> list[set[int]]:
    """For each row of L in M = L D L', the columns of its entries below the diagonal, including the fill-in."""
    rows: list[set[int]] = [set() for _ in coordinates]
    number = {symbol: row for row, symbol in enumerate(coordinates)}
    for group in coupled:
        for row in (number[symbol] for symbol in group):
            rows[row] |= {number[symbol] for symbol in group if number[symbol] < row}
    for column in range(len(rows)):
        below = [row for row in range(column + 1, len(rows)) if column in rows[row]]
        for row in below:
            rows[row] |= {other for other in below if other < row}
    return rows


def _equations(robot: Robot) -> int:
    """Operations of M and the forces: a constant per link, and the nodes of all other expressions of the file."""
    links = [coordinates for coordinates in _moving(robot).values() if coordinates]
    alone = [moving for moving in links if len(_uncoupled(robot, moving)) > 1]
    single = len(_directions(robot)) + len(robot.dependent) - 2 * len(robot.balls) - sum(len(m) - 2 for m in alone)
    carried = LINK * single + ALONE * len(alone) if links else 0
    carried += PAIR * sum(len(group) for group in {frozenset(group) for group in links})
    energies = [energy.value for energy in (*robot.kinetic, *robot.potential)]
    forces = [*(load.force for load in robot.loads), *(flow.rate for flow in robot.flows)]
    forces += [commanded.acceleration for commanded in robot.commanded]
    nodes = {node for term in (*energies, *forces) for node in preorder_traversal(term) if node.args}
    if robot.system:
        of_system = (entry for term in robot.system.terms for entry in entries(term))
        nodes |= {node for entry in of_system for node in preorder_traversal(entry) if node.args}
    return carried + len(nodes) + sum(_closing(loop, len(robot.joints)) for loop in robot.loops)


def _closing(loop: Loop, n: int) -> int:
    """Operations that close a loop: a guess, steps of Newton's method, slopes and the projection on n coordinates."""
    gap, d = loop_gap(loop), len(loop.dependent)
    nodes = len({node for entry in gap for node in preorder_traversal(entry) if node.args})
    return GUESS * d + STEPS * (2 * nodes + d**3 + 3 * d**2) + d * (d + n) * (n + 2)


def _inputs(robot: Robot, part: set[Symbol]) -> set[Symbol]:
    """The inputs that act on at least one of the coordinates."""
    inputs = {declared.symbol for declared in robot.inputs}
    if robot.system:
        return inputs
    forces = [load.force for load in robot.loads if load.displacement.free_symbols & part]
    return {symbol for force in forces for symbol in force.free_symbols & inputs}


def _parameters(robot: Robot, part: set[Symbol]) -> tuple[int, int]:
    """The numbers of uncertain parameters in the mass matrix of the coordinates, and only in their other forces."""
    rates, moving = {coordinate.rate for coordinate in part}, _moving(robot)
    inertial = [term for link in robot.links if moving[link.name] & part for term in link.terms]
    inertial += [energy.value for energy in robot.kinetic if energy.value.free_symbols & rates]
    inertial += robot.system.terms if robot.system else ()
    others = [energy.value for energy in robot.potential if energy.value.free_symbols & part]
    others += [load.force for load in robot.loads if load.displacement.free_symbols & part]
    uncertain = {parameter.symbol for parameter in robot.parameters if not parameter.fixed}
    first, second = ({symbol for term in terms for symbol in term.free_symbols} for terms in (inertial, others))
    return len(first & uncertain), len((second - first) & uncertain)


def _round(number: float) -> str:
    """The number with two digits."""
    rounded = float(f"{number:.1e}")
    return f"{rounded:,.0f}".replace(",", " ") if rounded >= 10 else f"{rounded:g}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{_round(seconds)} s"
    return f"{_round(seconds / 60)} min" if seconds < 5400 else f"{_round(seconds / 3600)} h"
