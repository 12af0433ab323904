"""Closed loops in the equations of motion: the dependent coordinates by Newton's method, and the projected equations.

A loop closes where its gap (d,) is zero. The dependent coordinates z (d,) follow from the variables w: the other
coordinates in the gap, and its uncertain parameters. With J = dgap/dz and G = dgap/dw, the slopes are dz/dw = -J^-1 G
(implicit function theorem). The accelerations are zddot = (dz/dw) wddot + gamma, where J gamma is minus the second
derivative of the gap at wddot = zddot = 0. With v = T v_independent, M becomes T' M T, and a force f becomes
T' (f - M gamma) (Featherstone, Rigid Body Dynamics Algorithms, 2008, section 8.3).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from sympy import Expr, Float, Matrix, S, Symbol, eye, zeros

from modelgen.derivation.equations import Definition, EquationsOfMotion
from modelgen.derivation.frames import Intermediates, facing, loop_gap
from modelgen.derivation.loop_guess import Guess, find_guess
from modelgen.derivation.loop_solver import LoopSystem, independent_rows
from modelgen.errors import ModelError, Place
from modelgen.statement.joints import Coordinate
from modelgen.statement.loops import Loop
from modelgen.statement.robot import Robot, fixed_values

T = TypeVar("T")


class LoopGroup:
    """Loops that are solved together, because they share dependent coordinates."""

    def __init__(
        self,
        dependent: tuple[Coordinate, ...],
        independent: tuple[Coordinate, ...],
        parameters: tuple[Symbol, ...],
        gap: Matrix,
        guess: Guess,
        taken: frozenset[str],
        places: tuple[Place, ...],
    ) -> None:
        """dependent: z (d,). independent, parameters: of w. gap: (d, 1). taken: names that no definition gets."""
        self.dependent, self.independent, self.parameters = dependent, independent, parameters
        self.gap, self.guess, self.taken, self.places = gap, guess, taken, places
        self.variables = (*independent, *parameters)  # w
        self.J, self.G = gap.jacobian(dependent), gap.jacobian(self.variables)  # dgap/dz (d, d), dgap/dw
        self.solution = self.solved()
        names = Intermediates(taken | {symbol.name for symbol, _ in self.solution})
        matrix = Orthogonalised(self.J, names, "loop")
        self.squares = (
            matrix.squares
        )  # (d,) of the lengths of orthogonal columns of J; their product is its det squared
        self.slopes = zeros(len(dependent), len(self.variables))  # dz/dw, symbols of `kinematics`
        for j, variable in enumerate(self.variables):
            for i, value in enumerate(matrix.solve(-self.G[:, j], f"by_{variable}")):
                self.slopes[i, j] = names.scalar(f"{dependent[i]}_by_{variable}", value)
        for i, symbol in enumerate(dependent):
            rate = sum((self.slopes[i, j] * other.rate for j, other in enumerate(independent)), S.Zero)
            names.definitions.append((symbol.rate, rate))
        y = (*dependent, *independent)
        rates = Matrix([symbol.rate for symbol in y])
        bias = matrix.solve(-(gap.jacobian(y) * rates).jacobian(y) * rates, "bias")
        #: The accelerations of z (d, 1) where those of w are zero, symbols of `kinematics`.
        self.gamma = Matrix([names.scalar(f"loop_{s}_bias", value) for s, value in zip(dependent, bias, strict=True)])
        #: Definitions of dz/dw, of the rates of z, and of gamma, in this order, from z, w and the rates of w.
        self.kinematics: tuple[Definition, ...] = tuple(names.definitions)

    @property
    def determined(self) -> set[Symbol]:
        """z, and what its kinematics define: rates, slopes and intermediates."""
        return {*self.dependent, *(symbol for symbol, _ in self.kinematics)}

    def solved(self, more: int = 0) -> tuple[Definition, ...]:
        """Definitions of z: the guess, and the steps of Newton's method that make it exact. more: further steps."""
        names = Intermediates(self.taken)
        z = [names.scalar(f"loop_{symbol}_guess", value) for symbol, value in self.guess.expressions(names)]
        steps = self.guess.steps + more
        for number in range(1, steps + 1):
            at = dict(zip(self.dependent, z, strict=True))
            move = Orthogonalised(self.J.xreplace(at), names, f"loop_{number}").solve(self.gap.xreplace(at), "gap")
            z = [before - change for before, change in zip(z, move, strict=True)]
            if number < steps:
                z = [names.scalar(f"loop_{s}_step{number}", value) for s, value in zip(self.dependent, z, strict=True)]
        return *names.definitions, *zip(self.dependent, z, strict=True)

    @property
    def implicit(self) -> dict[Symbol, tuple[tuple[Symbol, Expr], ...]]:
        """z -> pairs of a variable and the slope along it, by which z is differentiated."""
        return {
            symbol: tuple(zip(self.variables, self.slopes.row(i), strict=True))
            for i, symbol in enumerate(self.dependent)
        }


