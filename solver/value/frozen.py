"""Evaluation of a value function: the interface `ValueFunction`, and its form for networks with fixed weights.

`FrozenValue` computes V and dV/dx of `solver.value.network.Ensemble` by one forward and one reverse pass, without
autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from solver.value.family import Basin
from solver.value.features import Features
from solver.value.kernel import LANES, REALS, Shape, value_kernel
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor


class ValueFunction(Protocol):
    """V of N states and its gradient, without autograd: a `FrozenValue`, a solution on a grid, or a formula.

    Policies, value targets and rollouts take any such function.
    """

    def __call__(self, x: Tensor, /) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k), with states in SI units."""


class FrozenValue:
    """V (N,) and dV/dx (N, n) of an ensemble at the weights that it has now. Later training does not change them.

    On a processor the networks are one compiled call, and evaluated only outside the basin: most states of a rollout
    are in it, and a tenth to a half of those of targets. A GPU, which would wait to count them, evaluates all.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.frame, self.basin = ensemble.frame, ensemble.basin
        on_processor = ensemble.target.device.type == "cpu"
        self.networks = (CompiledNetworks if on_processor else TorchNetworks)(ensemble.factors)
        self._last: dict[int, tuple[Tensor, tuple[Features, Basin]]] = {}  # of threads, with the contexts

    @torch.no_grad()
    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) at the rows x (N, n + k)."""
        states, (features, basin) = x[:, : self.frame.states], self._at(x)
        if self.basin.empty:
            return self._outside(x, states, features)
        value, dx, inside = basin.quadratic(states)
        if x.device.type != "cpu":
            networks, slope = self._outside(x, states, features)
            return torch.where(inside, value, networks), torch.where(inside[:, None], dx, slope)
        rows = torch.nonzero(~inside)[:, 0]
        if len(rows) == len(x):
            return self._outside(x, states, features)
        if len(rows):
            value[rows], dx[rows] = self._outside(x[rows], states[rows], features.of(rows))
        return value, dx

    def _at(self, x: Tensor) -> tuple[Features, Basin]:
        """Features and basin of the rows x: those of this thread's last call where the contexts are the same.

        They are along a rollout, and to evaluate the polynomials of its contexts takes longer than the networks.
        """
        contexts = x[:, self.frame.states :]
        if not contexts.shape[1] or x.device.type != "cpu":
            return self.frame.at(x)[1:]
        last = self._last.get(get_ident())
        if last is None or not torch.equal(last[0], contexts):
            last = self._last[get_ident()] = contexts.clone(), self.frame.at(x)[1:]
        return last[1]

    def _outside(self, rows: Tensor, x: Tensor, features: Features) -> tuple[Tensor, Tensor]:
        """V (N,) and dV/dx (N, n) of the networks at the rows with the states x and features."""
        z = features(x)
        straight, shrinking = features.straight(z)
        error = straight * shrinking
        value, dz, direct = self.networks(self.frame.inputs(z, rows), error)
        return value, features.pull_back(x, z, error, shrinking, dz, direct)


class CompiledNetworks:
    """V and its derivatives of members at the weights that they have now, on a processor."""

    def __init__(self, members: Sequence[Factor]) -> None:
        shape = Shape.of(members)
        self._numbers = torch.cat([part.detach().flatten() for one in members for part in one.parameters()])
        self._features, self._real = shape.features, REALS[self._numbers.dtype]
        self._kernel = value_kernel(shape, self._real)

    def __call__(self, inputs: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """V (N,) and its derivatives (N, n_z) in the first n_z of the inputs and in the error.

        inputs: (N, n_z + k). error: (N, n_z).
        """
        size, few = len(inputs), max(LANES[self._real] - len(inputs), 0)
        given = torch.cat([inputs.T, error.T])
        given = pad(given, (0, few)) if few else given
        made = given.new_empty(1 + 2 * self._features, size + few)
        self._kernel(size + few, size + few, given.data_ptr(), self._numbers.data_ptr(), made.data_ptr())
        value, by_input, by_error = torch.split(made[:, :size], [1, self._features, self._features])
        return value[0], by_input.T, by_error.T


class TorchNetworks:
    """V and its derivatives of members at the weights that they have now, by matrix products on a GPU.

    Arrays with few features are transposed, for faster products.
    """

    def __init__(self, members: Sequence[Factor]) -> None:
        first = members[0]
        self.weights = [
            torch.stack(list(some)).detach() for some in zip(*(one.weights for one in members), strict=True)
        ]
        self.biases = [torch.stack(list(some)).detach() for some in zip(*(one.biases for one in members), strict=True)]
        self.rows, self.columns, self.diagonal = first.rows, first.columns, torch.nonzero(first.diagonal)[:, 0]
        self.sum_into_columns = first.column_sum.T.contiguous()
        self.sum_into_rows = torch.eye(len(self.sum_into_columns)).to(first.column_sum)[:, first.rows].contiguous()

    def __call__(self, inputs: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """As `CompiledNetworks`."""
        hidden, factor = [inputs.expand(len(self.weights[0]), -1, -1)], error.T.index_select(0, self.rows)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden.append(torch.baddbmm(bias[:, None], hidden[-1], weight).tanh_())
        entries = torch.baddbmm(self.biases[-1][:, :, None], self.weights[-1].mT, hidden[-1].mT)  # (E, K, N)
        diagonal = entries.index_select(1, self.diagonal)
        entries.index_copy_(1, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
        y = self.sum_into_columns @ (entries * factor)  # (E, n_z, N)
        outer = y.index_select(1, self.columns)
        direct = self.sum_into_rows @ (entries * outer).sum(0)
        outer *= factor  # dV/d(entries), without the factor -2/E
        outer.index_copy_(1, self.diagonal, torch.sigmoid(diagonal) * outer.index_select(1, self.diagonal))
        gradient = outer.mT
        for weight, h in zip(reversed(self.weights[1:]), reversed(hidden[1:]), strict=True):
            gradient = gradient @ weight.mT * (1.0 - h * h)
        by_input = (self.weights[0][:, : error.shape[1]] @ gradient.mT).sum(0)
        mean = 1.0 / len(y)
        return -mean * (y * y).sum((0, 1)), -2.0 * mean * by_input.T, -2.0 * mean * direct.T
