"""Evaluation of a value function: the interface `ValueFunction`, and its form for networks with fixed weights.

`FrozenValue` computes V and dV/dx of `solver.value.network.Ensemble` by one forward and one reverse pass of matrix
products, without autograd.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus

from solver.value.features import Features
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor


class ValueFunction(Protocol):
    """V of N states and its gradient, without autograd: a `FrozenValue`, a solution on a grid, or a formula.

    Policies, value targets and rollouts take any such function.
    """

    def __call__(self, x: Tensor, /) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k), with states in SI units."""


@dataclass(frozen=True)
class Workspace:
    """Buffers of E members for one batch size, parts of one memory that calls reuse, so that it stays in the cache.

    A hidden layer is (E, N, width). Arrays with few features are transposed, (E, n_z, N) or (E, K, N), because BLAS
    multiplies a tall matrix by one with few columns several times slower than its transpose.
    """

    hidden: tuple[Tensor, ...]  # (E, N, width) for every hidden layer
    adjoint: tuple[Tensor, Tensor]  # (E, N, width), read and written in turn
    entries: Tensor  # (E, K, N) entries of L
    outer: Tensor  # (E, K, N) derivative of V with respect to the entries of L
    y: Tensor  # (E, n_z, N) L^T y


@dataclass(frozen=True)
class FoldedFactors:
    """Fixed weights of E members, with the affine maps of their activations folded in."""

    weights: list[Tensor]  # (E, in, out)
    biases: list[Tensor]  # (E, 1, out), the last one (E, K, 1)
    transposed: list[Tensor]  # (E, out, in)