class Orthogonalised:
    """A matrix (d, d) as U R, with orthogonal columns in U and a unit upper triangular R, in named entries.

    The modified Gram-Schmidt process solves without pivoting, as exactly as the matrix allows (Bjorck, BIT 7, 1967).
    """

    def __init__(self, matrix: Matrix, names: Intermediates, label: str) -> None:
        self.names, self.label = names, label
        size = matrix.rows
        self.upper, self.columns, self.squares = eye(size), list[Matrix](), list[Expr]()
        columns = [matrix[:, j] for j in range(size)]
        for i in range(size):
            column = [names.scalar(f"{label}_u{i + 1}_{k + 1}", entry) for k, entry in enumerate(columns[i])]
            self.columns.append(Matrix(column))
            self.squares.append(names.scalar(f"{label}_square{i + 1}", Matrix(column).dot(Matrix(column))))
            for j in range(i + 1, size):
                self.upper[i, j] = names.scalar(f"{label}_r{i + 1}_{j + 1}", self._share(i, columns[j]))
                columns[j] = columns[j] - self.upper[i, j] * self.columns[i]

    def _share(self, i: int, vector: Matrix) -> Expr:
        return self.columns[i].dot(vector) / self.squares[i]

    def solve(self, right: Matrix, what: str) -> list[Expr]:
        """x with matrix x = right (d, 1). Intermediates have `what` in their names."""
        size, shares = len(self.columns), []
        for i in range(size):
            shares.append(self.names.scalar(f"{self.label}_{what}_y{i + 1}", self._share(i, right)))
            right = right - shares[i] * self.columns[i]
        x: list[Expr] = [S.Zero] * size
        for i in reversed(range(size)):
            value = shares[i] - sum((self.upper[i, k] * x[k] for k in range(i + 1, size)), S.Zero)
            x[i] = self.names.scalar(f"{self.label}_{what}_x{i + 1}", value) if i else value
        return x


_known: WeakKeyDictionary[Robot, tuple[LoopGroup, ...]] = WeakKeyDictionary()


def closures(robot: Robot) -> tuple[LoopGroup, ...]:
    """The closed loops of a robot in groups that are solved together; they are found once.

    Raises ModelError for a loop that cannot close, for too many or too few dependent coordinates, and for a loop that
    is singular in the domain.
    """
    if robot not in _known:
        taken = frozenset(robot.symbols)
        groups = []
        for loops in _groups(robot):
            groups.append(_closure(robot, loops, taken))
            made = (*groups[-1].solution, *groups[-1].kinematics)
            taken |= {symbol.name for symbol, _ in made}
        _known[robot] = tuple(groups)
    return _known[robot]


def definitions(robot: Robot, more: int = 0) -> tuple[Definition, ...]:
    """Definitions of all dependent coordinates and rates. more: further steps of Newton's method."""
    solved = ((each.solved(more) if more else each.solution, each.kinematics) for each in closures(robot))
    return tuple(pair for parts in solved for part in parts for pair in part)


def refined(robot: Robot, equations: EquationsOfMotion) -> EquationsOfMotion:
    """The equations with two more steps of Newton's method, which close the loops to 50 digits."""
    others = equations.definitions[len(definitions(robot)) :]
    return replace(equations, definitions=(*definitions(robot, 2), *others)) if robot.loops else equations


def _groups(robot: Robot) -> list[list[tuple[Loop, Matrix]]]:
    """The loops with their gaps, in groups without a dependent coordinate in common."""
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    dependent = {joint.symbol for joint in robot.dependent}
    gaps = [(loop, loop_gap(loop).xreplace(fixed)) for loop in robot.loops]
    return connected(((loop, gap), {*loop.dependent, *(gap.free_symbols & dependent)}) for loop, gap in gaps)


def connected(items: Iterable[tuple[T, Set[Hashable]]]) -> list[list[T]]:
    """Items in groups that share keys, directly or through others. items: pairs of an item and its keys."""
    groups: list[tuple[set[Hashable], list[T]]] = []
    for item, keys in items:
        joined = [group for group in groups if group[0] & keys]
        groups = [group for group in groups if not group[0] & keys]
        together = [other for _, others in joined for other in others]
        groups.append((set(keys).union(*(known for known, _ in joined)), [*together, item]))
    return [together for _, together in groups]


