"""The content hash of a model file: what tells whether an artifact was made from it as it stands."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from sympy import srepr

from modelgen.derivation.description import metadata
from modelgen.derivation.sketch import sketch
from modelgen.statement.robot import Robot


def content_hash(robot: Robot) -> str:
    """SHA-256 of all that the robot states: energies, forces, cost, numbers, names, units and drawing.

    Comments and layout of the file do not matter, and an edited helper module does. Nothing is derived, so that
    `modelgen check` is fast.
    """
    drawn = sketch(robot)
    statement = {
        "metadata": asdict(metadata(robot)),
        "kinetic": [srepr(energy.value) for energy in robot.kinetic],
        "potential": [srepr(energy.value) for energy in robot.potential],
        "loads": [[srepr(load.displacement), srepr(load.force)] for load in robot.loads],
        "fixed": [[parameter.symbol.name, parameter.value] for parameter in robot.parameters if parameter.fixed],
        "state_cost": srepr(robot.declared_task.state_cost),
        "action_cost": [each.statement() for each in robot.declared_task.input_costs],
        "sketch": [[srepr(entry) for entry in point] for point in drawn.points],
        "segments": drawn.segments,
    }
    if robot.links:
        statement["links"] = [link.statement() for link in robot.links]
        statement["gravity"] = srepr(robot.downward_acceleration)
    if robot.system:
        statement["system"] = robot.system.statement()
    return hashlib.sha256(json.dumps(statement, sort_keys=True).encode()).hexdigest()