class FrozenValue:
    """V (N,) and dV/dx (N, n) of an ensemble at the weights that it has now. Later training does not change them.

    The affine maps of tanh(y) = 2 sigmoid(2 y) - 1 are folded into copies of the weights. A hidden layer then costs one
    matrix product and one pass over its outputs. An operation computes all members: for the few states of a rollout,
    most of the time of an operation is its call.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.frame = ensemble.frame
        self.features, self.basin = ensemble.features, ensemble.basin
        first = ensemble.factors[0]
        self.rows, self.columns, self.diagonal = first.rows, first.columns, first.diagonal.nonzero()[:, 0]
        self.sum_into_columns = first.column_sum.T.contiguous().expand(len(ensemble.factors), -1, -1)
        self.sum_into_rows = torch.eye(self.features.size).to(first.column_sum)[:, first.rows].contiguous()
        self.members = _folded(ensemble.factors)

    def buffered(self, size: int) -> ValueFunction:
        """`sparing` for batches of at most `size` states, in memory that it reuses. Only one thread may call it."""
        return partial(self.sparing, memory=self.members.weights[0].new_empty(sum(map(math.prod, self._shapes(size)))))

    def _shapes(self, size: int) -> list[tuple[int, int, int]]:
        """Shapes of the arrays of a workspace, in their order."""
        weights = self.members.weights
        members, width, features, entries = len(weights[0]), weights[0].shape[2], self.features.size, len(self.rows)
        layers = [(members, size, w.shape[2]) for w in weights[:-1]]
        return [*layers, *2 * [(members, size, width)], *2 * [(members, entries, size)], (members, features, size)]

    def _workspace(self, size: int, memory: Tensor | None = None) -> Workspace:
        shapes = self._shapes(size)
        lengths = [math.prod(shape) for shape in shapes]
        memory = self.members.weights[0].new_empty(sum(lengths)) if memory is None else memory[: sum(lengths)]
        *hidden, read, written, entries, outer, y = (
            part.view(shape) for part, shape in zip(torch.split(memory, lengths), shapes, strict=True)
        )
        return Workspace(tuple(hidden), (read, written), entries, outer, y)

    @torch.no_grad()
    def __call__(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k)."""
        states, features, basin = self.frame.at(x)
        return basin.overlaid(states, *self._networks(x, states, features, self._workspace(len(x), memory)))

    @torch.no_grad()
    def sparing(self, x: Tensor, memory: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k), with networks evaluated only outside the basin.

        It is faster where states are in the basin: those of rollouts mostly, those of targets from a tenth to a half.
        The last digits may differ from `__call__`, because matrix products of other sizes round differently.
        """
        if self.basin.empty or x.device.type != "cpu":  # on a GPU, to count the states would wait for it
            return self(x, memory)
        states, features, basin = self.frame.at(x)
        value, dx, inside = basin.quadratic(states)
        rows = torch.nonzero(~inside)[:, 0]
        if len(rows) == len(x):
            return self._networks(x, states, features, self._workspace(len(x), memory))
        if len(rows):
            outside = x[rows]
            there = self.frame.at(outside)[:2]
            value[rows], dx[rows] = self._networks(outside, *there, self._workspace(len(rows), memory))
        return value, dx

    def _networks(self, rows: Tensor, x: Tensor, features: Features, space: Workspace) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the networks, also in the basin, at the rows with the states x and features."""
        z = features(x)
        straight, shrinking = features.straight(z)
        error, inputs = straight * shrinking, self.frame.inputs(z, rows)
        factor = error.T.index_select(0, self.rows)
        _forward(self.members, inputs, space)
        entries, outer, y = space.entries, space.outer, space.y
        diagonal = entries.index_select(1, self.diagonal)
        entries.index_copy_(1, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
        torch.bmm(self.sum_into_columns, torch.mul(entries, factor, out=outer), out=y)
        value = (y * y).sum((0, 1))
        torch.index_select(y, 1, self.columns, out=outer)  # dV/d(entries * factor), without the factor -2/E
        direct = self.sum_into_rows @ entries.mul_(outer).sum(0)
        outer.mul_(factor)
        steepness = torch.sigmoid(diagonal).mul_(outer.index_select(1, self.diagonal))
        outer.index_copy_(1, self.diagonal, steepness)
        factor_of_mean = -2.0 / len(outer)
        dz = _reverse(self.members, space).mul_(factor_of_mean)[: features.size]
        dx = features.pull_back(x, z, error, shrinking, dz.T, direct.mul_(factor_of_mean).T)
        return value.div_(-len(outer)), dx


def _folded(members: Sequence[Factor]) -> FoldedFactors:
    """Weights of members with sigmoid activations: the affine maps of tanh(y) = 2 sigmoid(2 y) - 1 are folded in."""
    weights, biases = [], []
    last = len(members[0].weights) - 1
    for i in range(last + 1):
        w = torch.stack([member.weights[i].detach() for member in members])
        b = torch.stack([member.biases[i].detach() for member in members])[:, None]
        if i > 0:
            b -= w.sum(1, keepdim=True)
            w *= 2.0
        outer = 1.0 if i == last else 2.0
        weights.append(w * outer)
        biases.append(b * outer)
    biases[-1] = biases[-1].mT
    return FoldedFactors(weights, biases, [w.mT.contiguous() for w in weights])


def _forward(members: FoldedFactors, z: Tensor, space: Workspace) -> None:
    """Write the entries of L at the inputs z (N, n_z + k) to space.entries, before the softplus on the diagonal."""
    h = z.expand(len(space.y), -1, -1)
    for weight, bias, hidden in zip(members.weights, members.biases, space.hidden, strict=False):
        h = torch.baddbmm(bias, h, weight, out=hidden).sigmoid_()
    torch.baddbmm(members.biases[-1], members.transposed[-1], h.mT, out=space.entries)


def _reverse(members: FoldedFactors, space: Workspace) -> Tensor:
    """Derivatives (n_z + k, N) by reverse sweep of space.outer through the networks, summed over the members."""
    gradient = space.outer.mT
    product, adjoint = space.adjoint
    for transposed, hidden in zip(reversed(members.transposed[1:]), reversed(space.hidden), strict=True):
        torch.bmm(gradient, transposed, out=product)
        gradient = torch.ops.aten.sigmoid_backward.grad_input(product, hidden, grad_input=adjoint)
    return torch.bmm(members.weights[0], gradient.mT).sum(0)
