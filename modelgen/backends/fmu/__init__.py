"""A robot as FMU, for model exchange and co-simulation: the exports `fmu`, FMI 3.0, and `fmu2`, FMI 2.0."""

from __future__ import annotations

import numpy as np

from modelgen.arrays import Array, robust_steps
from modelgen.backends import c, casadi
from modelgen.backends.fmu.archive import TEMPLATES, Unit, Variable, archive, filled
from modelgen.errors import ModelError
from modelgen.metadata import Metadata, State
from modelgen.program.functions import Program

#: C that makes the length of a quaternion one, after an integration step.
NORMALISED = """\
        {{
            double *q = f->value + {}, length = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
            for (int i = 0; i < 4; i++) q[i] /= length;
        }}
"""


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """NAME.fmu of FMI 3.0, with machine code for this machine. Raises ModelError without a C compiler."""
    return {f"{robot.name}.fmu": made(program, robot, 3)}


class Fmi2:
    """The export `fmu2`, for older tools."""

    @staticmethod
    def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
        """As above, of FMI 2.0."""
        return {f"{robot.name}.fmu": made(program, robot, 2)}


def made(program: Program, robot: Metadata, version: int) -> bytes:
    """The robot's FMU. Its states start at the mean of the task's starts, and its inputs at the trim."""
    needed = {"dynamics", "jacobians"} - program.operations.keys()
    if needed:
        raise ModelError(
            f"an FMU needs {' and '.join(sorted(needed))}, which `{robot.name}` was built without. Build it without "
            "--functions."
        )
    variables, task = robot_variables(robot), robot.task
    n, m, p = len(robot.states), len(robot.inputs), len(robot.parameters)
    fields: dict[str, object] = {
        "name": robot.name,
        "NAME": robot.name.upper(),
        "includes": "",
        "memory": "",
        "states": n,
        "values": len(variables),
        "inputs": m,
        "parameters": p,
        "jacobian": n * (m + (n + p) * (m + 1)),
        "nominal": ", ".join(repr(state.limit) for state in robot.states),
        "start": ", ".join(repr(variable.start or 0.0) for variable in variables),
        "longest": repr(1.0 / task.control_rate / _steps(program, robot)),
        "normalised": "".join(NORMALISED.format(each.coordinate) for each in robot.rotations),
        "token": "$token",
    }
    sources = {name: text for name, text in c.emit(program, robot).items() if not name.endswith("_driver.c")}
    header = f'#include "{robot.name}.h"\n\n'.encode()
    model = filled(TEMPLATES / "robot.c", fields).replace(b"#include <math.h>", header + b"#include <math.h>", 1)
    unit = Unit(robot.name, robot.name, robot.description, variables, 1.0 / task.control_rate, task.horizon, True)
    return archive(unit, version, sources | {f"{robot.name}_fmu.c": model}, fields, f"{robot.name.upper()}_REAL")


def _steps(program: Program, robot: Metadata) -> int:
    """Integration steps in a control period that suffice within the bounds of the parameters, which are tunable."""
    dynamics = casadi.compiled(program.graph, program.function("dynamics"), robot.name)

    def rates(x: Array, u: Array, theta: Array) -> Array:
        return np.asarray(dynamics.map(len(x))(x.T, u.T, theta.T)).T

    return robust_steps(robot, rates)


def robot_variables(robot: Metadata) -> list[Variable]:
    """States, their derivatives, inputs and parameters, in the order of their value references."""
    n, m = len(robot.states), len(robot.inputs)
    behind = (*range(n), *range(2 * n, 2 * n + m + len(robot.parameters)))
    variables = [
        Variable(state.name, state.unit, state.meaning, "output", "continuous", start, nominal=state.limit)
        for state, start in zip(robot.states, robot.task.start_mean, strict=True)
    ]
    for i, state in enumerate(robot.states):
        name, unit = f"der({state.name})", _rate_of(state)
        meaning = f"time derivative of {state.name}"
        variables.append(Variable(name, unit, meaning, "local", "continuous", derivative_of=i, depends_on=behind))
    variables += [
        Variable(entry.name, entry.unit, entry.meaning, "input", "continuous", entry.trim, entry.lower, entry.upper)
        for entry in robot.inputs
    ]
    variables += [
        Variable(entry.name, entry.unit, entry.meaning, "parameter", "tunable", entry.value, entry.lower, entry.upper)
        for entry in robot.parameters
    ]
    return variables


def _rate_of(state: State) -> str:
    """The unit of a state's time derivative."""
    if state.unit in ("", "1"):
        return "1/s" if state.unit else ""
    above, _, below = state.unit.partition("/")
    if not below:
        return f"{above}/s"
    below = below.strip("() ")
    return f"{above}/s^2" if below == "s" else f"{above}/({below} s)"
