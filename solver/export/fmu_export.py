"""Export of a policy as FMU: a controller for co-simulation at its control rate, with the observer if it has one."""

from __future__ import annotations

from modelgen.backends.fmu.archive import Unit, Variable, archive
from solver.export.c_export import emit as emit_policy
from solver.export.c_export import emit_observer
from solver.export.c_folder import filled, kernels, names
from solver.training.solution import Solution
from solver.value.told import Told, told_by

WITHOUT_OBSERVER = {"reset": "", "estimate": "memcpy(x, f->value, sizeof x);", "compensate": "", "sent": ""}


def emit(solution: Solution, label: str, version: int = 3, observer: bool = False) -> bytes:
    """NAME_policy.fmu of FMI 2.0 or 3.0, with machine code for this machine.

    Its inputs are the states; with an observer, the measured positions. Its tunable parameters are what the policy of a
    family is told. Its outputs are the robot's inputs, and `in_domain`: 1, or 0 where the state is not in the domain
    that the policy was made for. Raises ModelError without a C compiler, and SolverError for an artifact without the
    functions that are needed.
    """
    robot = solution.problem.robot
    functions = kernels(solution.problem, observer)
    sensed = len(robot.metadata.coordinates) if observer else len(robot.state_names)
    told = told_by(solution.problem, solution.ensemble)
    variables = _variables(solution, sensed, told)
    start = ", ".join(repr(variable.start or 0.0) for variable in variables)
    fields = names(robot, label) | {"sensed": sensed, "start": start}
    fields |= _with_observer(robot.name, told) if observer else WITHOUT_OBSERVER
    fields |= {"tell": "", "pass": ""} if told is None else _telling(robot.name, told)
    model = filled("controller_fmu.c", fields).encode()
    texts = emit_policy(solution, label) | (emit_observer(solution.problem) if observer else {})
    sources = {name: text.encode() for name, text in texts.items()} | functions
    sources = {name: text for name, text in sources.items() if not name.endswith(("_driver.c", "_replay.c"))}
    unit_name, parts = f"{robot.name}_policy", ("policy", "observer") if observer else ("policy",)
    memory = ["double periods;  /* control periods so far */"]
    memory += [f"{robot.name}_observer observer, trial;"] if observer else []
    of_wrapper: dict[str, object] = {
        "name": unit_name,
        "NAME": unit_name.upper(),
        "includes": "".join(f'#include "{robot.name}_{part}.h"\n' for part in parts),
        "memory": "\n".join(f"    {line}" for line in memory),
        "states": 0,
        "values": len(variables),
        "jacobian": 0,
    }
    task = robot.metadata.task
    description = f"Controller of {robot.name}: {label}"
    unit = Unit(unit_name, unit_name, description, variables, 1.0 / task.control_rate, solution.problem.horizon, False)
    return archive(unit, version, sources | {f"{unit_name}_fmu.c": model}, of_wrapper, f"{robot.name.upper()}_REAL")


def _telling(robot: str, told: Told) -> dict[str, object]:
    """Statements that tell the policy the parameters, which follow the outputs among the values."""
    members = ", ".join(f"f->value[IN_DOMAIN + {1 + i}]" for i in range(len(told.parameters)))
    tell = f"{robot}_told told;\n    {robot}_tell(&(const {robot}_context){{{members}}}, &told);\n    "
    return {"tell": tell, "pass": "&told, "}


def _with_observer(robot: str, told: Told | None) -> dict[str, object]:
    """Calls of the observer. A trial of the present period may be repeated until the period is over."""
    know = "" if told is None else f"{robot}_observer_know(&f->trial, told.parameters);\n    "
    return {
        "reset": f"{robot}_observer_reset(&f->observer);",
        "estimate": f"f->trial = f->observer;\n    {know}{robot}_observer_estimate(&f->trial, f->value, x);",
        "compensate": f"{robot}_observer_compensate(&f->trial, u);",
        "sent": f"{robot}_observer_sent(&f->trial, f->value + SENSED);\n        f->observer = f->trial;",
    }


def _variables(solution: Solution, sensed: int, told: Told | None) -> list[Variable]:
    """Measured states, then the robot's inputs, whether the state is in the domain, and what the policy is told."""
    robot = solution.problem.robot.metadata
    measured = list(zip(robot.states, robot.task.start_mean, strict=True))[:sensed]
    context = (
        []
        if told is None
        else [
            Variable(one.name, one.unit, one.meaning, "parameter", "tunable", min(max(one.value, low), high), low, high)
            for one, (low, high) in zip(told.parameters, told.ranges, strict=True)
        ]
    )
    first = sensed + len(robot.inputs) + 1
    known = (*range(sensed), *range(first, first + len(context)))
    variables = [
        Variable(state.name, state.unit, state.meaning, "input", "continuous", start) for state, start in measured
    ]
    variables += [
        Variable(
            entry.name,
            entry.unit,
            entry.meaning,
            "output",
            "discrete",
            lower=entry.lower,
            upper=entry.upper,
            depends_on=known,
        )
        for entry in robot.inputs
    ]
    name = "in_domain"
    while name in {variable.name for variable in [*variables, *context]}:
        name += "_"
    meaning = "1, or 0 where the state is not in the domain of the policy: stop the robot"
    return [*variables, Variable(name, "1", meaning, "output", "discrete", depends_on=known), *context]
