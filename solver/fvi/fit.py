"""Fit of the value function to its targets: every member minimises the mean of w |V - V_tar| (paper, eq. 13; w = 1).

The weight w = c/(c + |V_tar|) turns the loss into one of the relative error where |V_tar| exceeds the scale c. Without
it, states with large unavoidable costs take most of the network's precision, which a balancing robot needs near the
target. The members are independent. Threads fit them at the same time, or the streams of a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from solver.fvi.targets import Step
from solver.parallel import Replayed, SideBySide, run_side_by_side
from solver.plants.outcome import sample_starts
from solver.problem import Problem
from solver.streams import EVALUATION_SEED, Purpose
from solver.value.fitting import LossGradient, Optimiser, Samples
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble, Factor


@dataclass(frozen=True)
class FitPlan:
    """Settings of one fit."""

    minibatch: int  # number of samples
    learning_rates: tuple[float, ...]  # of the epochs
    scale: float = math.inf  # c of the weights w; infinite: w = 1


@dataclass
class Fitter:
    """Fits an ensemble to its targets, a state with the weight c/(c + |V_tar|).

    c is `loss_scale` times the mean |V| at the task's starts, or infinite for a loss_scale of 0, the authors' choice.
    """

    problem: Problem
    make_optimiser: Callable[[Factor], Optimiser]
    loss_scale: float = 0.0
    least: float = 0.0  # smallest c
    starts: int = 256  # states at which the scale of V is taken
    optimisers: list[Optimiser] = field(default_factory=list)  # one for each member; empty before the first fit

    def renew(self, value: Ensemble) -> None:
        """Replace the optimisers by fresh ones."""
        self.optimisers = [self.make_optimiser(member) for member in value.factors]

    def fit(self, value: Ensemble, x: Tensor, target: Tensor, step: Step, workers: Executor) -> float:
        """Mean loss over the members of a fit to the targets (N,) at x (N, n)."""
        if step.fresh_optimiser or not self.optimisers:
            self.renew(value)
        plan = FitPlan(step.minibatch, step.learning_rates, self._scale(value))
        return fit_ensemble(value, self.optimisers, x, target, plan, step.seed(Purpose.MINIBATCHES), workers)

    def _scale(self, value: Ensemble) -> float:
        if self.loss_scale == 0.0:
            return math.inf
        starts = sample_starts(self.problem, self.starts, EVALUATION_SEED)
        return max(self.loss_scale * float(FrozenValue(value)(starts)[0].abs().mean()), self.least)


class MemberFit:
    """Minibatch descent on one member, epoch by epoch. generator: source of the order of the samples."""

    def __init__(
        self, member: Factor, optimiser: Optimiser, samples: Samples, fit: FitPlan, generator: torch.Generator
    ) -> None:
        self.optimiser, self.samples, self.fit, self.generator = optimiser, samples, fit, generator
        self.loss_gradient = LossGradient(member, optimiser.weights, min(fit.minibatch, len(samples.target)))
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
    value: Ensemble,
    optimisers: Sequence[Optimiser],
    x: Tensor,
    target: Tensor,
    fit: FitPlan,
    seed: int,
    workers: Executor,
) -> float:
    """Mean loss of the members after a fit to the targets (N,) at the states x (N, n).

    optimisers: one for each member. seed: of the order of the samples. The result does not depend on `workers`.
    """
    samples = Samples.of(value, x, target, 1.0 / (1.0 + target.abs() / fit.scale))
    fits = [
        MemberFit(member, optimiser, samples, fit, torch.Generator(device=x.device).manual_seed(seed + i))
        for i, (member, optimiser) in enumerate(zip(value.factors, optimisers, strict=True))
    ]
    if x.device.type == "cpu":
        run_side_by_side(fits, workers)
    else:
        run_as_graphs(fits)
    return sum(float(member_fit.loss) for member_fit in fits) / len(fits)
