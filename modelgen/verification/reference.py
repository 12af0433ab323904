"""Slow, accurate evaluation of a model with mpmath, to verify compiled kernels.

Nothing here uses the program, its derivatives or its factorisation. The mass matrix is inverted numerically in 50
digits, and derivatives are central differences, accurate to about 30 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf
from sympy import Expr, Float, Matrix, S, Symbol, lambdify

from modelgen.arrays import Array
from modelgen.derivation import loops
from modelgen.derivation.equations import Definition, EquationsOfMotion, mechanism_of
from modelgen.derivation.mechanics import link_energies, mechanics_expressions
from modelgen.derivation.numeric import shared
from modelgen.errors import ModelError
from modelgen.statement.robot import Robot
from modelgen.verification.checks import Points

Numbers = list[mpf]
Quantities = dict[str, Numbers]

DIGITS = 50
STEP = "1e-15"  # relative to the argument, which may be a very small inertia
LEAST = 1e-9  # SI units; a smaller argument, such as zero, has the step of this one
ELSEWHERE = 0.3  # of its limit: where the energies are evaluated along an ignored coordinate, derived at zero
ROUNDED = "1e-42"  # relative to the value; a smaller difference is rounding of the last digits


class ExactReference:
    """The equations of motion, the state cost and all their derivatives, sample by sample."""

    def __init__(self, equations: EquationsOfMotion) -> None:
        self.state_count = len(equations.state)
        self.input_count = len(equations.inputs)
        self.positions, self.rows = len(equations.coordinates), len(equations.velocities)
        arguments = [*equations.state, *equations.parameters]
        mechanism = mechanism_of(equations)
        right = mechanism.force.row_join(mechanism.input_matrix)
        self.commanded = mechanism.rows
        commands = [equations.force.row_join(equations.input_matrix).row(row) for row in mechanism.rows]
        flows = equations.flow.row_join(equations.flow_matrix) if equations.internal else ()
        entries = [*equations.coordinate_rates, *mechanism.mass_matrix, *right]
        entries += [*(entry for command in commands for entry in command), *flows]
        self._mechanics = exact(arguments, entries, equations.definitions)
        self._cost = exact(arguments, [equations.state_cost], equations.definitions)
        costs = equations.input_costs
        self._input_costs = [exact([cost.u], [cost.cost]) for cost in costs]
        self._optima = [exact([cost.w], [cost.optimal_input, cost.optimal_input_cost]) for cost in costs]

    def quantities(self, x: Array, u: Array, costate: Array, theta: Array, w: Array) -> dict[str, Array]:
        """Every quantity of a loaded robot in float64, one row per sample, flattened. Raises ModelError if complex."""
        rows = []
        theta = np.broadcast_to(theta, (len(x), theta.shape[-1]))
        with mpmath.workdps(DIGITS):
            for sample in zip(x, u, costate, theta, w, strict=True):
                quantities = self._sample(*([mpf(float(value)) for value in part] for part in sample))
                if any(isinstance(entry, mpmath.mpc) for entries in quantities.values() for entry in entries):
                    raise ModelError(
                        f"the equations or their derivatives are complex at x = {sample[0]}, theta = {sample[3]}: a "
                        "root or a logarithm of a negative number. Narrow the limits or the bounds."
                    )
                rows.append(quantities)
        return {name: np.array([[float(entry) for entry in row[name]] for row in rows]) for name in rows[0]}

    def _sample(self, x: Numbers, u: Numbers, costate: Numbers, theta: Numbers, w: Numbers) -> Quantities:
        n, m = self.state_count, self.input_count
        point = [*x, *theta]
        a, B = self.affine(point)
        slopes = [slope(self._joined, point, column) for column in range(len(point))]

        def gather(rows: range, columns: range) -> Numbers:
            return [slopes[column][row] for row in rows for column in columns]

        states, parameters = range(n), range(n, len(point))
        drift, control = range(n), range(n, n + n * m)

        def hamiltonian(vector: Numbers) -> mpf:
            inputs = range(m)
            return mpmath.fsum(
                costate[i] * (vector[i] + mpmath.fsum(vector[n + i * m + j] * u[j] for j in inputs)) for i in drift
            )

        optima = [optimum(entry) for optimum, entry in zip(self._optima, w, strict=True)]
        along_u = [value_slope_curvature(cost, entry) for cost, entry in zip(self._input_costs, u, strict=True)]
        return {
            "a": a,
            "B": B,
            "xdot": [a[i] + mpmath.fsum(B[i * m + j] * u[j] for j in range(m)) for i in drift],
            "da_dx": gather(drift, states),
            "dB_dx": gather(control, states),
            "da_dtheta": gather(drift, parameters),
            "dB_dtheta": gather(control, parameters),
            "dH_dx": [hamiltonian(slopes[column]) for column in states],
            "dH_du": [mpmath.fsum(costate[i] * B[i * m + j] for i in drift) for j in range(m)],
            "dH_dtheta": [hamiltonian(slopes[column]) for column in parameters],
            "q": self._cost(*point),
            "dq_dx": [slope(lambda at: self._cost(*at), point, column)[0] for column in states],
            "g": [mpmath.fsum(g for g, _, _ in along_u)],
            "dg_du": [slope for _, slope, _ in along_u],
            "d2g_du2": [curvature for _, _, curvature in along_u],
            "u_optimal": [u_optimal for u_optimal, _ in optima],
            "g_optimal": [mpmath.fsum(g_optimal for _, g_optimal in optima)],
        }

    def _joined(self, point: Numbers) -> Numbers:
        a, B = self.affine(point)
        return a + B

    def affine(self, point: Numbers) -> tuple[Numbers, Numbers]:
        """a (n) and B (n m, row by row), by LU decomposition with pivoting.

        Commanded accelerations are constraints, whose multipliers are the forces of the drives.
        """
        a, B, _ = self.solved(point)
        return a, B

    def solved(self, point: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """a and B as in `affine`, and the reactions (commanded rows by 1 + m, row by row) at u = 0 and their slopes."""
        values, rows, m, positions = self._mechanics(*point), self.rows, self.input_count, self.positions
        rates, values = values[:positions], values[positions:]
        size = rows + len(self.commanded)
        matrix = mpmath.matrix(size, size)
        right = mpmath.matrix(size, 1 + m)
        for i in range(rows):
            for j in range(rows):
                matrix[i, j] = values[i * rows + j]
            for j in range(1 + m):
                right[i, j] = values[rows * rows + i * (1 + m) + j]
        rest = values[rows * (rows + 1 + m) :]
        for place, row in enumerate(self.commanded, start=rows):
            matrix[row, place], matrix[place, row] = -1, 1
            for j in range(1 + m):
                right[place, j] = rest.pop(0)
        solved = mpmath.inverse(matrix) * right if size else right
        flows = rest
        a = [*rates, *(solved[i, 0] for i in range(rows)), *flows[:: 1 + m]]
        B = [mpf(0)] * (positions * m) + [solved[i, 1 + j] for i in range(rows) for j in range(m)]
        B += [flow for place, flow in enumerate(flows) if place % (1 + m)]
        return a, B, [solved[i, j] for i in range(rows, size) for j in range(1 + m)]


class Energies:
    """Kinetic and potential energy and forces as in the model file, before any derivation.

    The energies contain coordinates and their rates. Forces and power contain v.
    """

    def __init__(self, robot: Robot, equations: EquationsOfMotion) -> None:
        fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
        fixed |= {joint.symbol: Float(ELSEWHERE * joint.limit) for joint in robot.ignored}
        ignored = [joint.symbol for joint in robot.ignored]
        self.q: list[Symbol] = [*equations.coordinates, *ignored]
        q, u = self.q, equations.inputs
        self.rates = [joint.symbol.rate for joint in robot.independent]
        unseen = (robot.rates.get(symbol.rate, symbol.rate).xreplace(fixed) for symbol in ignored)
        self.in_v = Matrix([*equations.coordinate_rates, *unseen])
        turns = robot.turns
        #: The rates as expressions in v, for rates that are not an entry of v.
        self.moving = {rate: value for rate, value in zip(self.rates, self.in_v, strict=True) if rate != value}
        self.arguments: list[Symbol] = [*equations.state, *u, *equations.parameters]
        self.places = len(equations.coordinates)  # index in them of the first speed
        self.moved = self.places + len(equations.velocities)  # and of the first entry that no energy moves with
        definitions, tree_kinetic, tree_potential = link_energies(
            robot.links, robot.downward_acceleration, robot.symbols
        )
        named = [(symbol, value.xreplace(fixed)) for symbol, value in definitions]
        self.definitions = [*loops.definitions(robot, 2), *named]
        self.implicit = equations.implicit
        system, loads = robot.system, robot.loads
        kinetic = sum((energy.value for energy in robot.kinetic), tree_kinetic)
        potential = sum((energy.value for energy in robot.potential), tree_potential)
        if system:
            kinetic, potential, loads = kinetic + system.kinetic, potential + system.potential, [*loads, *system.loads]
        self.kinetic, self.potential = kinetic.xreplace(fixed), potential.xreplace(fixed)

        def along(coordinate: Symbol) -> Expr:
            force = sum((load.force * load.displacement.diff(coordinate) for load in loads), S.Zero)
            follow = [(z, dict(slopes)) for z, slopes in self.implicit.items()]
            moved = (slopes[coordinate] * along(z) for z, slopes in follow if coordinate in slopes)
            return sum(moved, force.xreplace(fixed).xreplace(self.moving))

        self.forces: list[Expr] = [along(coordinate) for coordinate in (*q, *turns)]
        rates = [*self.in_v, *(turn.rate for turn in turns)]
        #: From generalized forces along the coordinates and turns to those along v.
        self.reach = Matrix(rates).jacobian(equations.velocities)
        self.passive: list[Expr] = [force.xreplace(dict.fromkeys(u, S.Zero)) for force in self.forces]
        self.power: Expr = sum((force * rate for force, rate in zip(self.forces, rates, strict=True)), S.Zero)

    def evaluator(self) -> Callable[..., Numbers]:
        """An mpmath function of q, v, u and theta: the energy that the forces change, and their power.

        With T2, T1 and T0 the parts of T by their order in the rates, this energy is T2 - T0 + U. It is T + U only if T
        is T2. T2 + T0 is the mean of T at the rates and at the opposite rates, T0 is T at zero rates. No derivative is
        needed.
        """
        of_rates = [*self.arguments[: self.places], *self.rates, *self.arguments[self.moved :]]
        energies = exact(of_rates, [self.kinetic, self.potential], self.definitions)
        moved = exact(self.arguments, [*self.in_v, self.power], self.definitions)

        def evaluate(*point: mpf) -> Numbers:
            *rates, power = moved(*point)
            ahead, behind, still = (
                energies(*point[: self.places], *(sign * rate for rate in rates), *point[self.moved :])
                for sign in (1, -1, 0)
            )
            return [(ahead[0] + behind[0]) / 2 - 2 * still[0] + still[1], power]

        return evaluate


class Lagrangian(Energies):
    """Energies with their derivatives by coordinates and rates, written in v."""

    def __init__(self, robot: Robot, equations: EquationsOfMotion) -> None:
        super().__init__(robot, equations)
        q, moving = equations.coordinates, self.moving
        slopes = self._slopes([*q, *self.rates], [self.kinetic, self.potential])
        self.momenta = [slopes[rate][0].xreplace(moving) for rate in self.rates]
        reach = self.in_v.jacobian(equations.velocities)
        self.impulses = list(reach.T * Matrix(self.momenta)) if moving else self.momenta  # the momenta of v
        self.gradient = [(slopes[coordinate][0] - slopes[coordinate][1]).xreplace(moving) for coordinate in q]
        self.gradient += [S.Zero] * len(robot.ignored)
        self.definitions = [(symbol, value.xreplace(moving)) for symbol, value in self.definitions]

    def _slopes(self, variables: Sequence[Symbol], entries: Sequence[Expr]) -> dict[Symbol, list[Expr]]:
        """Derivatives of the entries by the chain rule. Adds the derivatives of the definitions to the definitions."""
        result = {}
        originals = list(self.definitions)
        for variable in variables:
            known: dict[Symbol, Expr] = {variable: S.One}

            def along(expression: Expr, known: dict[Symbol, Expr] = known) -> Expr:
                named = sorted(expression.free_symbols & known.keys(), key=str)
                return sum((expression.diff(symbol) * known[symbol] for symbol in named), S.Zero)

            for symbol, value in originals:
                derivative = along(value)
                if derivative != 0:
                    known[symbol] = Symbol(f"{symbol}_along_{variable}", real=True)
                    self.definitions.append((known[symbol], derivative))
            result[variable] = [along(entry) for entry in entries]
        return result


def exact(
    arguments: Sequence[Symbol], entries: Sequence[Expr], definitions: Sequence[Definition] = ()
) -> Callable[..., Numbers]:
    """An mpmath function from numbers to the values of the entries, at the current precision of mpmath."""

    function: Callable[..., Numbers] = lambdify(
        list(arguments), list(entries), modules="mpmath", cse=shared(definitions), dummify=True
    )
    return function


def slope(function: Callable[[Numbers], Numbers], point: Numbers, column: int) -> Numbers:
    """The central difference of every entry along one argument."""
    step = mpf(STEP) * max(LEAST, abs(point[column]))
    ahead, behind = list(point), list(point)
    ahead[column] += step
    behind[column] -= step

    def difference(after: mpf, before: mpf) -> mpf:
        change = after - before
        return mpf(0) if abs(change) < mpf(ROUNDED) * abs(after) else change / (2 * step)

    return [difference(*pair) for pair in zip(function(ahead), function(behind), strict=True)]


def along(function: Callable[..., Numbers], point: Numbers, rates: Numbers) -> Numbers:
    """The rate of every value of a function whose first arguments change at these rates."""

    def moved(time: Numbers) -> Numbers:
        ahead = [value + time[0] * rate for value, rate in zip(point, rates, strict=False)]
        return function(*ahead, *point[len(rates) :])

    return slope(moved, [mpf(0)], 0)


def value_slope_curvature(function: Callable[..., Numbers], at: mpf) -> tuple[mpf, mpf, mpf]:
    """Value, slope and curvature of a function of one number, by central differences."""
    step = mpf(STEP) * max(LEAST, abs(at))
    (before,), (value,), (after,) = (function(point) for point in (at - step, at, at + step))
    return value, (after - before) / (2 * step), (before - 2 * value + after) / step**2


def mechanics_quantities(robot: Robot, equations: EquationsOfMotion, points: Points) -> dict[str, Array]:
    """Every output of the functions of mechanics in float64, one row per sample, flattened.

    Computed in 50 digits, with derivatives by central differences.
    """
    terms = mechanics_expressions(robot, equations)
    arguments, count = [*equations.state, *equations.parameters], terms.places
    known = terms.potential is not None and terms.weight is not None
    positions = [entry for position in terms.points.values() for entry in position]
    v = equations.velocities
    rates = equations.coordinate_rates.jacobian(v).T if v else Matrix.zeros(0, count)  # G'
    groups: dict[str, Iterable[Expr]] = {
        "M": equations.mass_matrix,
        "bias": -equations.force,
        "S": equations.input_matrix,
        "T": [terms.kinetic],
        "positions": positions,
        "U": [terms.potential] if known else [],
        "weight": [terms.weight] if known else [],
        "G": rates,
    }
    definitions = (*equations.definitions, *terms.definitions)
    functions = {name: exact(arguments, list(entries), definitions) for name, entries in groups.items()}
    reference, m = ExactReference(equations), len(equations.inputs)
    rows: dict[str, list[Numbers]] = {}
    with mpmath.workdps(DIGITS):
        theta = np.broadcast_to(points.theta, (len(points.x), len(equations.parameters)))
        for sample, u in zip(np.hstack([points.x, theta]), points.u, strict=True):
            point = [mpf(float(value)) for value in sample]
            values = {name: function(*point) for name, function in functions.items()}
            moved = [slope(lambda at: functions["positions"](*at), point, column) for column in range(count)]
            values["dp_dq"] = [column[i] for i in range(len(positions)) for column in moved]
            G = values.pop("G")
            if values.pop("weight"):
                columns = [G[j * count : (j + 1) * count] for j in range(rates.rows)]
                values["gravity"] = [along(functions["weight"], point, column)[0] for column in columns]
            if reference.commanded:
                reactions, at = reference.solved(point)[2], [mpf(1), *(mpf(float(value)) for value in u)]
                values["R"] = [
                    mpmath.fsum(part * value for part, value in zip(reactions[k : k + 1 + m], at, strict=True))
                    for k in range(0, len(reactions), 1 + m)
                ]
            for name, entries in values.items():
                rows.setdefault(name, []).append(entries)
    return {name: np.array([[_real(entry) for entry in row] for row in lines]) for name, lines in rows.items()}


def _real(value: Any) -> float:
    """The number; NaN where a root or a logarithm is not real."""
    return float(mpmath.re(value)) if mpmath.im(value) == 0 else float("nan")
