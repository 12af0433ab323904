"""Value function of an exported policy as a graph of ONNX: V and dV/dx of one robot, or of all contexts.

Features, errors and basin are those of `solver.value`. The reverse sweep through the networks is written here, because
`FrozenValue` has it in buffers.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from solver.training.solution import Solution
from solver.value.family import REACH, Basin, terms
from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Factor
from solver.value.told import Told, told_by


def value_of(solution: Solution, rows: Tensor) -> tuple[Tensor, Tensor]:
    """V (N,) and dV/dx (N, n) at the rows (N, n + k), of tensors of a graph."""
    ensemble, told, n = solution.ensemble, told_by(solution.problem, solution.ensemble), len(solution.problem.target)
    features, basin, x, context = ensemble.features, solution.ensemble.basin, rows[:, :n], rows[:, n:]
    if told is not None:
        features, basin = _of_context(features, basin, told, context)
        x = x if told.context.shift is None else x - context @ told.context.shift
    z = features(x)
    error, inputs = features.error(z), z if told is None else torch.cat([z, context], 1)
    members = [_member(member, features.size, inputs, error) for member in ensemble.factors]
    value, dz, dy = (sum(parts) / float(len(members)) for parts in zip(*members, strict=True))
    gradient = features.pull_back(x, z, error, dz, dy)
    return basin.overlaid(x, value, gradient)


def _of_context(features: Features, basin: Basin, told: Told, c: Tensor) -> tuple[Features, Basin]:
    """Features and basin of the contexts c (N, k)."""
    shares = terms(c, told.degrees)
    if not bool(told.level.abs().sum() > 0.0):
        return features, basin
    cost, form = (torch.einsum("nb,bij->nij", shares, matrix.float()) for matrix in (told.cost, told.form))
    level = (shares @ told.level.float()[:, None])[:, 0]
    metric = _cholesky(form, features.size)
    return replace(features, metric=metric, bend=(1.0 / (level * REACH))[:, None]), replace(
        basin, cost=cost, level=level
    )


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
