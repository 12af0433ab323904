"""Export of a policy and of the observer as C99 for the robot's controller: no allocation, no library except libm.

The weights are constants in the source. It calls NAME_affine_dynamics and NAME_optimal_input of `c_folder.kernels` for
B(x) and for the optimal input. The policy has no state; the observer has its state in a struct of the caller. The C
code is in `templates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from modelgen.backends import c
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.export.c_folder import (
    comment,
    domain,
    facts,
    filled,
    header,
    listed,
    names,
    network,
    origin,
    replay,
    rotations,
)
from solver.game.policies import BISECTIONS, CONTRACTIONS, SHORTEST, SMALL
from solver.observer import Observer, make_sensing, usual_counts
from solver.observer.observability import estimated_parameters
from solver.problem import Problem
from solver.problem.context import Context
from solver.problem.domain import farthest
from solver.training.solution import Solution
from solver.value.family import REACH
from solver.value.told import Told, told_by

#: Words of C and C++ that cannot name a member of a struct, but a parameter of a model file.
RESERVED = frozenset(
    "auto bool case catch char const default delete do double enum explicit extern float friend goto inline int long "  # noqa: SIM905
    "mutable namespace new operator private protected public register restrict short signed sizeof static struct "
    "switch template this throw typedef typename union unsigned using virtual void volatile".split()
)

CLOSE = 1e-2  # largest difference of the replay, as a share of half of an input's range
NOTE = "`solver\n * export --budget` makes a policy that a microcontroller can compute."


def emit(solution: Solution, label: str) -> dict[str, str]:
    """Texts of NAME_policy.h, NAME_policy.c, a driver and a replay, by file name.

    A solution with contexts gives a policy that is told them in a struct.
    """
    robot, told = solution.problem.robot, told_by(solution.problem, solution.ensemble)
    hold = solution.run.settings.hold
    seconds = hold.seconds(solution.problem)
    fields: dict[str, Any] = {**names(robot, label), **_held_input(robot, seconds), **network(solution.ensemble)}
    fields |= rotations(solution.problem, "policies", "errors", "slopes") | domain(solution.problem)
    basin = solution.value.basin  # in which V is a quadratic form of the errors
    fields |= {
        "target": listed(basin.target.tolist()),
        "turns": ", ".join(str(int(t)) for t in basin.continuous.tolist()),
    }
    fields |= _fixed(solution) if told is None else _told(solution.problem, told, robot.name)
    fields |= facts(robot, *origin(robot), f"Control rate {robot.metadata.task.control_rate} Hz.")
    fields["trim"] = "\n".join(filled(template, fields) for template in fields["trim"])
    held = "one_input.c" if len(robot.metadata.inputs) == 1 else "several_inputs.c"
    act = ("held_input.c", held) if seconds else ("closed_form.c",)
    fields["act"] = "\n".join(filled(template, fields) for template in act)
    fields["drift"] = filled("drift.c", fields) if seconds and hold.drift else ""
    fields["context_struct"] = "" if told is None else filled("told.h", fields)
    fields |= header(robot, "`solver export`", " and the value function behind it", NOTE, filled("value.h", fields))
    fields |= replay(solution.problem, solution.controller(), CLOSE)
    files = {end: f"policy{end}" for end in (".h", ".c", "_driver.c", "_replay.c")}
    return {f"{robot.name}_policy{end}": filled(template, fields) for end, template in files.items()}


def emit_observer(problem: Problem, estimate: Sequence[str] = ()) -> dict[str, str]:
    """Texts of NAME_observer.h, NAME_observer.c and NAME_observer_driver.c with default encoders, by file name.

    estimate: parameters that it estimates, as in `estimated_parameters`, whose errors are raised.
    """
    robot, sensing = problem.robot, make_sensing(problem, usual_counts(problem))
    _require_told(problem, estimate)
    estimated = estimated_parameters(problem, sensing, estimate)
    observer, parameters = Observer(problem, sensing, estimated), len(problem.theta)
    if observer.leaning:
        raise SolverError(
            f"--estimate {robot.parameter_names[observer.leaning[0]]}: no input balances it at the target, so that the "
            "robot must rest in another pose, and the observer in C has none. Leave it out, or use "
            "solver.load_controller"
        )
    others = [i for i in range(parameters) if i not in estimated]
    lower, upper = problem.theta_bounds[estimated].T.tolist() if estimated else ([], [])
    largest = observer.largest.tolist()
    metadata = robot.metadata
    coordinates, n, q, pose = metadata.coordinates, len(problem.target), metadata.nq, metadata.pose
    # No coordinate of a quaternion is at its limit.
    limits = [2.0 if i in metadata.turning else limit for i, limit in enumerate(problem.state_limits.tolist())]
    kinds = [state.kind for state in robot.metadata.states]
    still = [value if kind == "internal" else 0.0 for value, kind in zip(problem.target.tolist(), kinds, strict=True)]
    exact = make_sensing(problem, rates=problem.target.new_zeros(n - q)).deviation.double() ** 2
    fields = names(robot, "") | {
        "q": q,
        # Positions whose rates are the first entries of v, with exact derivatives.
        "exact": 0 if metadata.rotations or metadata.unrated else q,
        "errors": problem.geometry.size,
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
        "steps": observer.problem.substeps,
        "turns": ", ".join(str(int(state.continuous)) for state in robot.metadata.states),
        "state_limits": listed(limits),
        "farthest": listed(farthest(metadata)),
        "lower": listed(problem.lower_input.tolist()),
        "upper": listed(problem.upper_input.tolist()),
        "trim": listed(problem.trim.tolist()),
        "wrong": listed((observer.errors[others] ** 2).tolist()) or "0",
        "still": f"((const real[]){{{listed(still)}}})[i]" if any(still) else "0",
        "unknown": listed(observer.unknown.tolist()),
        "added": listed(observer.added[pose:].tolist()),
        "usual": listed(observer.measured.tolist()),
        # So large that the rates count as not measured, until the user writes the sensors' deviations.
        "usual_rates": listed(observer.unknown[pose : problem.geometry.size].tolist()),
        "least": listed(exact[:pose].tolist()),
        "least_rates": listed(exact[pose:].tolist()),
    }
    fields |= rotations(problem, "errors", "observers")
    fields["of_turns"] = "; of a rotation, of its three small turns" if metadata.rotations else ""
    fields["between"] = "" if metadata.rolls else filled("observer_between.c", fields)
    if not parameters:
        fields["nominal"] = f"(const {robot.name}_real[]){{0}}"  # from which nothing is copied
    nothing = {"start": fields["nominal"], **dict.fromkeys(("known", "know", "know_function", "knows_nominal"), "")}
    fields |= _knowing(fields) if problem.context else nothing
    shift = _shift_of_input(problem, estimated, fields)
    fields["shift"] = filled("observer_shift.c", fields | shift) if shift else ""
    fields["shifted"] = "    if (o->measured) shift(f->parameters, shifted);\n" if shift else ""
    files = {".h": "observer.h", ".c": "observer.c", "_driver.c": "observer_driver.c"}
    return {f"{robot.name}_observer{end}": filled(template, fields) for end, template in files.items()}


def _shift_of_input(problem: Problem, estimated: Sequence[int], fields: Mapping[str, Any]) -> dict[str, object]:
    """Fields of the shift of the input by estimates that the policy does not know, those of a family beyond its told
    ranges. Empty where there are none."""
    context, declared = problem.context, problem.robot.metadata.parameters
    reach = listed(problem.input_limits.tolist())
    if context is None:
        holds = f"    const real *known = {fields['nominal']}, *u0 = trim;\n"
        return {"held_input": "", "policy_holds": holds, "input_limits": reach} if estimated else {}
    columns, moving = context.columns.tolist(), problem.moving_trim
    ends = ((declared[i], context.given[columns.index(i)]) for i in estimated)
    if all(told.lower <= one.lower and one.upper <= told.upper for one, told in ends):
        return {}
    along = context.half.new_zeros(len(context), len(problem.target)) if context.shift is None else context.shift
    told = {
        **_ranges(context),
        "along": ", ".join(f"{{{listed(row)}}}" for row in along.tolist()),
        "trim_at": filled("observer_trim.c", fields) if moving else "    memcpy(u0, trim, sizeof u0);",
    }
    return {
        "held_input": f"{_held_input_of(problem.robot)}\n\n" if moving else "",
        "policy_holds": filled("observer_told.c", {**fields, **told}),
        "target": listed(context.target.tolist()),
        "input_limits": reach,
    }


def _require_told(problem: Problem, estimate: Sequence[str]) -> None:
    """Raises SolverError for a family whose observer estimates a parameter that the policy is not told."""
    told = () if problem.context is None else problem.context.names
    if untold := [name for name in estimate if told and name not in told]:
        raise SolverError(
            f"--estimate {untold[0]}: the policy of this family is told {', '.join(told)} only, and its observer in C "
            "estimates nothing else. Leave it out, or export one robot with --set, whose observer compensates for it"
        )


def _knowing(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields of an observer that is told the parameters of the robot."""
    name = fields["name"]
    nominal = f"    memcpy(o->known, {fields['nominal']}, sizeof o->known);\n"
    return {
        "start": "o->known",
        "known": f"    {name}_real known[{fields['p']}]; /* parameters that a filter begins with */\n",
        "know": "/* The parameters of the robot from now on: those in the told policy. A reset makes them nominal,\n"
        " * and the filters begin with them. Estimated ones are estimated on. */\n"
        f"void {name}_observer_know({name}_observer *observer, const {name}_real *parameters);\n\n",
        "know_function": filled("observer_know.c", fields),
        "knows_nominal": nominal,
    }


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


