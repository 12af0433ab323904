"""Export of a policy as one JavaScript module without dependencies: kernels, drawing, policy and V in float64.

The weights are base64 text of float32, as in training. `solver page` puts the same code into a page.
"""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL
from solver.problem.domain import farthest
from solver.training.solution import Solution
from solver.value.family import REACH
from solver.value.network import DIAGONAL_FLOOR
from solver.value.told import told_by

TEMPLATES = Path(__file__).parent / "templates"


def emit(solution: Solution, label: str) -> str:
    """Text of the module: policy(x, u) fills u and returns its cost, value(x, gradient) fills dV/dx and returns V.

    A solution with contexts has tell({name: value}) too, which makes both those of a robot.
    """
    robot, told = solution.problem.robot, solution.problem.context is not None
    source, names = robot.javascript(solution.problem.moving_trim)
    return "\n".join(
        [
            f"// Made by `solver export`; not to be edited. {robot.name}: policy(x, u) fills the input of one state.",
            f"export const facts = {as_json(asdict(robot.metadata))};",
            f"export const nominal = {as_json([parameter.value for parameter in robot.metadata.parameters])};",
            f"export const label = {as_json(label)};",
            source,
            engine(),
            f"const run = {as_json(numbers(solution))};",
            f"const robot = {{ {', '.join(names)} }};",
            f"export const {{ policy, value{', tell' if told else ''} }} = makePolicy(robot, facts, run);",
            f"export {{ {', '.join(names)} }};\n",
        ]
    )


def engine() -> str:
    """JavaScript of makePolicy(robot, facts, run) -> {policy, value, cost}, and tell of a family."""
    return (TEMPLATES / "policy.js").read_text(encoding="utf-8")


def as_json(value: object) -> str:
    """JSON that is safe in a script of a page for all strings."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def numbers(solution: Solution) -> dict[str, object]:
    """Argument `run` of makePolicy."""
    problem, cost = solution.problem, solution.problem.action_cost
    moved = cost.slope is not None
    ensemble = copy.deepcopy(solution.ensemble).double()
    features, basin = ensemble.features, ensemble.basin
    flat = []
    for member in solution.ensemble.factors:
        for weight, bias in zip(member.weights, member.biases, strict=True):
            flat += [weight.detach().numpy().ravel(), bias.detach().numpy()]
    hold = solution.run.settings.hold
    return {
        "sizes": [len(ensemble.factors[0].weights[0]), *(len(bias) for bias in ensemble.factors[0].biases)],
        "members": len(ensemble.factors),
        "horizon": problem.horizon,
        "nominal": [parameter.value for parameter in problem.robot.metadata.parameters],
        "weights": base64.b64encode(np.concatenate(flat).astype("<f4").tobytes()).decode(),
        "angles": features.angles.tolist(),
        "others": features.others.tolist(),
        "scale": features.scale.tolist(),
        "rotations": [rotation.coordinate for rotation in features.rotations],
        "atTarget": features.at_target.tolist(),
        "metric": features.metric.tolist(),
        "bend": float(features.bend),
        "floor": DIAGONAL_FLOOR,
        "trim": problem.trim.tolist() if moved else [entry.trim for entry in problem.robot.metadata.inputs],
        "slope": cost.slope.tolist() if cost.slope is not None else [0.0] * len(problem.trim),
        "cost": float(cost.level),
        "told": _told(solution),
        "basin": {
            "level": basin.level,
            "target": basin.target.tolist(),
            "turns": basin.continuous.tolist(),
            "cost": basin.cost.tolist(),
        },
        "drift": hold.drift,
        "seconds": hold.seconds(solution.problem),
        "farthest": farthest(solution.problem.robot.metadata),
        "shortest": SHORTEST,
        "small": SMALL,
        "newtonSteps": NEWTON_STEPS,
        "contractions": CONTRACTIONS,
    }


def _told(solution: Solution) -> dict[str, object] | None:
    """What `tell` computes with; None for a policy that is told nothing. held: whether the trim moves."""
    told, problem = told_by(solution.problem, solution.ensemble), solution.problem
    if told is None:
        return None
    places = told.context.columns.tolist()
    return {
        "context": [{**facts, "place": place} for facts, place in zip(told.described(), places, strict=True)],
        "entries": [0.0] * len(places),
        "degree": int(told.degrees.max()),
        "degrees": told.degrees.tolist(),
        "polynomial": told.polynomial.tolist(),
        "share": told.share,
        "form": told.form.tolist(),
        "reach": REACH,
        "shift": None if told.context.shift is None else told.context.shift.tolist(),
        "held": problem.moving_trim,
    }
