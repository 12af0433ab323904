"""Fit of the value function to its targets: every member minimises the mean of w |V - V_tar| (paper, eq. 13; w = 1).

The weight w = c/(c + |V_tar|) turns the loss into one of the relative error where |V_tar| exceeds the scale c. Without
it, states with large unavoidable costs take most of the network's precision, which a balancing robot needs near the
target.

The members are independent. Threads fit them at the same time, or the streams of a GPU. `LossGradient` computes the
gradient of a minibatch by matrix products into reused buffers. This takes half the time of autograd, whose many small
operations would also make the threads wait for the interpreter. The formula is `solver.value.network.Factor.forward`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from threading import Lock

import torch
from torch import Tensor
from torch.nn.functional import softplus

from solver.cuda_graphs import Replayed, SideBySide
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor
from solver.value.optimiser import Optimiser


@dataclass(frozen=True)
class FitPlan:
    """Settings of one fit."""

    minibatch: int  # number of samples
    learning_rates: tuple[float, ...]  # of the epochs
    scale: float = math.inf  # c of the weights w; infinite: w = 1


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


class MemberFit:
    """Minibatch descent on one member, epoch by epoch. generator: source of the order of the samples."""

    def __init__(
        self, member: Factor, optimiser: Optimiser, samples: Samples, fit: FitPlan, generator: torch.Generator
    ) -> None:
        self.optimiser, self.samples, self.fit, self.generator = optimiser, samples, fit, generator
        self.loss_gradient = LossGradient(member, min(fit.minibatch, len(samples.target)))
        self.left = len(fit.learning_rates)  # epochs to do
        self.loss = torch.tensor(math.nan)  # mean over the last epoch

    def epoch(self) -> None:
        """Take a gradient step on every minibatch of the shuffled samples."""
        losses = []
        for batch in self.samples.shuffled(self.begin_epoch()).minibatches(self.fit.minibatch):
            losses.append(self.step(batch, self.optimiser.kind))
            self.optimiser.count()
        self.loss = torch.stack(losses).sum() / len(self.samples.target)

    def begin_epoch(self) -> Tensor:
        """Set the learning rate of the next epoch, and draw the order (N,) of its samples."""
        self.optimiser.learning_rate = self.fit.learning_rates[-self.left]
        self.left -= 1
        return torch.randperm(len(self.samples.target), generator=self.generator, device=self.generator.device)

    def step(self, batch: Samples, kind: int) -> Tensor:
        """Summed loss () of a minibatch, after a gradient step on it. kind: kind of the optimiser's step."""
        loss = self.loss_gradient(batch) * len(batch.target)
        self.optimiser.compute(kind)
        return loss


def run_side_by_side(fits: Sequence[MemberFit], workers: Executor) -> None:
    """Run all fits to their end on threads.

    A free worker runs an epoch of the waiting member with the most epochs to do. Two workers therefore fit three
    members in the time of one and a half.
    """
    waiting, lock = list(fits), Lock()

    def exchange(done: MemberFit | None) -> MemberFit | None:
        with lock:
            if done is not None and done.left:
                waiting.append(done)
            waiting.sort(key=lambda member_fit: member_fit.left)
            return waiting.pop() if waiting else None

    def work(_: MemberFit) -> None:
        member = exchange(None)
        while member is not None:
            member.epoch()
            member = exchange(member)

    list(workers.map(work, fits))


def run_as_graphs(fits: Sequence[MemberFit]) -> None:
    """Run all fits to their end on a GPU, where a gradient step of all members is one CUDA graph."""
    size, minibatch = len(fits[0].samples.target), fits[0].fit.minibatch
    side_by_side = SideBySide(len(fits))
    replayed: dict[int, Replayed[tuple[Tensor]]] = {}

    def step(kind: int, index: Tensor) -> tuple[Tensor]:
        def of_member(member_fit: MemberFit, row: Tensor) -> Tensor:
            return member_fit.step(member_fit.samples.shuffled(row), kind)

        return (torch.stack(side_by_side([partial(of_member, *pair) for pair in zip(fits, index, strict=True)])),)

    while fits[0].left:
        order = torch.stack([member_fit.begin_epoch() for member_fit in fits])
        losses: list[Tensor] = []
        for index in torch.split(order, minibatch, dim=1):
            kind = fits[0].optimiser.kind
            losses += replayed.setdefault(kind, Replayed(partial(step, kind)))(index)
            for member_fit in fits:
                member_fit.optimiser.count()
        for member_fit, loss in zip(fits, torch.stack(losses).sum(0) / size, strict=True):
            member_fit.loss = loss


def fit_ensemble(
    ensemble: Ensemble,
    optimisers: Sequence[Optimiser],
    x: Tensor,
    target: Tensor,
    fit: FitPlan,
    seed: int,
    workers: Executor,
) -> float:
    """Mean loss of the members after a fit to the targets (N,) at the states x (N, n).

    optimisers: one for each member. seed: of the order of the samples. The result does not depend on the number of
    `workers`.
    """
    samples = Samples.of(ensemble, x, target, 1.0 / (1.0 + target.abs() / fit.scale))
    fits = [
        MemberFit(member, optimiser, samples, fit, torch.Generator(device=x.device).manual_seed(seed + i))
        for i, (member, optimiser) in enumerate(zip(ensemble.factors, optimisers, strict=True))
    ]
    if x.device.type == "cpu":
        run_side_by_side(fits, workers)
    else:
        run_as_graphs(fits)
    return sum(float(member_fit.loss) for member_fit in fits) / len(fits)
