"""Evaluation of a value function: the interface `ValueFunction`, and its form for networks with fixed weights.

`FrozenValue` computes V and dV/dx of `solver.value.network.Ensemble` by one forward and one reverse pass of matrix
products, without autograd.
"""

from __future__ import annotations

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
    """Buffers for one batch size. Calls and members reuse them, so that they stay in the cache.

    A hidden layer is (N, width). Arrays with few features are transposed, (n_z, N) or (K, N), because BLAS multiplies a
    tall matrix by one with few columns several times slower than its transpose.
    """

    hidden: tuple[Tensor, ...]  # (N, width) for every hidden layer
    adjoint: tuple[Tensor, Tensor]  # (N, width), read and written in turn
    entries: Tensor  # (K, N) entries of L
    outer: Tensor  # (K, N) derivative of V with respect to the entries of L
    direct: Tensor  # (K, N) derivative of V with respect to y, spread over the entries of L
    y: Tensor  # (n_z, N) L^T y


@dataclass(frozen=True)
class FoldedFactor:
    """Fixed weights of a member, with the affine maps of its activations folded in."""

    weights: list[Tensor]  # (in, out)
    biases: list[Tensor]  # (out,), the last one (K, 1)
    transposed: list[Tensor]  # (out, in) of all weights except the first


class FrozenValue:
    """V (N,) and dV/dx (N, n) of an ensemble at the weights that it has now. Later training does not change them.

    The affine maps of tanh(y) = 2 sigmoid(2 y) - 1 are folded into copies of the weights. A hidden layer then costs one
    matrix product and one pass over its outputs. Members are evaluated one after the other in the same buffers.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.frame = ensemble.frame
        self.features, self.basin = ensemble.features, ensemble.basin
        first = ensemble.factors[0]
        self.rows, self.columns, self.diagonal = first.rows, first.columns, first.diagonal.nonzero()[:, 0]
        self.sum_into_columns = first.column_sum.T.contiguous()
        self.sum_into_rows = torch.eye(self.features.size).to(first.column_sum)[:, first.rows].contiguous()
        self.members = [_folded(member) for member in ensemble.factors]

    def buffered(self, size: int) -> ValueFunction:
        """Function for batches of `size` states with buffers that it reuses. Only one thread may call it."""
        return partial(self, space=self._workspace(size))

    def _workspace(self, size: int) -> Workspace:
        weights = self.members[0].weights
        features, entries, new = self.features.size, weights[-1].shape[1], weights[0].new_empty
        return Workspace(
            hidden=tuple(new(size, w.shape[1]) for w in weights[:-1]),
            adjoint=(new(size, weights[0].shape[1]), new(size, weights[0].shape[1])),
            entries=new(entries, size),
            outer=new(entries, size),
            direct=new(entries, size),
            y=new(features, size),
        )

    @torch.no_grad()
    def __call__(self, x: Tensor, space: Workspace | None = None) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k)."""
        states, features, basin = self.frame.at(x)
        networks = self._networks(x, states, features, space or self._workspace(len(x)))
        return basin.overlaid(states, *networks)

    @torch.no_grad()
    def sparing(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k), with networks evaluated only outside the basin.

        It is faster for rollouts, whose states are mostly in the basin. The last digits may differ from `__call__`,
        because matrix products of other sizes round differently.
        """
        if self.basin.empty or x.device.type != "cpu":  # on a GPU, to count the states would wait for it
            return self(x)
        states, _, basin = self.frame.at(x)
        value, dx, inside = basin.quadratic(states)
        rows = torch.nonzero(~inside)[:, 0]
        if len(rows):
            outside = x[rows]
            there = self.frame.at(outside)[:2]
            value[rows], dx[rows] = self._networks(outside, *there, self._workspace(len(rows)))
        return value, dx

    def _networks(self, rows: Tensor, x: Tensor, features: Features, space: Workspace) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the networks, also in the basin, at the rows with the states x and features."""
        z = features(x)
        error, inputs = features.error(z), self.frame.inputs(z, rows)
        factor = error.T.index_select(0, self.rows)
        value = torch.zeros_like(z[:, 0])
        dz = torch.zeros_like(inputs.T)
        space.direct.zero_()
        for member in self.members:
            _forward(member, inputs, space)
            entries, outer, y = space.entries, space.outer, space.y
            diagonal = entries.index_select(0, self.diagonal)
            entries.index_copy_(0, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
            torch.mm(self.sum_into_columns, torch.mul(entries, factor, out=outer), out=y)
            value += (y * y).sum(0)
            torch.index_select(y, 0, self.columns, out=outer)  # dV/d(entries * factor), without the factor -2/E
            space.direct.addcmul_(outer, entries)
            outer.mul_(factor)
            steepness = torch.sigmoid(diagonal).mul_(outer.index_select(0, self.diagonal))
            outer.index_copy_(0, self.diagonal, steepness)
            _reverse(member, dz, space)
        factor_of_mean = -2.0 / len(self.members)
        direct = (self.sum_into_rows @ space.direct).mul_(factor_of_mean)
        dz = dz.mul_(factor_of_mean)[: features.size]
        dx = features.pull_back(x, z, error, dz.T, direct.T)
        return value.div_(-len(self.members)), dx


def _folded(member: Factor) -> FoldedFactor:
    """Weights of a member with sigmoid activations: the affine maps of tanh(y) = 2 sigmoid(2 y) - 1 are folded in."""
    weights, biases = [], []
    for i, (weight, bias) in enumerate(zip(member.weights, member.biases, strict=True)):
        w, b = weight.detach().clone(), bias.detach().clone()
        if i > 0:
            b -= w.sum(0)
            w *= 2.0
        outer = 1.0 if i == len(member.weights) - 1 else 2.0
        weights.append(w * outer)
        biases.append(b * outer)
    biases[-1] = biases[-1][:, None]
    return FoldedFactor(weights, biases, [w.T.contiguous() for w in weights[1:]])


def _forward(member: FoldedFactor, z: Tensor, space: Workspace) -> None:
    """Write the entries of L at the inputs z (N, n_z + k) to space.entries, before the softplus on the diagonal."""
    h = z
    for weight, bias, hidden in zip(member.weights, member.biases, space.hidden, strict=False):
        h = torch.addmm(bias, h, weight, out=hidden).sigmoid_()
    torch.addmm(member.biases[-1], member.transposed[-1], h.T, out=space.entries)


def _reverse(member: FoldedFactor, dz: Tensor, space: Workspace) -> None:
    """Add to dz (n_z + k, N) the derivatives by reverse sweep of space.outer through the member's network."""
    gradient = space.outer.T
    product, adjoint = space.adjoint
    for transposed, hidden in zip(reversed(member.transposed), reversed(space.hidden), strict=True):
        torch.mm(gradient, transposed, out=product)
        gradient = torch.ops.aten.sigmoid_backward.grad_input(product, hidden, grad_input=adjoint)
    dz.addmm_(member.weights[0], gradient.T)
