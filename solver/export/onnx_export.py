"""Export of a policy as one ONNX graph: x (N, n) -> u (N, m), V (N, 1), dV_dx (N, n), any N, float32.

The graph of a family has a second input, the context (N, k) in SI units, one for each state. The policy is that of
`solver.game.policies` with the robot's functions for Torch, called with tensors of the graph.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import torch

from modelgen.loader import CompiledRobot
from solver.export.onnx_graph import OnnxGraph
from solver.export.onnx_value import value_of
from solver.game.policies import make_policy
from solver.problem.problem import FARTHEST, Problem
from solver.training.solution import Solution
from solver.value.told import told_by


@torch.no_grad()
def emit(solution: Solution, label: str) -> bytes:
    """Content of the .onnx file. A solution with contexts gives a graph with the input `context`."""
    robot, told = solution.problem.robot.with_kernels("torch", "float32"), told_by(solution.problem, solution.ensemble)
    problem = Problem(robot, given=() if told is None else solution.run.given)
    if told is None and solution.problem.action_cost.slope is not None:
        problem.hold(solution.problem.trim)
    graph, inputs, facts = OnnxGraph(), {"x": len(problem.target)}, _facts(solution, robot, label)
    x = graph.input("x", inputs["x"])
    x = torch.where(torch.isfinite(x), x.clamp(-FARTHEST, FARTHEST), torch.nan)
    rows = problem.geometry.normalised(x)
    if told is not None:
        inputs, facts = inputs | {"context": len(told.parameters)}, facts | {"context": json.dumps(told.described())}
        context = graph.input("context", inputs["context"])
        rows = torch.cat([rows, ((context - told.context.middle) / told.context.half).clamp(-1.0, 1.0)], 1)
    value = partial(value_of, solution)
    policy = make_policy(problem, value, solution.run.settings.reaction_periods)
    V, gradient = value(rows)
    outputs = {"u": policy.respond(rows, gradient).u, "V": V[:, None], "dV_dx": gradient}
    content: bytes = graph.model(inputs, outputs, facts).SerializeToString()
    return content


def _facts(solution: Solution, robot: CompiledRobot, label: str) -> dict[str, str]:
    """Metadata of the file, with lists as JSON."""
    metadata, content = robot.metadata, robot.metadata.content()

    def described(entries: Any) -> str:
        kept = ("name", "unit", "limit", "meaning", "middle", "trim")
        return json.dumps([{name: entry[name] for name in kept if name in entry} for entry in entries])

    return {
        "robot": robot.name,
        "policy": label,
        "states": described(content["states"]),
        "inputs": described(content["inputs"]),
        "control_rate": repr(metadata.task.control_rate),
        "reaction_periods": repr(solution.run.settings.reaction_periods),
        "artifact": robot.hash,
    }
