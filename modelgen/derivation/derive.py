"""The equations of motion of a robot: the sum of its energies, links, forces and system of SymPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sympy import Float, Matrix, Symbol

from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.lagrange import lagrange
from modelgen.derivation.newton_euler import newton_euler
from modelgen.derivation.virtual_work import affine, generalized_forces
from modelgen.errors import ModelError
from modelgen.statement.robot import Robot

if TYPE_CHECKING:
    from modelgen.statement.sympy_mechanics import MechanicalSystem


def equations_of_motion(robot: Robot) -> EquationsOfMotion:
    """M(q) vdot = force(q, v) + B(q) u, the sum of all that the file states; fixed parameters become numbers.

    Energies go through Lagrange's equations, links through the recursive Newton-Euler algorithm, loads through
    virtual work; a system of SymPy's brings its own equations. Where v are speeds other than dq/dt = G(q) v, forces
    along q are multiplied by G'. Raises ModelError for energies that are not quadratic in the rates, for forces that
    are not affine in the inputs, and for a robot without a task.
    """
    task = robot.declared_task
    q = [joint.symbol for joint in robot.joints]
    v = [speed.symbol for speed in robot.velocities]
    u = [declared.symbol for declared in robot.inputs]
    rates = [symbol.rate for symbol in q]
    mass_matrix, force = lagrange(robot.kinetic, robot.potential, q, rates)
    links = newton_euler(robot.links, q, robot.downward_acceleration, robot.symbols)
    mass_matrix += links.mass_matrix
    applied, input_matrix = generalized_forces(robot.loads, q, u)
    force += applied - links.bias
    substituted = robot.system.rates if robot.system else {}
    coordinate_rates = Matrix(rates).xreplace(substituted)
    if robot.system:
        G = coordinate_rates.jacobian(v)
        system_mass_matrix, system_force, system_input_matrix = _system(robot, robot.system, v, u)
        mass_matrix += system_mass_matrix
        force = G.T * force.xreplace(substituted) + system_force
        input_matrix = G.T * input_matrix.xreplace(substituted) + system_input_matrix
    fixed = {parameter.symbol: Float(parameter.value) for parameter in robot.parameters if parameter.fixed}
    return EquationsOfMotion(
        coordinates=tuple(q),
        velocities=tuple(v),
        inputs=tuple(u),
        parameters=tuple(parameter.symbol for parameter in robot.parameters if not parameter.fixed),
        definitions=tuple((symbol, value.xreplace(fixed)) for symbol, value in links.definitions),
        coordinate_rates=coordinate_rates.xreplace(fixed),
        mass_matrix=mass_matrix.xreplace(fixed),
        force=force.xreplace(fixed),
        input_matrix=input_matrix.xreplace(fixed),
        state_cost=task.state_cost.xreplace(substituted).xreplace(fixed),
        input_costs=task.input_costs,
    )


def _system(
    robot: Robot, system: MechanicalSystem, v: Sequence[Symbol], u: Sequence[Symbol]
) -> tuple[Matrix, Matrix, Matrix]:
    """Mass matrix, force at u = 0 and input matrix of a system of SymPy's, with rows in the order of v."""
    if system.own and (robot.kinetic or robot.links):
        place = robot.kinetic[0].place if robot.kinetic else robot.links[0].place
        raise ModelError(
            f"a body is added to a system whose speed `{next(iter(system.own.values())).symbol}` is no rate of a "
            "coordinate. Add it to the system's own bodies; forces, springs and losses may be added here.",
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
