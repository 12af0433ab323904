"""Export of a policy as one ONNX graph: x (N, n) -> u (N, m), V (N, 1), dV_dx (N, n), any N, float32.

The graph of a family has a second input, the context (N, k) in SI units, one for each state. The policy is that of
`solver.game.policies` with the robot's functions for Torch, called with tensors of the graph. Features, errors and
basin are those of `solver.value`. The reverse sweep through the networks is written here, because `FrozenValue` has it
in buffers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.export.onnx_graph import OnnxGraph
from solver.problem import Problem
from solver.problem.domain import farthest
from solver.training.solution import Solution
from solver.value.family import REACH, Basin, terms
from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Factor
from solver.value.told import Told, told_by


@torch.no_grad()
def emit(solution: Solution, label: str) -> bytes:
    """Content of the .onnx file. A solution with contexts gives a graph with the input `context`."""
    robot, told = solution.problem.robot.with_kernels("torch", "float32"), told_by(solution.problem, solution.ensemble)
    problem = Problem(robot, given=() if told is None else solution.run.given)
    if told is None and solution.problem.action_cost.slope is not None:
        problem.hold(solution.problem.trim)
    graph, inputs, facts = OnnxGraph(), {"x": len(problem.target)}, _facts(solution, robot, label)
    x = graph.input("x", inputs["x"])
    most = torch.tensor(farthest(robot.metadata))
    x = torch.where(torch.isfinite(x), x.clamp(-most, most), torch.nan)
    rows = problem.geometry.normalised(x)
    if told is not None:
        inputs, facts = inputs | {"context": len(told.parameters)}, facts | {"context": json.dumps(told.described())}
        context = graph.input("context", inputs["context"])
        rows = torch.cat([rows, ((context - told.context.middle) / told.context.half).clamp(-1.0, 1.0)], 1)
    value = partial(value_of, solution)
    policy = solution.run.settings.hold.policy(problem, value)
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


def value_of(solution: Solution, rows: Tensor) -> tuple[Tensor, Tensor]:
    """V (N,) and dV/dx (N, n) at the rows (N, n + k), of tensors of a graph."""
    ensemble, told, n = solution.ensemble, told_by(solution.problem, solution.ensemble), len(solution.problem.target)
    features, basin, x, context = ensemble.features, solution.ensemble.basin, rows[:, :n], rows[:, n:]
    if told is not None:
        features, basin = _of_context(features, basin, told, context)
        x = x if told.context.shift is None else x - context @ told.context.shift
    z = features(x)
    straight, shrinking = features.straight(z)
    error, inputs = straight * shrinking, z if told is None else torch.cat([z, context], 1)
    members = [_member(member, features.size, inputs, error) for member in ensemble.factors]
    value, dz, dy = (sum(parts) / float(len(members)) for parts in zip(*members, strict=True))
    gradient = features.pull_back(x, z, error, shrinking, dz, dy)
    return basin.overlaid(x, value, gradient)


def _of_context(features: Features, basin: Basin, told: Told, c: Tensor) -> tuple[Features, Basin]:
    """Features and basin of the contexts c (N, k)."""
    if not told.share:
        return features, basin
    numbers = terms(c, told.degrees) @ told.polynomial.float()
    level, size = told.share / numbers[:, 0], told.errors
    factor = numbers[:, [1 + i for i in _mirrored(size)]].reshape(-1, size, size)
    unit = factor * torch.tril(torch.ones(size, size), -1) + torch.eye(size)
    cost = (unit / factor.diagonal(dim1=1, dim2=2)[:, None, :]) @ unit.mT
    rows, columns = torch.tril_indices(size, size)
    triangle = cost.reshape(-1, size * size)[:, (size * rows + columns).tolist()]
    sums = torch.cat([level[:, None], triangle], 1) @ told.form[1:].float()
    form = sums[:, _mirrored(told.features)].reshape(-1, told.features, told.features)
    metric = _cholesky(form, features.size)
    return replace(features, metric=metric, bend=(1.0 / (level * REACH))[:, None]), replace(
        basin, cost=cost, level=level
    )


def _mirrored(size: int) -> list[int]:
    """Places of the entries of a symmetric matrix, row by row, in its lower triangle."""
    return [max(i, j) * (max(i, j) + 1) // 2 + min(i, j) for i in range(size) for j in range(size)]


def _cholesky(form: Tensor, size: int) -> Tensor:
    """Cholesky factors (N, size, size) of N matrices; ONNX has no operation for it."""
    columns: list[Tensor] = []
    for j in range(size):
        rest = form[:, :, j]
        for before in columns:
            rest = rest - before * before[:, j : j + 1]
        lower = (torch.arange(size) >= j).float()
        columns.append(rest * lower / torch.sqrt(rest[:, j : j + 1]))
    return torch.stack(columns, 2)


def _member(member: Factor, size: int, z: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """V (N,) of a member, and its derivatives (N, n_z) by z and by the error, from one reverse sweep."""
    weights, biases = [w.detach() for w in member.weights], [b.detach() for b in member.biases]
    hidden = [z]
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        hidden.append(torch.tanh(hidden[-1] @ weight + bias))
    raw = hidden[-1] @ weights[-1] + biases[-1]
    entry = torch.where(member.diagonal, torch.nn.functional.softplus(raw) + DIAGONAL_FLOOR, raw)
    factor = error[:, member.rows]
    y = (entry * factor) @ member.column_sum
    outer = y @ member.column_sum.T * -2.0
    adjoint = outer * factor * torch.where(member.diagonal, torch.sigmoid(raw), 1.0)
    for weight, h in zip(weights[:0:-1], hidden[:0:-1], strict=True):
        adjoint = adjoint @ weight.T * (1.0 - h * h)
    into_rows = torch.eye(size)[member.rows]
    return -(y * y).sum(-1), (adjoint @ weights[0].T)[:, :size], (outer * entry) @ into_rows
