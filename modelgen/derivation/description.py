"""Description of a robot for its artifact: names, units, limits, parameters, task; and the hash of its content."""

from __future__ import annotations

import hashlib
import json

from sympy import srepr

from modelgen.derivation.derive import generalized_forces
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.frames import sketch
from modelgen.derivation.trim import task_at_rest
from modelgen.metadata import Input, Metadata, Parameter, Rotation, State
from modelgen.statement.joints import UNITS
from modelgen.statement.robot import Robot


def metadata(robot: Robot, equations: EquationsOfMotion | None = None) -> Metadata:
    """The robot's description, with the states in the order x = (q, v, z). Raises ModelError without a task.

    equations: of motion, which give the inputs and the states of first order that hold the target; zero without them.
    """
    trim = equations.trim if equations else ()
    numbers = task_at_rest(robot, equations.rest, equations.followed) if equations else task_at_rest(robot, ())
    positions = [
        State(joint.symbol.name, "position", UNITS[joint.kind], joint.limit, joint.continuous, joint.meaning)
        for joint in robot.joints
    ]
    velocities = [
        State(speed.symbol.name, "velocity", speed.unit, speed.limit, False, speed.meaning)
        for speed in robot.velocities
    ]
    inputs = [
        Input(declared.symbol.name, declared.unit, declared.limit, declared.meaning, coordinate, declared.middle, held)
        for declared, coordinate, held in zip(
            robot.inputs, _moved_coordinates(robot), trim or [0.0] * len(robot.inputs), strict=True
        )
    ]
    parameters = [
        Parameter(declared.symbol.name, declared.value, declared.unit, *declared.bounds, declared.meaning)
        for declared in robot.parameters
        if not declared.fixed
    ]
    internal = [
        State(state.symbol.name, "internal", state.unit, state.limit, False, state.meaning) for state in robot.internal
    ]
    states = (*positions, *velocities, *internal)
    names = [state.name for state in states]
    rotations = tuple(
        Rotation(ball.name, names.index(ball.quaternion[0].name), names.index(ball.rate[0].name), ball.limit)
        for ball in robot.balls
    )
    return Metadata(robot.name, robot.description, states, tuple(inputs), tuple(parameters), numbers, rotations)


def _moved_coordinates(robot: Robot) -> list[str | None]:
    """For each input, the coordinate along which it acts, also through states of first order; None for several."""
    q = [*(joint.symbol for joint in robot.independent), *robot.turns]
    loads = [*robot.loads, *(robot.system.loads if robot.system else ())]
    _, input_matrix = generalized_forces(loads, q, [declared.symbol for declared in robot.inputs])
    result = []
    for declared, column in zip(robot.inputs, input_matrix.T.tolist(), strict=True):
        moved = {symbol.name for symbol, entry in zip(q, column, strict=True) if entry != 0}
        driven = {flow.state for flow in robot.flows if declared.symbol in flow.rate.free_symbols}
        forces = [load for load in loads if driven & load.force.free_symbols]
        moved |= {symbol.name for load in forces for symbol in q if load.displacement.diff(symbol) != 0}
        result.append(next(iter(moved)) if len(moved) == 1 else None)
    return result


def content_hash(robot: Robot) -> str:
    """SHA-256 of the content of a model file: energies, forces, cost, numbers, names, units and drawing.

    `modelgen check` compares it with the artifact's. It ignores comments and layout, and it includes helper modules.
    It needs no derivation, so that `modelgen check` is fast.
    """
    drawn = sketch(robot)
    content = {
        "metadata": metadata(robot).content(),
        "kinetic": [srepr(energy.value) for energy in robot.kinetic],
        "potential": [srepr(energy.value) for energy in robot.potential],
        "loads": [[srepr(load.displacement), srepr(load.force)] for load in robot.loads],
        "fixed": [[parameter.symbol.name, parameter.value] for parameter in robot.parameters if parameter.fixed],
        "state_cost": srepr(robot.declared_task.state_cost),
        "action_cost": [cost.statement for cost in robot.declared_task.input_costs],
        "sketch": [[srepr(entry) for entry in point] for point in drawn.points],
        "segments": drawn.segments,
    }
    if any(energy.elastic for energy in robot.potential):  # the function `gravity` leaves springs out
        content["elastic"] = [energy.elastic for energy in robot.potential]
    if robot.links:
        content["links"] = [link.statement() for link in robot.links]
        content["gravity"] = srepr(robot.downward_acceleration)
    if robot.commanded:
        content["commanded"] = [[each.coordinate.name, srepr(each.acceleration)] for each in robot.commanded]
    if robot.flows:
        content["flows"] = [[flow.state.name, srepr(flow.rate)] for flow in robot.flows]
        task, internal = robot.declared_task, {state.symbol.name for state in robot.internal}
        stated = [sorted(internal - task.unstated), sorted(internal - task.unstarted)]
        content |= {"at rest": stated} if any(stated) else {}  # a stated zero is not the value that holds the target
    if robot.ignored:
        content["ignored"] = [[joint.symbol.name, joint.kind] for joint in robot.ignored]
    if robot.rolls:
        content["rolls"] = [[symbol.name, srepr(rolling.rate)] for symbol, rolling in robot.rolls.items()]
    if robot.loops:
        content["loops"] = [loop.statement() for loop in robot.loops]
        content["dependent"] = [[joint.symbol.name, joint.kind, joint.limit] for joint in robot.dependent]
    if robot.system:
        content["system"] = robot.system.statement()
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