_IN_DRIVER = ("told_in_driver", "tell_in_driver", "driver_pass", "and_context")
#: Fields that are empty for a policy that is told nothing.
UNTOLD = {"k": 0, **dict.fromkeys(("to", "of", "pass", "context_features", "shifted", "unused", *_IN_DRIVER), "")}


def _fixed(solution: Solution) -> dict[str, Any]:
    """Fields of a policy that is told nothing: constants of one robot. `trim` names templates."""
    features, basin, problem = solution.ensemble.features, solution.value.basin, solution.problem
    cost = problem.action_cost
    own = [entry.trim for entry in problem.robot.metadata.inputs] if cost.slope is None else problem.trim.tolist()
    fields = {
        **UNTOLD,
        "seen": "FEATURES",
        "optimal": f"{problem.robot.name}_optimal_input(",
        "trims": listed(own),
        "trim": ["fixed_trim.c"],
        "bend": repr(float(features.bend)),
        "metric": ",\n".join(f"    {{{listed(row)}}}" for row in features.metric.tolist()),
        "level": repr(basin.level),
        "cost": ",\n".join(f"    {{{listed(row)}}}" for row in basin.cost.tolist()),
    }
    if cost.slope is not None:
        slope = f"((const real[]){{{listed(cost.slope.tolist())}}})"
        fields |= {"trim": ["fixed_trim.c", "about_trim.c"], "optimal": "optimal(", "slope": slope}
    fields["constants"] = filled("fixed_form.c", fields)
    return fields | {"parameters": names(problem.robot, "")["nominal"]}


