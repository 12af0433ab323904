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

from modelgen.loader import CompiledRobot
from solver.game.policies import CONTRACTIONS, NEWTON_STEPS, SHORTEST, SMALL, held_seconds
from solver.problem.problem import FARTHEST
from solver.training.solution import Solution
from solver.value.network import DIAGONAL_FLOOR

TEMPLATES = Path(__file__).parent / "templates"


def emit(solution: Solution, label: str) -> str:
    """Text of the module: policy(x, u) fills u and returns its cost, value(x, gradient) fills dV/dx and returns V."""
    robot = solution.problem.robot
    source, names = robot.javascript()
    return "\n".join(
        [
            f"// Made by `solver export`; not to be edited. {robot.name}: policy(x, u) fills the input of one state.",
            *_constants(robot),
            f"export const label = {as_json(label)};",
            source,
            engine(),
            f"const run = {as_json(numbers(solution))};",
            f"const robot = {{ {', '.join(names)} }};",
            "export const { policy, value } = makePolicy(robot, facts, nominal, run);",
            f"export {{ {', '.join(names)} }};\n",
        ]
    )


def _constants(robot: CompiledRobot) -> list[str]:
    return [
        f"export const facts = {as_json(asdict(robot.metadata))};",
        f"export const nominal = {as_json([parameter.value for parameter in robot.metadata.parameters])};",
    ]


def engine() -> str:
    """JavaScript of makePolicy(robot, facts, nominal, run) -> {policy, value}."""
    return (TEMPLATES / "policy.js").read_text(encoding="utf-8")


def as_json(value: object) -> str:
    """JSON that is safe in a script of a page for all strings."""
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def numbers(solution: Solution) -> dict[str, object]:
    """Argument `run` of makePolicy."""
    solution.require_own_trim()
    ensemble = copy.deepcopy(solution.ensemble).double()
    features, basin = ensemble.features, ensemble.basin
    flat = []
    for member in solution.ensemble.factors:
        for weight, bias in zip(member.weights, member.biases, strict=True):
            flat += [weight.detach().numpy().ravel(), bias.detach().numpy()]
    settings = solution.run.settings
    return {
        "sizes": [features.size, *(len(bias) for bias in ensemble.factors[0].biases)],
        "members": len(ensemble.factors),
        "weights": base64.b64encode(np.concatenate(flat).astype("<f4").tobytes()).decode(),
        "angles": features.angles.tolist(),
        "others": features.others.tolist(),
        "scale": features.scale.tolist(),
        "rotations": [rotation.coordinate for rotation in features.rotations],
        "atTarget": features.at_target.tolist(),
        "metric": features.metric.tolist(),
        "bend": float(features.bend),
        "floor": DIAGONAL_FLOOR,
        "basin": {
            "level": basin.level,
            "target": basin.target.tolist(),
            "turns": basin.continuous.tolist(),
            "cost": basin.cost.tolist(),
        },
        "seconds": held_seconds(solution.problem, settings.reaction_periods),
        "farthest": FARTHEST,
        "shortest": SHORTEST,
        "small": SMALL,
        "newtonSteps": NEWTON_STEPS,
        "contractions": CONTRACTIONS,
    }
