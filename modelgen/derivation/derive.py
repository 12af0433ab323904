"""The equations of motion of a robot: the sum of its energies, links, loads and system of sympy.physics.mechanics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sympy import Expr, Float, Matrix, S, Symbol

from modelgen.derivation import loops
from modelgen.derivation.equations import EquationsOfMotion, Free, collapsed, is_expandable
from modelgen.derivation.ignored import without_ignored
from modelgen.derivation.newton_euler import lagrange, newton_euler
from modelgen.derivation.trim import with_trim
from modelgen.errors import ModelError, Place, abridged
from modelgen.statement.declared import Load
from modelgen.statement.robot import Robot, model_expressions

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem


def equations_of_motion(robot: Robot) -> EquationsOfMotion:
    """M(q) vdot = force(q, v) + B(q) u: the sum of all contributions of the file. Fixed parameters become numbers.

    Energies enter by Lagrange's equations, links by the recursive Newton-Euler algorithm, loads by virtual work, and
    a system of sympy.physics.mechanics by its own equations. If v contains speeds other than rates, dq/dt = G(q) v,
    forces along q are multiplied by G', which takes off the force that keeps a quaternion at length one. Raises
    ModelError for an energy that is not quadratic in the rates, for a force that is not affine in the inputs, and for
    a robot without a task.
    """
    task = robot.declared_task
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    if robot.kinematic:
        return with_trim(robot, _kinematic(robot).xreplace(fixed))
    q = [joint.symbol for joint in (*robot.independent, *robot.dependent)]
    state = [speed.symbol for speed in robot.velocities]
    v = loops.unreduced_speeds(robot)
    u = [declared.symbol for declared in robot.inputs]
    _refuse_speeds(robot)
    rates = [symbol.rate for symbol in q]
    mass_matrix, force = lagrange(robot.kinetic, robot.potential, q, rates)
    rate_values = {rate: value for rate, value in robot.rates.items() if rate not in v}
    coordinate_rates = Matrix(rates).xreplace(rate_values)
    applied, input_matrix = generalized_forces(robot.loads, [*q, *robot.turns], u)
    if robot.system or robot.balls:
        G = coordinate_rates.jacobian(v)
        reach = Matrix([*coordinate_rates, *(turn.rate for turn in robot.turns)]).jacobian(v)
        if robot.balls or len(v) < len(q):
            force -= mass_matrix * coordinate_rates.jacobian(q) * coordinate_rates  # of qddot = G vdot + Gdot v
            mass_matrix = G.T * mass_matrix * G
        force = G.T * force.xreplace(rate_values) + reach.T * applied.xreplace(rate_values)
        input_matrix = reach.T * input_matrix.xreplace(rate_values)
    else:
        force += applied
    if robot.system:
        system_mass_matrix, system_force, system_input_matrix = _system(robot, robot.system, v, u)
        mass_matrix += system_mass_matrix
        force += system_force
        input_matrix += system_input_matrix
    closing = loops.definitions(robot)
    taken = {*robot.symbols, *(symbol.name for symbol, _ in closing)}
    links = newton_euler(robot.links, v, robot.downward_acceleration, taken)
    mass_matrix += links.mass_matrix
    force -= links.bias
    named = (*closing, *links.definitions)
    if robot.loops:
        taken |= {symbol.name for symbol, _ in named}
        mass_matrix, force, input_matrix, moved = loops.projected(robot, v, mass_matrix, force, input_matrix, taken)
        named = (*named, *moved)
    coordinate_rates = coordinate_rates[: len(robot.joints), :].xreplace(robot.rates)
    if robot.rolls:
        independent = Matrix(v[: len(mass_matrix[:, 0])]).xreplace(robot.rates)
        if len(state) > len(independent):
            raise ModelError(
                f"robot.roll moves {len(independent)} coordinates by {len(state)} speeds, "
                f"{', '.join(map(str, state))}. Write their rates in as many speeds as the coordinates, or fewer.",
                next(iter(robot.rolls.values())).place,
            )
        drift = independent.jacobian(q[: len(robot.joints)]) * coordinate_rates
        force, input_matrix = force.xreplace(robot.rates), input_matrix.xreplace(robot.rates)
        mass_matrix, force, input_matrix = rolled(independent.jacobian(state), drift, mass_matrix, force, input_matrix)
        named = tuple((symbol, value.xreplace(robot.rates)) for symbol, value in named)
    equations = EquationsOfMotion(
        coordinates=tuple(q[: len(robot.joints)]),
        velocities=tuple(state),
        inputs=tuple(u),
        parameters=tuple(parameter.symbol for parameter in robot.parameters if not parameter.fixed),
        definitions=named,
        coordinate_rates=coordinate_rates,
        mass_matrix=mass_matrix,
        force=force,
        input_matrix=input_matrix,
        state_cost=task.state_cost.xreplace(robot.rates),
        input_costs=task.input_costs,
        **_flows(robot, u),
        implicit={z: slopes for closure in loops.closures(robot) for z, slopes in closure.implicit.items()},
    ).xreplace(fixed)
    return with_trim(robot, without_ignored(robot, _commanded(robot, equations, fixed)))


def _kinematic(robot: Robot) -> EquationsOfMotion:
    """The equations of a robot whose inputs command velocities: its coordinates are states of first order, too.

    Raises ModelError for a coordinate without a flow, and for what has mass or acts on it.
    """
    bodies = robot.ignored, robot.kinetic, robot.potential, robot.links, robot.balls, robot.loops
    forces = robot.loads, robot.commanded, robot.rolls.values(), robot.speeds, [robot.system] if robot.system else []
    stated: list[Any] = [line for lines in (*bodies, *forces) for line in lines]
    if stated:
        place: Place = stated[0].place
        raise ModelError(
            "robot.flow gives the rates of the coordinates, so that forces and masses change nothing. Remove this "
            "line, or write forces in place of robot.flow.",
            place,
        )
    rates = {joint.symbol.rate: joint.symbol for joint in robot.joints}
    for written in model_expressions(robot):
        if named := sorted(written.value.free_symbols & rates.keys(), key=str):
            q = rates[named[0]]
            raise ModelError(f"`{q}.rate` is no state: robot.flow({q}, ...) gives it. Write that.", written.place)
    if len(robot.limits) < 2:
        raise ModelError(
            "the robot has one state, and needs two: add a coordinate, or u = robot.lag(u, ...).", robot.joints[0].place
        )
    u = [declared.symbol for declared in robot.inputs]
    task, none = robot.declared_task, Matrix.zeros(0, 1)
    return EquationsOfMotion(
        coordinates=(),
        velocities=(),
        inputs=tuple(u),
        parameters=tuple(parameter.symbol for parameter in robot.parameters if not parameter.fixed),
        definitions=(),
        coordinate_rates=none,
        mass_matrix=Matrix.zeros(0, 0),
        force=none,
        input_matrix=Matrix.zeros(0, len(u)),
        state_cost=task.state_cost,
        input_costs=task.input_costs,
        **_flows(robot, u),
    )


def _flows(robot: Robot, u: Sequence[Symbol]) -> dict[str, Any]:
    """The fields of the equations that hold the states of first order, among them the coordinates of a kinematic robot.

    Raises ModelError for one without a flow.
    """
    flows = {flow.state: flow for flow in robot.flows}
    states = [*(robot.joints if robot.kinematic else ()), *robot.internal]
    for state in states:
        if state.symbol not in flows:
            raise ModelError(
                f"the state `{state.symbol}` has no flow. Write robot.flow({state.symbol}, rate), its rate of change.",
                state.place,
            )
    z = tuple(state.symbol for state in states)
    drift, slopes = Matrix.zeros(len(z), 1), Matrix.zeros(len(z), len(u))
    for row, symbol in enumerate(z):
        drift[row], slopes[row, :] = affine(flows[symbol].rate, u, flows[symbol].place, f"flow of `{symbol}`")
    return {"internal": z, "flow": drift.xreplace(robot.rates), "flow_matrix": slopes.xreplace(robot.rates)}


def _commanded(robot: Robot, free: EquationsOfMotion, fixed: Mapping[Symbol, Expr]) -> EquationsOfMotion:
    """The equations in which the commanded accelerations c replace rows of M vdot = f.

    With o for the other rows, M_oo vdot_o = f_o - M_oc c, so that M stays symmetric. Raises ModelError for a
    coordinate whose rate is not an entry of v.
    """
    if not robot.commanded:
        return free
    mass, force, inputs = (Matrix(matrix) for matrix in (free.mass_matrix, free.force, free.input_matrix))
    rows, commands = [], []
    for commanded in robot.commanded:
        rate = commanded.coordinate.rate
        if rate not in free.velocities:
            raise ModelError(
                f"the rate of `{commanded.coordinate}` is not an entry of the state, but another speed of the system. "
                "Command the acceleration of a coordinate whose rate is one.",
                commanded.place,
            )
        rows.append(free.velocities.index(rate))
        what = f"acceleration of `{commanded.coordinate}`"
        command = affine(
            commanded.acceleration.xreplace(robot.rates).xreplace(fixed), free.inputs, commanded.place, what
        )
        commands.append(command)
    for row, (drift, slopes) in zip(rows, commands, strict=True):
        force -= mass[:, row] * drift
        inputs -= mass[:, row] * slopes
    for row, (drift, slopes) in zip(rows, commands, strict=True):
        mass[row, :], mass[:, row] = Matrix.zeros(1, mass.cols), Matrix.zeros(mass.rows, 1)
        mass[row, row], force[row], inputs[row, :] = S.One, drift, slopes
    mechanism = Free(free.mass_matrix, free.force, free.input_matrix, tuple(rows))
    return replace(free, mass_matrix=mass, force=force, input_matrix=inputs, free=mechanism)


def _refuse_speeds(robot: Robot) -> None:
    """Raise ModelError for a kinetic energy with a declared speed: Lagrange's equations need rates of coordinates."""
    own = {speed.symbol for speed in robot.velocities} - {joint.symbol.rate for joint in robot.independent}
    own -= {turn.rate for turn in robot.turns}
    for energy in robot.kinetic:
        named = sorted(energy.value.free_symbols & own, key=str)
        if named:
            raise ModelError(
                f"the kinetic energy contains the speed `{named[0]}`, which is not the rate of a coordinate. Write it "
                "in rates, such as x.rate * cos(yaw) + y.rate * sin(yaw) for a speed along a car.",
                energy.place,
            )