def _told(problem: Problem, told: Told, name: str) -> dict[str, Any]:
    """Fields of a policy that is told a context, and of the basin and the metric that depend on it."""
    errors, features = told.errors, told.features
    form = f"level, cost[{errors}][{errors}], bend, metric[{features}][{features}]"
    of_product = (
        "the reciprocal of the largest level of the basin, and the factors of its cost, row by row of\n"
        " * the lower triangle, with reciprocals of the pivots on the diagonal"
    )
    fields = told_fields(problem, told.context, name, told.degrees, told.polynomial)
    rows = ",\n".join(f"        {{{listed(row)}}}" for row in told.form.tolist())
    of_form = {"parts": len(told.form), "reach": repr(REACH), "share": repr(told.share), "form": rows}
    unpacked = filled("told_form.c", of_form)
    return fields | {"members_of_form": form, "of_product": of_product, "unpacked": unpacked}


def told_fields(problem: Problem, context: Context, name: str, degrees: Tensor, polynomial: Tensor) -> dict[str, Any]:
    """Fields of a policy that is told a context. `trim` names templates. polynomial: (b, ...) numbers of the terms of
    `degrees` (b, k)."""
    own = [f"{entry}_" if entry in RESERVED else entry for entry in context.names]
    named = {parameter.name: parameter for parameter in problem.robot.metadata.parameters}
    parameters = [named[entry] for entry in context.names]
    rows = list(zip(own, parameters, [(entry.lower, entry.upper) for entry in context.given], strict=True))
    prefix = name.upper()
    return {
        "to": f"const {name}_told *told, ",
        "of": "told->",
        "pass": "told, ",
        "constants": f"enum {{ ENTRIES = {len(own)} }};\n\n",
        "parameters": "told->parameters",
        "seen": "FEATURES + ENTRIES",
        "context_features": "    for (int i = 0; i < ENTRIES; i++) z[FEATURES + i] = told->entries[i];\n",
        "unused": "" if problem.moving_trim else "    (void)told;\n",
        **_shift(context, name),
        "optimal": "optimal(told, " if problem.moving_trim else f"{name}_optimal_input(",
        "slope": "told->slope",
        "trim": ["hold.c", "told.c", "about_trim.c"] if problem.moving_trim else ["told.c"],
        "trimmed": "    hold(told);\n" if problem.moving_trim else _constant_trim(problem),
        "p": len(problem.theta),
        "members_of_context": "\n".join(
            f"    {name}_real {field}; /* {comment(one.unit)}, {low:g} to {high:g}: {comment(one.meaning)} */"
            for field, one, (low, high) in rows
        ),
        "nominal_context": listed(one.value for one in parameters),
        "ranges": "\n".join(
            f"#define {prefix}_{one.name.upper()}_LOWER {low!r}\n#define {prefix}_{one.name.upper()}_UPPER {high!r}"
            for _, one, (low, high) in rows
        ),
        "all_in_range": " && ".join(
            f"(context).{field} >= {prefix}_{one.name.upper()}_LOWER"
            f" && (context).{field} <= {prefix}_{one.name.upper()}_UPPER"
            for field, one, _ in rows
        ),
        "given": ", ".join(f"context->{field}" for field in own),
        **_ranges(context),
        "nominal_values": listed(problem.theta.tolist()),
        "terms": len(degrees),
        "degree": int(degrees.max()),
        "degrees": ", ".join(f"{{{', '.join(map(str, row))}}}" for row in degrees.tolist()),
        "numbers": polynomial.shape[1],
        "polynomial": ",\n".join(f"    {{{listed(row)}}}" for row in polynomial.tolist()),
        "held_input": _held_input_of(problem.robot) if problem.moving_trim else "",
        **_driver(name, own, len(problem.target)),
    }


