"""Fitting the value function to its targets: mean |V - V_tar|^p per ensemble member (paper, eq. 11)."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.value_function import Ensemble, Factor


@dataclass(frozen=True)
class Fit:
    """Settings of one fit."""

    epochs: int
    minibatch: int
    power: float  # p of the loss


def make_optimiser(
    member: Factor, learning_rate: float, weight_decay: float, amsgrad: bool
) -> torch.optim.Adam:
    """Adam for one member."""
    return torch.optim.Adam(
        member.parameters(), lr=learning_rate, weight_decay=weight_decay, amsgrad=amsgrad, fused=True
    )


def fit_member(
    member: Factor,
    optimiser: torch.optim.Adam,
    z: Tensor,
    error: Tensor,
    target: Tensor,
    fit: Fit,
    generator: torch.Generator,
) -> float:
    """Minibatch descent on one member; z and error are (N, n_z), target (N,). Returns the last epoch's mean loss."""
    loss_sum = torch.zeros(())
    for epoch in range(fit.epochs):
        order = torch.randperm(len(target), generator=generator, device=generator.device)
        loss_sum = torch.zeros((), device=target.device)
        for rows in order.split(fit.minibatch):
            residual = (member(z[rows], error[rows]) - target[rows]).abs()
            loss = (residual if fit.power == 1.0 else residual**fit.power).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if epoch == fit.epochs - 1:
                loss_sum += loss.detach() * (len(rows) / len(target))
    return float(loss_sum)


def fit_ensemble(
    ensemble: Ensemble,
    optimisers: list[torch.optim.Adam],
    x: Tensor,
    target: Tensor,
    fit: Fit,
    seed: int,
    workers: Executor,
) -> float:
    """Fit every member to the targets (N,) at states x (N, n), members side by side; returns their mean loss."""
    features = ensemble.features
    z = features(x)
    error = z - features.error_at_target

    def work(i: int) -> float:
        generator = torch.Generator(device=x.device).manual_seed(seed + i)
        member = ensemble.members[i]
        assert isinstance(member, Factor)
        return fit_member(member, optimisers[i], z, error, target, fit, generator)

    losses = list(workers.map(work, range(len(ensemble.members))))
    return sum(losses) / len(losses)