def rolled(
    T: Matrix, drift: Matrix, mass_matrix: Matrix, force: Matrix, input_matrix: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """M, force and input matrix along the speeds v of a robot that rolls.

    All rates are T v, and their accelerations T vdot + drift. The forces that prevent slip do no work along T.
    """
    moved = (T.T * mass_matrix * T).applyfunc(collapsed)
    moved = Matrix(moved.rows, moved.rows, lambda i, j: moved[max(i, j), min(i, j)])
    return moved, (T.T * (force - mass_matrix * drift)).applyfunc(collapsed), T.T * input_matrix


def _system(
    robot: Robot, system: MechanicalSystem, v: Sequence[Symbol], u: Sequence[Symbol]
) -> tuple[Matrix, Matrix, Matrix]:
    """Mass matrix, force at u = 0 and input matrix of the system, with rows in the order of v."""
    if system.own and (robot.kinetic or robot.links):
        place = robot.kinetic[0].place if robot.kinetic else robot.links[0].place
        raise ModelError(
            f"a body is added to a system in which the rate of `{next(iter(system.own))}` is not a speed. Add "
            "it to the system's own bodies; only forces, springs and losses may be added here.",
            place,
        )
    mass_matrix, force = Matrix.zeros(len(v), len(v)), Matrix.zeros(len(v), 1)
    input_matrix = Matrix.zeros(len(v), len(u))
    rows = [v.index(speed) for speed in system.speeds]
    for i, row in enumerate(rows):
        force[row], input_matrix[row, :] = affine(system.force[i], u, system.place)
        for j, column in enumerate(rows):
            mass_matrix[row, column] = system.mass_matrix[i, j]
    return mass_matrix, force, input_matrix


def generalized_forces(loads: Sequence[Load], q: Sequence[Symbol], u: Sequence[Symbol]) -> tuple[Matrix, Matrix]:
    """The generalized forces (n_q, 1) at u = 0, and the input matrix (n_q, m).

    A load does the work force * d(displacement), so that it acts along q_i with force * d(displacement)/dq_i.
    Raises ModelError for a force that is not affine in the inputs.
    """
    forces = Matrix.zeros(len(q), 1)
    input_matrix = Matrix.zeros(len(q), len(u))
    for load in loads:
        at_zero, slopes = affine(load.force, u, load.place)
        for row, coordinate in enumerate(q):
            lever = load.displacement.diff(coordinate)
            forces[row] += lever * at_zero
            for column, slope in enumerate(slopes):
                input_matrix[row, column] += lever * slope
    return forces, input_matrix


def affine(force: Expr, u: Sequence[Symbol], place: Place, what: str = "applied force") -> tuple[Expr, Matrix]:
    """A force at u = 0 and its slopes in the inputs (1, m). Raises ModelError if a slope depends on an input."""
    slopes = [force.diff(symbol) for symbol in u]
    for column, slope in enumerate(slopes):
        if not slope.free_symbols.isdisjoint(u) and is_expandable(slope):
            slopes[column] = slope.expand()
        if not slopes[column].free_symbols.isdisjoint(u):
            raise ModelError(
                f"the {what} {abridged(str(force))} is not affine in the input `{u[column]}`. "
                "Inputs may only be multiplied by expressions of the state and added; declare the nonlinear term "
                "itself as the input, for example.",
                place,
            )
    return force.xreplace(dict.fromkeys(u, S.Zero)), Matrix([slopes])
