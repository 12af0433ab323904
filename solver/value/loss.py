"""Loss of a fit and its gradient: the mean of w |V - V_tar| of one member over a minibatch (paper, eq. 13; w = 1).

`LossGradient` computes the gradient by matrix products into reused buffers. This takes half the time of autograd, whose
many small operations would also make the threads of a fit wait for the interpreter. The formula of V is
`solver.value.network.Factor.forward`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor


@dataclass(frozen=True)
class Samples:
    """N samples, from which minibatches are drawn."""

    z: Tensor  # (n_z + k, N) inputs of the networks: features, then contexts
    factor: Tensor  # (K, N) entry of the error y for every entry of L, by its row
    target: Tensor  # (N,) V_tar
    weight: Tensor  # (N,) w

    @classmethod
    def of(cls, ensemble: Ensemble, x: Tensor, target: Tensor, weight: Tensor) -> Samples:
        """Samples at the rows x (N, n + k) with targets and weights (N,)."""
        frame = ensemble.frame
        states, features, _ = frame.at(x)
        z = features(states)
        factor = features.error(z).T.index_select(0, ensemble.factors[0].rows)
        return cls(frame.inputs(z, x).T.contiguous(), factor, target, weight)

    def shuffled(self, order: Tensor) -> Samples:
        """The samples with the indices `order` (N,)."""
        return Samples(*(array.index_select(-1, order) for array in (self.z, self.factor, self.target, self.weight)))

    def minibatches(self, size: int) -> Iterator[Samples]:
        """Groups of `size` consecutive samples, without a copy."""
        parts = (torch.split(array, size, dim=-1) for array in (self.z, self.factor, self.target, self.weight))
        return (Samples(*part) for part in zip(*parts, strict=True))


class LossGradient:
    """Loss of one member on a minibatch of B samples. A call writes the gradient to the `.grad` of the parameters.

    A hidden layer is (B, width). Arrays with few features are transposed, (n_z, B) or (K, B), because BLAS multiplies a
    tall matrix by one with few columns several times slower than its transpose.
    """

    def __init__(self, member: Factor, size: int) -> None:
        self.weights, self.biases = list(member.weights), list(member.biases)
        for parameter in member.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.diagonal = member.diagonal.nonzero()[:, 0]
        self.columns, self.sum_into_columns = member.columns, member.column_sum.T.contiguous()
        self.hidden = [w.new_empty(size, w.shape[1]) for w in self.weights[:-1]]
        self.product, self.adjoint = torch.empty_like(self.hidden[0]), torch.empty_like(self.hidden[0])
        self.minus_one = -torch.ones_like(self.biases[0][0])

    @torch.no_grad()
    def __call__(self, batch: Samples) -> Tensor:
        """Mean of |V - V_tar| over the batch (). The gradient is the one of the mean weighted by w."""
        size = len(batch.target)
        hidden = [h[:size] for h in self.hidden]
        entries = self._forward(batch.z, hidden)
        diagonal = entries.index_select(0, self.diagonal)
        entries.index_copy_(0, self.diagonal, softplus(diagonal) + DIAGONAL_FLOOR)
        y = self.sum_into_columns @ entries.mul_(batch.factor)
        residual = (y * y).sum(0).neg_().sub_(batch.target)
        slope = torch.sign(residual).mul_(batch.weight).div_(size)
        outer = y.mul_(slope.mul_(-2.0)).index_select(0, self.columns).mul_(batch.factor)
        steepness = torch.sigmoid(diagonal).mul_(outer.index_select(0, self.diagonal))
        self._reverse(batch.z, hidden, outer.index_copy_(0, self.diagonal, steepness))
        return residual.abs_().mean()

    def _forward(self, z: Tensor, hidden: list[Tensor]) -> Tensor:
        """Output layer (K, B) of the network. Fills `hidden` with tanh(y) = 2 sigmoid(2 y) - 1."""
        h = z.T
        for weight, bias, out in zip(self.weights, self.biases, hidden, strict=False):
            torch.addmm(bias, h, weight, beta=2.0, alpha=2.0, out=out)
            h = torch.add(self.minus_one, out.sigmoid_(), alpha=2.0, out=out)
        return torch.addmm(self.biases[-1][:, None], self.weights[-1].T, h.T)

    def _reverse(self, z: Tensor, hidden: list[Tensor], outer: Tensor) -> None:
        """Write the gradients of the parameters from `outer`, the derivative of the loss in the output layer (K, B)."""
        size = len(hidden[0])
        product, adjoint = self.product[:size], self.adjoint[:size]
        gradient = outer.T
        for i in range(len(hidden), 0, -1):
            weight, bias = self.weights[i], self.biases[i]
            assert weight.grad is not None
            assert bias.grad is not None
            torch.sum(gradient, 0, out=bias.grad)
            if i == len(hidden):
                weight.grad.copy_((outer @ hidden[i - 1]).T)
            else:
                torch.mm(hidden[i - 1].T, gradient, out=weight.grad)
            torch.mm(gradient, weight.T, out=product)
            gradient = torch.ops.aten.tanh_backward.grad_input(product, hidden[i - 1], grad_input=adjoint)
        assert self.weights[0].grad is not None
        assert self.biases[0].grad is not None
        torch.sum(gradient, 0, out=self.biases[0].grad)
        torch.mm(z, gradient, out=self.weights[0].grad)
