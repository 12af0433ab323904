"""From a robot's energies and forces to its equations of motion, by Lagrange's equations; links by `tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sympy import Expr, Float, Matrix, S, Symbol, factor_terms

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.newton_euler import recursion
from modelgen.derivation.trigonometry import collapsed
from modelgen.errors import ModelError, Place
from modelgen.metadata import Input, Metadata, Parameter, State
from modelgen.statement.declared import Energy, Load, StatedTask
from modelgen.statement.robot import Robot
from modelgen.statement.statement import UNITS

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem


def equations_of_motion(robot: Robot) -> EquationsOfMotion:
    """Lagrange's equations, solved for the generalized momenta's rates: M(q) vdot = force(q, v) + B(q) u.

    With T = v' M v / 2 + b' v + T0 (all of q), the force is -c(q, v) + d(T0 - U)/dq + the applied forces at
    u = 0, where c holds the Christoffel terms of M and the gyroscopic ones of b. Fixed parameters are folded.
    """
    q = [joint.symbol for joint in robot.joints]
    v = [speed.symbol for speed in robot.velocities]
    u = [drive.symbol for drive in robot.drives]
    task = _task(robot)
    rates = [symbol.rate for symbol in q]
    tree = recursion(robot.links, q, robot.downward_acceleration, robot.symbols)
    mass_matrix = _mass_matrix(robot.kinetic, rates)
    forces, input_matrix = _applied(robot.loads, q, u)
    total = (
        forces
        - _christoffel(mass_matrix, q, rates)
        + _remainder(robot.kinetic, q, rates)
        - _gradient([energy.value for energy in robot.potential], q)
        - tree.bias
    )
    mass_matrix += tree.mass_matrix
    moving = robot.system.rates if robot.system else {}
    coordinate_rates = Matrix(rates).xreplace(moving)
    if robot.system:
        reach = coordinate_rates.jacobian(v)
        system_mass, system_force, system_inputs = _system(robot, robot.system, v, u)
        mass_matrix += system_mass
        total = reach.T * total.xreplace(moving) + system_force
        input_matrix = reach.T * input_matrix.xreplace(moving) + system_inputs
    fixed = {constant.symbol: Float(constant.value) for constant in robot.constants if constant.fixed}
    return EquationsOfMotion(
        coordinates=tuple(q),
        velocities=tuple(v),
        inputs=tuple(u),
        parameters=tuple(constant.symbol for constant in robot.constants if not constant.fixed),
        definitions=tuple((symbol, value.xreplace(fixed)) for symbol, value in tree.definitions),
        coordinate_rates=coordinate_rates.xreplace(fixed),
        mass_matrix=mass_matrix.xreplace(fixed),
        force=total.xreplace(fixed),
        input_matrix=input_matrix.xreplace(fixed),
        state_cost=task.state_cost.xreplace(moving).xreplace(fixed),
    )


def metadata(robot: Robot) -> Metadata:
    """All an artifact says about the robot besides its kernels."""
    task = _task(robot)
    positions = [
        State(
            joint.symbol.name,
            "position",
            UNITS[joint.kind],
            joint.limit,
            joint.continuous,
            joint.meaning,
        )
        for joint in robot.joints
    ]
    velocities = [
        State(speed.symbol.name, "velocity", speed.unit, speed.limit, False, speed.meaning)
        for speed in robot.velocities
    ]
    return Metadata(
        name=robot.name,
        description=robot.description,
        states=(*positions, *velocities),
        inputs=tuple(
            Input(each.symbol.name, each.unit, each.limit, each.meaning, coordinate)
            for each, coordinate in zip(robot.drives, _driven(robot), strict=True)
        ),
        parameters=tuple(
            Parameter(each.symbol.name, each.value, each.unit, *each.bounds, each.meaning)
            for each in robot.constants
            if not each.fixed
        ),
        task=task.numbers,
    )


def _driven(robot: Robot) -> list[str | None]:
    """For every input, the coordinate whose generalized force it alone makes; None when it makes several."""
    q = [joint.symbol for joint in robot.joints]
    loads = [*robot.loads, *(robot.system.loads if robot.system else ())]
    _, matrix = _applied(loads, q, [drive.symbol for drive in robot.drives])
    acted_on = [
        [symbol.name for symbol, entry in zip(q, column, strict=True) if entry != 0] for column in matrix.T.tolist()
    ]
    return [names[0] if len(names) == 1 else None for names in acted_on]


def _mass_matrix(kinetic: Sequence[Energy], v: Sequence[Symbol]) -> Matrix:
    """M = d2T/dv2, which must not depend on the rates."""
    size = len(v)
    matrix = Matrix.zeros(size, size)
    for energy in kinetic:
        for row in range(size):
            slope = energy.value.diff(v[row])
            for column in range(row, size):
                entry = slope.diff(v[column])
                if not entry.free_symbols.isdisjoint(v):
                    entry = entry.expand()
                if not entry.free_symbols.isdisjoint(v):
                    raise ModelError(
                        f"the kinetic energy is not quadratic in `{v[row]}` and `{v[column]}`: its second "
                        f"derivative is {entry}. Write energies such as mass * coordinate.rate**2 / 2.",
                        energy.place,
                    )
                matrix[row, column] += entry
    for row in range(size):
        for column in range(row, size):
            matrix[row, column] = matrix[column, row] = collapsed(matrix[row, column])
    return matrix


def _christoffel(mass_matrix: Matrix, q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """c_i = sum_jk (dM_ij/dq_k - dM_jk/dq_i / 2) v_j v_k, one coefficient per product of rates."""
    size = len(q)
    slopes = [
        [[mass_matrix[min(i, j), max(i, j)].diff(q[k]) for k in range(size)] for j in range(size)] for i in range(size)
    ]
    result = []
    for i in range(size):
        row = S.Zero
        for j in range(size):
            row += _compact(slopes[i][j][j] - slopes[j][j][i] / 2) * v[j] ** 2
            for k in range(j):
                row += _compact(slopes[i][j][k] + slopes[i][k][j] - slopes[j][k][i]) * v[j] * v[k]
        result.append(row)
    return Matrix(result)


def _compact(coefficient: Expr) -> Expr:
    """The expression with cancelling terms gone and common factors out."""
    return factor_terms(coefficient.expand())


def _remainder(kinetic: Sequence[Energy], q: Sequence[Symbol], v: Sequence[Symbol]) -> Matrix:
    """Forces from the parts of T that are linear in the rates (gyroscopic) or free of them."""
    at_rest = dict.fromkeys(v, S.Zero)
    linear = [S.Zero] * len(q)
    free = []
    for energy in kinetic:
        if energy.value.free_symbols.isdisjoint(v):
            free.append(energy.value)
            continue
        free.append(energy.value.xreplace(at_rest))
        for i, rate in enumerate(v):
            linear[i] += energy.value.diff(rate).xreplace(at_rest)
    gyroscopic = [
        sum(((linear[j].diff(q[i]) - linear[i].diff(q[j])) * v[j] for j in range(len(q))), S.Zero)
        for i in range(len(q))
    ]
    return Matrix(gyroscopic) + _gradient(free, q)


def _gradient(terms: Sequence[Expr], q: Sequence[Symbol]) -> Matrix:
    """d(sum of terms)/dq as a column."""
    total = sum(terms, S.Zero)
    return Matrix([factor_terms(total.diff(symbol)) for symbol in q])


def _applied(loads: Sequence[Load], q: Sequence[Symbol], u: Sequence[Symbol]) -> tuple[Matrix, Matrix]:
    """Generalized forces at u = 0 and their slope in u, by virtual work."""
    forces = Matrix.zeros(len(q), 1)
    slopes = Matrix.zeros(len(q), len(u))
    for load in loads:
        passive, gains = _affine(load.force, u, load.place)
        for row, coordinate in enumerate(q):
            lever = load.displacement.diff(coordinate)
            forces[row] += lever * passive
            for column, gain in enumerate(gains):
                slopes[row, column] += lever * gain
    return forces, slopes


def _affine(force: Expr, u: Sequence[Symbol], place: Place) -> tuple[Expr, list[Expr]]:
    """A force at u = 0, and its slope in each input."""
    gains = [force.diff(symbol) for symbol in u]
    for column, gain in enumerate(gains):
        if not gain.free_symbols.isdisjoint(u):
            gains[column] = gain.expand()
        if not gains[column].free_symbols.isdisjoint(u):
            raise ModelError(
                f"the applied force {force} is not affine in the input `{u[column]}`. Inputs may "
                "only be multiplied by expressions of the state and added; declare the nonlinear term "
                "itself as the input, for example.",
                place,
            )
    return force.xreplace(dict.fromkeys(u, S.Zero)), gains


def _system(
    robot: Robot, system: MechanicalSystem, v: Sequence[Symbol], u: Sequence[Symbol]
) -> tuple[Matrix, Matrix, Matrix]:
    """Mass matrix, force at u = 0 and input matrix of a system of SymPy's, its rows in the robot's order."""
    if system.own and (robot.kinetic or robot.links):
        place = robot.kinetic[0].place if robot.kinetic else robot.links[0].place
        raise ModelError(
            f"a body is added to a system whose speed `{next(iter(system.own.values())).symbol}` is no rate of a "
            "coordinate. Add it to the system's own bodies; forces, springs and losses may be added here.",
            place,
        )
    mass, force, slopes = Matrix.zeros(len(v), len(v)), Matrix.zeros(len(v), 1), Matrix.zeros(len(v), len(u))
    rows = [v.index(speed) for speed in system.speeds]
    for i, row in enumerate(rows):
        force[row], gains = _affine(system.force[i], u, system.place)
        for column, gain in enumerate(gains):
            slopes[row, column] = gain
        for j, column in enumerate(rows):
            mass[row, column] = system.mass_matrix[i, j]
    return mass, force, slopes


def _task(robot: Robot) -> StatedTask:
    """The stated task; ModelError when there is none."""
    if not robot.stated_task:
        raise ModelError(
            f"robot `{robot.name}` has no task. End the file with robot.task(state_cost=..., "
            "action_cost=LogCos(...), start=dict(...), horizon=..., weight_at_horizon=..., "
            "control_rate=...).",
            robot.place,
        )
    return robot.stated_task