def leading(robot: Robot) -> dict[Symbol, set[Symbol]]:
    """Each dependent coordinate -> the independent coordinates on which it depends. No loop is solved."""
    independent = {joint.symbol for joint in robot.joints}
    result: dict[Symbol, set[Symbol]] = {}
    for group in _groups(robot):
        moving = {symbol for _, gap in group for symbol in gap.free_symbols} & independent
        result |= {symbol: moving for loop, _ in group for symbol in loop.dependent}
    return result


def _closure(robot: Robot, loops: Sequence[tuple[Loop, Matrix]], taken: frozenset[str]) -> LoopGroup:
    rows = Matrix([entry for _, gap in loops for entry in gap])
    z = tuple(symbol for loop, _ in loops for symbol in loop.dependent)
    joints = tuple(joint for joint in robot.joints if joint.symbol in rows.free_symbols)
    parameters = tuple(parameter for parameter in robot.parameters if parameter.symbol in rows.free_symbols)
    rolling = next((joint for joint in joints if joint.symbol in robot.rolls), None)
    if rolling:
        raise ModelError(
            f"the loop contains `{rolling.symbol}`, whose rate follows from other speeds by robot.roll. Choose a "
            "coordinate whose rate is a speed of the state.",
            loops[0][0].place,
        )
    posture = {symbol: value for loop, _ in loops for symbol, value in loop.at.items()}
    mechanism = LoopSystem(
        robot,
        z,
        joints,
        parameters,
        rows,
        tuple(row < 3 for _, gap in loops for row in range(gap.rows)),
        Matrix([facing(loop) for loop, _ in loops]).xreplace(fixed_values(robot)),
        np.array([loop.dependent[symbol] for loop, _ in loops for symbol in loop.dependent]),
        np.array([*(posture.get(joint.symbol, 0.0) for joint in joints), *(entry.value for entry in parameters)]),
        loops[0][0].place,
    )
    kept = independent_rows(mechanism)
    return LoopGroup(
        z,
        tuple(joint.symbol for joint in joints),
        tuple(parameter.symbol for parameter in parameters),
        Matrix([rows[k] for k in kept]),
        find_guess(mechanism, kept),
        taken,
        tuple(loop.place for loop, _ in loops),
    )


def unreduced_speeds(robot: Robot) -> list[Symbol]:
    """The speeds before rolling and loops reduce them, in the order of the coordinates; those of dependent ones last.

    Rates of coordinates that roll stand in place of the declared speeds.
    """
    state = [speed.symbol for speed in robot.velocities]
    if robot.rolls:
        turning = {ball.quaternion[0]: ball.rate for ball in robot.balls}
        turning |= {entry: () for ball in robot.balls for entry in ball.quaternion[1:]}
        state = [rate for joint in robot.independent for rate in turning.get(joint.symbol, (joint.symbol.rate,))]
    return [*state, *(joint.symbol.rate for joint in robot.dependent)]


def projected(
    robot: Robot,
    speeds: Sequence[Symbol],
    mass_matrix: Matrix,
    force: Matrix,
    input_matrix: Matrix,
    taken: Iterable[str],
) -> tuple[Matrix, Matrix, Matrix, tuple[Definition, ...]]:
    """M, force, input matrix of the independent coordinates, and definitions of intermediates, with no name in `taken`.

    speeds: those of the rows, the rates of the dependent coordinates last.
    """
    names = Intermediates(taken)
    n, size = len(speeds) - len(robot.dependent), mass_matrix.rows
    row = {speed: number for number, speed in enumerate(speeds)}
    T, gamma = eye(n).col_join(zeros(size - n, n)), zeros(size, 1)
    for closure in closures(robot):
        for i, symbol in enumerate(closure.dependent):
            gamma[row[symbol.rate]] = closure.gamma[i]
            for j, other in enumerate(closure.independent):
                T[row[symbol.rate], row[other.rate]] = closure.slopes[i, j]

    def named(what: str, matrix: Matrix) -> Matrix:
        return Matrix(matrix.rows, matrix.cols, lambda i, j: names.scalar(f"loop_{what}_{i + 1}_{j + 1}", matrix[i, j]))

    inertia = named("inertia", mass_matrix)
    moved = named("moved", inertia * T)
    matrix = T.T * moved
    matrix = Matrix(n, n, lambda i, j: matrix[max(i, j), min(i, j)])
    return matrix, T.T * (force - inertia * gamma), T.T * input_matrix, tuple(names.definitions)


def expanded(symbols: Iterable[Symbol], groups: Sequence[LoopGroup]) -> set[Symbol]:
    """The symbols, with the variables of loops, and their rates, in place of what the loops determine."""
    result = set(symbols)
    for closure in groups:
        found = result & closure.determined
        if found:
            moving = not found <= {*closure.dependent}
            rates = {other.rate for other in closure.independent} if moving else set()
            result = (result - found) | {*closure.variables} | rates
    return result
