"""Export of a policy and of the observer as C99 for the robot's controller: no allocation, no library except libm.

The weights are constants in the source. It calls NAME_affine_dynamics and NAME_optimal_input of `c_folder.kernels` for
B(x) and for the optimal input. The policy has no state; the observer has its state in a struct of the caller. The C
code is in `templates`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.export.c_folder import replay
from solver.export.c_templates import domain, facts, feature_map, filled, header, listed, names, origin, rotations
from solver.game.policies import BISECTIONS, CONTRACTIONS, SHORTEST, SMALL, held_seconds
from solver.observer.observability import estimated_parameters
from solver.observer.observer import Observer
from solver.observer.sensing import make_sensing, usual_counts
from solver.problem.problem import Problem
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

CLOSE = 1e-2  # largest difference of the replay, as a share of half of an input's range
NOTE = "`solver\n * export --budget` makes a policy that a microcontroller can compute."


def emit(solution: Solution, label: str) -> dict[str, str]:
    """Texts of NAME_policy.h, NAME_policy.c, a driver and a replay, by file name."""
    solution.require_own_trim()
    robot = solution.problem.robot
    seconds = held_seconds(solution.problem, solution.run.settings.reaction_periods)
    fields = {**names(robot, label), **_held_input(robot, seconds), **_network(solution), **_basin(solution)}
    fields |= rotations(solution.problem, slopes=True)
    fields |= domain(solution.problem) | {"trim": listed(entry.trim for entry in robot.metadata.inputs)}
    fields |= facts(robot, *origin(robot), f"Control rate {robot.metadata.task.control_rate} Hz.")
    held = "one_input.c" if len(robot.metadata.inputs) == 1 else "several_inputs.c"
    act = ("held_input.c", held) if seconds else ("closed_form.c",)
    fields["act"] = "\n".join(filled(template, fields) for template in act)
    declared = filled("value.h", fields)
    fields |= header(robot, "`solver export`", " and the value function behind it", NOTE, declared)
    fields |= replay(solution.problem, solution.controller(), CLOSE)
    files = {end: f"policy{end}" for end in (".h", ".c", "_driver.c", "_replay.c")}
    return {f"{robot.name}_policy{end}": filled(template, fields) for end, template in files.items()}


def _require_no_rotation(problem: Problem) -> None:
    """Raises SolverError for a robot with a rotation, whose observer is not available in C."""
    turning = problem.geometry.rotations
    if turning:
        raise SolverError(
            f"the joint {turning[0].name} of {problem.robot.name} is a rotation, and the observer in C has angles and "
            "lengths only; export without --observer, and give the policy the state from your own estimator"
        )


def emit_observer(problem: Problem, estimate: Sequence[str] = ()) -> dict[str, str]:
    """Texts of NAME_observer.h, NAME_observer.c and NAME_observer_driver.c with default encoders, by file name.

    estimate: parameters that it estimates, as in `estimated_parameters`, whose errors are raised.
    """
    _require_no_rotation(problem)
    robot, sensing = problem.robot, make_sensing(problem, usual_counts(problem))
    estimated = estimated_parameters(problem, sensing, estimate)
    observer, parameters = Observer(problem, sensing, estimated), len(problem.theta)
    others = [i for i in range(parameters) if i not in estimated]
    lower, upper = problem.theta_bounds[estimated].T.tolist() if estimated else ([], [])
    largest = observer.largest.tolist()
    coordinates, n = robot.metadata.coordinates, len(problem.target)
    q = robot.metadata.nq
    kinds = [state.kind for state in robot.metadata.states]
    still = [value if kind == "internal" else 0.0 for value, kind in zip(problem.target.tolist(), kinds, strict=True)]
    exact = make_sensing(problem, rates=problem.target.new_zeros(n - q)).deviation.double() ** 2
    fields = names(robot, "") | {
        "q": q,
        "coordinates": ", ".join(coordinates),
        "rates": ", ".join(robot.state_names[q:]),
        "e": len(estimated),
        "p": parameters,
        "parameters": max(1, parameters),
        "estimated": ", ".join(robot.parameter_names[i] for i in estimated) or "none",
        "order": ", ".join(map(str, [*estimated, *others])) or "0",
        "lowest": listed([*(-entry for entry in largest), *lower]),
        "highest": listed([*largest, *upper]),
        "target": listed(problem.target.tolist()),
        "steps": problem.substeps,
        "turns": ", ".join(str(int(state.continuous)) for state in robot.metadata.states),
        "state_limits": listed(problem.state_limits.tolist()),
        "lower": listed(problem.lower_input.tolist()),
        "upper": listed(problem.upper_input.tolist()),
        "trim": listed(problem.trim.tolist()),
        "wrong": listed((observer.errors[others] ** 2).tolist()) or "0",
        "still": f"((const real[]){{{listed(still)}}})[i]" if any(still) else "0",
        "unknown": listed(observer.unknown.tolist()),
        "added": listed(observer.added[q:].tolist()),
        "usual": listed(observer.measured.tolist()),
        # So large that the rates count as not measured, until the user writes the sensors' deviations.
        "usual_rates": listed(observer.unknown[q:n].tolist()),
        "least": listed(exact[:q].tolist()),
        "least_rates": listed(exact[q:].tolist()),
    }
    fields["shift"] = filled("observer_shift.c", fields) if estimated else ""
    fields["shifted"] = "    if (o->measured) shift(f->parameters, shifted);\n" if estimated else ""
    files = {".h": "observer.h", ".c": "observer.c", "_driver.c": "observer_driver.c"}
    return {f"{robot.name}_observer{end}": filled(template, fields) for end, template in files.items()}


def _held_input(robot: CompiledRobot, seconds: float) -> dict[str, object]:
    return {
        "limits": listed(float(limit) for limit in robot.input_limits),
        "lower": repr(robot.metadata.inputs[0].lower),
        "upper": repr(robot.metadata.inputs[0].upper),
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
    return feature_map(features) | {
        "layers": len(sizes) - 2,
        "widest": max(sizes),
        "members": len(members),
        "weights": len(members[0]),
        "sizes": ", ".join(map(str, sizes)),
        "at_target": listed(features.at_target.tolist()),
        "metric": ",\n".join(f"    {{{listed(row)}}}" for row in features.metric.tolist()),
        "bend": repr(float(features.bend)),
        "floor": repr(DIAGONAL_FLOOR),
        "network": ",\n".join(f"    {{{row}}}" for row in rows),
    }


def _basin(solution: Solution) -> dict[str, object]:
    """Fields of the basin, in which V is a quadratic form. Level 0 is no basin."""
    basin = solution.value.basin
    return {
        "basin_level": repr(basin.level),
        "target": listed(basin.target.tolist()),
        "turns": ", ".join(str(int(wraps)) for wraps in basin.continuous.tolist()),
        "basin_cost": ",\n".join(f"    {{{listed(row)}}}" for row in basin.cost.tolist()),
    }
