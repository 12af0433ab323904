"""Write a run's policy as C99 source for the robot's own controller: no allocation, no state, no library but libm.

The observer beside it keeps its state in a struct of the caller's.

The source holds the network's weights as constants. For B(x) and for the optimal input it calls NAME_affine_dynamics
and NAME_optimal_input of `modelgen export NAME --c DIR`. The C code stands in `templates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template

import torch

from modelgen.loader import CompiledRobot
from solver.fvi.solution import Solution
from solver.game.held_input_policy import BISECTIONS, CONTRACTIONS, SHORTEST, SMALL, held_seconds
from solver.observer.observer import Observer
from solver.observer.sensing import make_sensing, usual_counts
from solver.problem.problem import Problem
from solver.value.network import DIAGONAL_FLOOR

TEMPLATES = Path(__file__).parent / "templates"


def emit(solution: Solution, label: str) -> dict[str, str]:
    """NAME_policy.h, NAME_policy.c and NAME_policy_driver.c of a run, by file name."""
    robot = solution.problem.robot
    seconds = held_seconds(solution.problem, solution.run.settings.reaction_periods)
    fields = {**_names(robot, label), **_held_input(robot, seconds), **_network(solution), **_basin(solution)}
    held = "one_input.c" if len(robot.metadata.inputs) == 1 else "several_inputs.c"
    act = ("held_input.c", held) if seconds else ("closed_form.c",)
    fields["act"] = "\n".join(_filled(template, fields) for template in act)
    files = {".h": "policy.h", ".c": "policy.c", "_driver.c": "policy_driver.c"}
    return {f"{robot.name}_policy{end}": _filled(template, fields) for end, template in files.items()}


def emit_observer(problem: Problem) -> dict[str, str]:
    """NAME_observer.h, NAME_observer.c and NAME_observer_driver.c of a robot with usual encoders, by file name."""
    robot, observer = problem.robot, Observer(problem, make_sensing(problem, usual_counts(problem)))
    coordinates = robot.metadata.coordinates
    fields = _names(robot, "") | {
        "q": len(coordinates),
        "positions": f"positions ({', '.join(coordinates)})",
        "columns": len(observer.added) + len(observer.errors),
        "steps": problem.substeps,
        "turns": ", ".join(str(int(state.continuous)) for state in robot.metadata.states),
        "state_limits": _listed(problem.state_limits.tolist()),
        "input_limits": _listed(problem.input_limits.tolist()),
        "wrong": _listed(observer.errors.tolist()) or "0",
        "unknown": _listed(observer.unknown.tolist()),
        "added": _listed(observer.added.tolist()),
        "left": f"{observer.left:.17g}",
        "measured": _listed(observer.measured.tolist()),
    }
    files = {".h": "observer.h", ".c": "observer.c", "_driver.c": "observer_driver.c"}
    return {f"{robot.name}_observer{end}": _filled(template, fields) for end, template in files.items()}


def _filled(template: str, fields: Mapping[str, object]) -> str:
    """The text of a file of `templates`, every $name in it replaced."""
    return Template((TEMPLATES / template).read_text(encoding="utf-8")).substitute(fields)


def _names(robot: CompiledRobot, label: str) -> dict[str, object]:
    metadata = robot.metadata
    return {
        "name": robot.name,
        "NAME": robot.name.upper(),
        "label": label,
        "n": len(metadata.states),
        "m": len(metadata.inputs),
        "states": f"x ({', '.join(state.name for state in metadata.states)})",
        "inputs": f"u ({', '.join(entry.name for entry in metadata.inputs)})",
        "period": repr(1.0 / metadata.task.control_rate),
        "nominal": _nominal(robot),
    }


def _nominal(robot: CompiledRobot) -> str:
    """The parameters as an argument in C: the exported robot's own, or a literal where others were identified."""
    values = tuple(each.value for each in robot.metadata.parameters)
    if values == robot.declared_parameters:
        return f"{robot.name}_nominal" if values else "0"
    return f"(const {robot.name}_real[]){{{_listed(values)}}}"


def _held_input(robot: CompiledRobot, seconds: float) -> dict[str, object]:
    return {
        "limits": _listed(float(limit) for limit in robot.input_limits),
        "seconds": repr(seconds),
        "shortest": repr(SHORTEST),
        "small": repr(SMALL),
        "bisections": BISECTIONS,
        "contractions": CONTRACTIONS,
    }


def _network(solution: Solution) -> dict[str, object]:
    features, first = solution.ensemble.features, solution.ensemble.factors[0]
    sizes = [features.size, *(len(bias) for bias in first.biases)]
    members = []
    for member in solution.ensemble.factors:
        parts = [
            torch.cat([w.detach().flatten(), b.detach()]) for w, b in zip(member.weights, member.biases, strict=True)
        ]
        members.append(torch.cat(parts).numpy())
    rows = (", ".join(f"{value!s}f" for value in member) for member in members)
    return {
        "angles": len(features.angles),
        "features": features.size,
        "layers": len(sizes) - 2,
        "widest": max(sizes),
        "members": len(members),
        "weights": len(members[0]),
        "sizes": ", ".join(map(str, sizes)),
        "angle_index": ", ".join(map(str, features.angles.tolist())) or "0",
        "other_index": ", ".join(map(str, features.others.tolist())) or "0",
        "scale": _listed(features.scale.tolist()) or "0",
        "at_target": _listed(features.error_at_target.tolist()),
        "floor": repr(DIAGONAL_FLOOR),
        "network": ",\n".join(f"    {{{row}}}" for row in rows),
    }


def _basin(solution: Solution) -> dict[str, object]:
    """The states around the target where V is a quadratic form; level 0 where there are none."""
    basin = solution.value.basin
    return {
        "basin_level": repr(basin.level),
        "target": _listed(basin.target.tolist()),
        "turns": ", ".join(str(int(wraps)) for wraps in basin.continuous.tolist()),
        "basin_cost": ",\n".join(f"    {{{_listed(row)}}}" for row in basin.cost.tolist()),
    }


def _listed(values: Iterable[float]) -> str:
    return ", ".join(map(repr, values))
