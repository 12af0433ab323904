"""A fit on two processes, each with half of every minibatch, against the fit of one: docs/concepts/performance.md."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing.spawn import spawn

from solver.fvi.fit import FitPlan, MemberFit
from solver.value.fitting import Adam, Samples
from solver.value.network import Ensemble
from tests.closeness import assert_close

pytestmark = pytest.mark.slow


class Shared(MemberFit):
    """A fit whose gradients are the mean over all processes; each sees its share of a minibatch."""

    def step(self, batch: Samples, kind: int) -> Tensor:
        share = slice(dist.get_rank(), None, dist.get_world_size())
        own = Samples(*(array[..., share].contiguous() for array in batch.arrays))
        loss = self.loss_gradient(own) * len(own.target)
        dist.all_reduce(self.optimiser.gradient)
        self.optimiser.gradient /= dist.get_world_size()
        self.optimiser.compute(kind)
        return loss


def fitted(kind: type[MemberFit]) -> Tensor:
    """Weights after three epochs on 48 states. SOAP would amplify the rounding of directions without a gradient."""
    ensemble = Ensemble([True, False], [0.0, 0.0], [1.0, 0.5], 1, 2, 8, torch.Generator().manual_seed(0)).double()
    x = torch.rand(48, 2, generator=torch.Generator().manual_seed(1)).double() - 0.5
    target = -((x @ torch.tensor([[2.0], [1.0]]).double())[:, 0] ** 2)
    samples = Samples.of(ensemble, x, target, torch.ones_like(target))
    member = ensemble.factors[0]
    plan, generator = FitPlan(16, 3 * (1e-2,)), torch.Generator().manual_seed(2)
    fit = kind(member, Adam(member, 1e-2, 1e-6, amsgrad=False), samples, plan, generator)
    while fit.left:
        fit.epoch()
    return fit.optimiser.weights


def work(rank: int, folder: str) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    torch.save(fitted(Shared), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_give_the_weights_of_one(tmp_path: Path) -> None:
    spawn(work, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert torch.equal(first, second)
    assert_close(first, fitted(MemberFit))
