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
    """Buffers of one batch size, reused from call to call and member to member so that they stay in cache."""

    hidden: tuple[Tensor, ...]  # (N, width) per hidden layer
    adjoint: tuple[Tensor, Tensor]  # (N, width), read and written in turn
    entries: Tensor  # (N, K), of L
    outer: Tensor  # (N, K)
    direct: Tensor  # (N, K)


@dataclass(frozen=True)
class FoldedFactor:
    """A member's fixed weights (in, out), biases (out,) and transposed weights."""

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
        self.rows, self.diagonal = first.rows, first.diagonal.nonzero()[:, 0]
        self.column_sum = first.column_sum
        self.column_spread = first.column_sum.T.contiguous()
        self.row_sum = torch.eye(self.features.size).to(first.column_sum)[first.rows]
        self.members = [_folded(member) for member in ensemble.factors]

    def buffered(self, size: int) -> ValueFunction:
        """The same function for batches of `size` states, with buffers that it reuses: for one thread."""
        return partial(self, space=self._workspace(size))

    def _workspace(self, size: int) -> Workspace:
        weights = self.members[0].weights

        def buffer(layer: int) -> Tensor:
            return weights[layer].new_empty(size, weights[layer].shape[1])

        return Workspace(
            hidden=tuple(buffer(i) for i in range(len(weights) - 1)),
            adjoint=(buffer(0), buffer(0)),
            entries=buffer(-1),
            outer=buffer(-1),
            direct=buffer(-1),
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
        factor = error[:, self.rows]
        value = torch.zeros_like(z[:, 0])
        dz = torch.zeros_like(z)
        space.direct.zero_()
        for member in self.members:
            _forward(member, z, space)
            entries, outer = space.entries, space.outer
            diagonal = entries[:, self.diagonal]
            entries[:, self.diagonal] = softplus(diagonal) + DIAGONAL_FLOOR
            y = (entries * factor) @ self.column_sum
            value += (y * y).sum(1)
            torch.mm(y, self.column_spread, out=outer)  # dV/d(entries * factor), up to -2/E
            space.direct.addcmul_(outer, entries)
            outer.mul_(factor)
            outer[:, self.diagonal] *= torch.sigmoid(diagonal)
            _reverse(member, dz, space)
        each = -2.0 / len(self.members)
        dx = self.features.pull_back(z, error, dz.mul_(each), (space.direct @ self.row_sum).mul_(each))
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
    return FoldedFactor(weights, biases, [w.T.contiguous() for w in weights])


def _forward(member: FoldedFactor, z: Tensor, space: Workspace) -> None:
    """z (N, n_z) -> space.entries, before the softplus on the diagonal."""
    h = z
    for weight, bias, hidden in zip(member.weights, member.biases, space.hidden, strict=False):
        h = torch.addmm(bias, h, weight, out=hidden).sigmoid_()
    torch.addmm(member.biases[-1], h, member.weights[-1], out=space.entries)


def _reverse(member: FoldedFactor, dz: Tensor, space: Workspace) -> None:
    """Add the reverse sweep of space.outer through the member's network to dz (N, n_z)."""
    gradient = space.outer
    product, adjoint = space.adjoint
    for transposed, hidden in zip(reversed(member.transposed[1:]), reversed(space.hidden), strict=True):
        torch.mm(gradient, transposed, out=product)
        gradient = torch.ops.aten.sigmoid_backward.grad_input(product, hidden, grad_input=adjoint)
    dz.addmm_(gradient, member.transposed[0])