def _ranges(context: Context) -> dict[str, object]:
    """Fields of the k entries of a context: their places in theta, and their ranges."""
    ranges = {"middles": listed(context.middle.tolist()), "halves": listed(context.half.tolist())}
    return {"k": len(context), "places": ", ".join(map(str, context.columns.tolist())), **ranges}


def _shift(context: Context, name: str) -> dict[str, str]:
    """Fields of a target that moves: V is computed at the state minus what the context adds to the target."""
    if context.shift is None:
        return dict.fromkeys(("member_shift", "shift_target", "shifted", "plus_shift"), "")
    rows = ", ".join(f"{{{listed(row)}}}" for row in context.shift.tolist())
    add = "told->shift[s] += told->entries[i] * along[i][s];"
    return {
        "member_shift": f"    {name}_real shift[{context.shift.shape[1]}]; /* of the target, by references */\n",
        "shift_target": f"    static const real along[ENTRIES][STATES] = {{{rows}}};\n"
        "    for (int s = 0; s < STATES; s++) {\n        told->shift[s] = 0;\n"
        f"        for (int i = 0; i < ENTRIES; i++) {add}\n    }}\n",
        "shifted": "    for (int i = 0; i < STATES; i++) x[i] -= told->shift[i];\n",
        "plus_shift": " + told->shift[i]",
    }


def _held_input_of(robot: CompiledRobot) -> str:
    """The function `trim` in C, for a policy whose u0 moves with the context; its program takes a while to make."""
    return c.in_double(robot.trim_program, robot.trim_program.function("trim"), robot.name)


def _driver(name: str, own: Sequence[str], n: int) -> dict[str, str]:
    """Fields of the driver, which reads the context after the state."""
    read = ", ".join(f"in[{n + i}]" for i in range(len(own)))
    told = f"    {name}_told told;\n"
    tell = f"        {name}_tell(&(const {name}_context){{{read}}}, &told);\n"
    return dict(zip(_IN_DRIVER, (told, tell, "&told, ", f" and what it is told ({', '.join(own)})"), strict=True))


def _constant_trim(problem: Problem) -> str:
    values = listed(entry.trim for entry in problem.robot.metadata.inputs)
    return (
        "    for (int k = 0; k < INPUTS; k++) {\n"
        f"        told->trim[k] = ((const real[]){{{values}}})[k];\n        told->slope[k] = 0;\n    }}\n"
    )
