"""The value function at fixed weights: V and dV/dx in one forward and one reverse pass of matrix products.

The formula is that of `solver.value.network.Ensemble`; this form of it needs no autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import softplus

from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor
from solver.value.protocol import ValueFunction


@dataclass(frozen=True)
class Workspace:
    """Buffers of one batch size, reused from call to call and member to member so that they stay in cache.

    A hidden layer is (N, width), but everything as narrow as the features or the entries of L has one row for each of
    them and N columns: BLAS multiplies a tall matrix by one of a few columns several times slower than its transpose.
    """

    hidden: tuple[Tensor, ...]  # (N, width) per hidden layer
    adjoint: tuple[Tensor, Tensor]  # (N, width), read and written in turn
    entries: Tensor  # (K, N), of L
    outer: Tensor  # (K, N)
    direct: Tensor  # (K, N)
    y: Tensor  # (n_z, N)


@dataclass(frozen=True)
class FoldedFactor:
    """A member's fixed weights (in, out), biases (out,), and the transposes of all weights but the first.

    The last bias is (K, 1).
    """

    weights: list[Tensor]
    biases: list[Tensor]
    transposed: list[Tensor]


class FrozenValue:
    """V (N,) and dV/dx (N, n) at fixed weights: a copy of the ensemble's, so that training on leaves it as it is.

    The affine maps of tanh(y) = 2 sigmoid(2 y) - 1 are folded into the weights, so that a hidden layer costs one
    matrix product and one pass over its outputs. Members are evaluated one after the other in the same buffers.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.features, self.basin = ensemble.features, ensemble.basin
        first = ensemble.factors[0]
        self.rows, self.columns, self.diagonal = first.rows, first.columns, first.diagonal.nonzero()[:, 0]
        self.sum_into_columns = first.column_sum.T.contiguous()
        self.sum_into_rows = torch.eye(self.features.size).to(first.column_sum)[:, first.rows].contiguous()
        self.members = [_folded(member) for member in ensemble.factors]

    def buffered(self, size: int) -> ValueFunction:
        """The same function for batches of `size` states, with buffers that it reuses: for one thread."""
        return partial(self, space=self._workspace(size))

    def _workspace(self, size: int) -> Workspace:
        weights = self.members[0].weights
        features, entries, new = len(weights[0]), weights[-1].shape[1], weights[0].new_empty
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
        """x (N, n) -> V (N,), dV/dx (N, n)."""
        return self.basin.overlaid(x, *self._networks(x, space or self._workspace(len(x))))

    @torch.no_grad()
    def sparing(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same function for rollouts, most of whose states are in the basin: no network is evaluated there.

        The last digits may be others than those of a call, whose matrix products have as many rows as x.
        """
        if self.basin.level == 0.0 or x.device.type != "cpu":  # another device would have to be waited for
            return self(x)
        value, dx, inside = self.basin.quadratic(x)
        rows = torch.nonzero(~inside)[:, 0]
        if len(rows):
            value[rows], dx[rows] = self._networks(x[rows], self._workspace(len(rows)))
        return value, dx

    def _networks(self, x: Tensor, space: Workspace) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the networks, also where the basin takes their place."""
        z = self.features(x)
        error = self.features.error(z)
        factor = error.T.index_select(0, self.rows)
        value = torch.zeros_like(z[:, 0])
        dz = torch.zeros_like(z.T)
        space.direct.zero_()
        for member in self.members:
            _forward(member, z, space)
            entries, outer, y = space.entries, space.outer, space.y
            diagonal = entries.index_select(0, self.diagonal)
            entries.index_copy_(0, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
            torch.mm(self.sum_into_columns, torch.mul(entries, factor, out=outer), out=y)
            value += (y * y).sum(0)
            torch.index_select(y, 0, self.columns, out=outer)  # dV/d(entries * factor), up to -2/E
            space.direct.addcmul_(outer, entries)
            outer.mul_(factor)
            steepness = torch.sigmoid(diagonal).mul_(outer.index_select(0, self.diagonal))
            outer.index_copy_(0, self.diagonal, steepness)
            _reverse(member, dz, space)
        each = -2.0 / len(self.members)
        direct = (self.sum_into_rows @ space.direct).mul_(each)
        dx = self.features.pull_back(z, error, dz.mul_(each).T, direct.T)
        return value.div_(-len(self.members)), dx


def _folded(member: Factor) -> FoldedFactor:
    """tanh(y) = 2 sigmoid(2 y) - 1 with its two affine maps moved into the neighbouring weights."""
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
    """z (N, n_z) -> space.entries, before the softplus on the diagonal."""
    h = z
    for weight, bias, hidden in zip(member.weights, member.biases, space.hidden, strict=False):
        h = torch.addmm(bias, h, weight, out=hidden).sigmoid_()
    torch.addmm(member.biases[-1], member.transposed[-1], h.T, out=space.entries)


def _reverse(member: FoldedFactor, dz: Tensor, space: Workspace) -> None:
    """Add the reverse sweep of space.outer through the member's network to dz (n_z, N)."""
    gradient = space.outer.T
    product, adjoint = space.adjoint
    for transposed, hidden in zip(reversed(member.transposed), reversed(space.hidden), strict=True):
        torch.mm(gradient, transposed, out=product)
        gradient = torch.ops.aten.sigmoid_backward.grad_input(product, hidden, grad_input=adjoint)
    dz.addmm_(member.weights[0], gradient.T)
