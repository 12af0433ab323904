"""The description of a robot for its artifact: names, units, limits, parameters and the task."""

from __future__ import annotations

from modelgen.derivation.virtual_work import generalized_forces
from modelgen.metadata import Input, Metadata, Parameter, State
from modelgen.statement.declarations import UNITS
from modelgen.statement.robot import Robot


def metadata(robot: Robot) -> Metadata:
    """The robot's description, its states in the order x = (q, v). Raises ModelError for a robot without a task."""
    numbers = robot.declared_task.numbers
    positions = [
        State(each.symbol.name, "position", UNITS[each.kind], each.limit, each.continuous, each.meaning)
        for each in robot.joints
    ]
    velocities = [
        State(each.symbol.name, "velocity", each.unit, each.limit, False, each.meaning) for each in robot.velocities
    ]
    inputs = [
        Input(each.symbol.name, each.unit, each.limit, each.meaning, coordinate)
        for each, coordinate in zip(robot.inputs, _moved_coordinates(robot), strict=True)
    ]
    parameters = [
        Parameter(each.symbol.name, each.value, each.unit, *each.bounds, each.meaning)
        for each in robot.parameters
        if not each.fixed
    ]
    states = (*positions, *velocities)
    return Metadata(robot.name, robot.description, states, tuple(inputs), tuple(parameters), numbers)


def _moved_coordinates(robot: Robot) -> list[str | None]:
    """For every input, the one coordinate along which it acts; None where it acts along several."""
    q = [joint.symbol for joint in robot.joints]
    loads = [*robot.loads, *(robot.system.loads if robot.system else ())]
    _, input_matrix = generalized_forces(loads, q, [each.symbol for each in robot.inputs])
    moved = [
        [symbol.name for symbol, entry in zip(q, column, strict=True) if entry != 0]
        for column in input_matrix.T.tolist()
    ]
    return [names[0] if len(names) == 1 else None for names in moved]
