"""Rollouts of one policy under a specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from modelgen.arrays import Array
from solver.certification.specification import Conditions, Failure, read
from solver.jobs.engines import Here, results
from solver.jobs.portions import Policy
from solver.plants import make_plant
from solver.plants.outcome import Rollouts
from solver.plants.plant import Seeds
from solver.plants.rollouts import Controller, rollouts
from solver.problem.parameters import left_all_bounds
from solver.problem.problem import Problem
from solver.serial import serial_torch
from solver.streams import SEEDS, Purpose, stream

AT_ONCE = 512  # rollouts of one job
Announce = Callable[[str], None]


def roll_out(
    problem: Problem, act: Controller, conditions: Conditions, x: Tensor, theta: Tensor, noise: Seeds
) -> Rollouts:
    """Rollouts from x (N, n) at theta (N, p); noise: the seeds (N,) of the plant's noise.

    Raises SolverError for rollouts whose states are not finite.
    """
    plant = make_plant(conditions.plant, problem, theta, conditions.effects, noise)
    result = rollouts(problem, act, x, plant, conditions.horizon, conditions.observer)
    broken = torch.nonzero(~torch.isfinite(result.returns))
    if len(broken):
        raise left_all_bounds(problem, theta[int(broken[0])])
    return result


def noises(size: int, seed: int, purpose: Purpose) -> NDArray[np.int64]:
    """A seed (size,) of the plant's noise for each of the rollouts that are made for a purpose."""
    return np.random.default_rng(stream(seed, purpose, Purpose.PLANT_NOISE)).integers(SEEDS, size=size)


@dataclass(frozen=True)
class Outcomes:
    """Returns and failures of N rollouts."""

    returns: Array  # (N,)
    failed: NDArray[np.bool_]  # (N,)


def portion(
    told: Policy, conditions: Conditions, failure: Failure, x: Array, theta: Array, noise: Sequence[int]
) -> tuple[Array, NDArray[np.bool_]]:
    """A job: returns and failures of rollouts from x (N, n) at theta (N, p), both float32, each under its own noise."""
    with serial_torch():
        problem, act, _ = told.load()
        result = roll_out(problem, act, conditions, torch.from_numpy(x), torch.from_numpy(theta), noise)
        return result.returns.double().numpy(), failure.judge(result)


class Experiment:
    """A policy, how it is tested, and where its rollouts are made."""

    def __init__(self, told: Policy, specification: Path | None = None, executor: Executor | None = None) -> None:
        """executor: of `solver.jobs.engines.workers`, by default here; the numbers do not depend on it."""
        self.policy, self.executor = told, executor or Here()
        self.problem, self.act, self.label = told.load()
        self.specification = read(specification, self.problem)

    def outcomes(
        self, x: Tensor, theta: Tensor, noise: NDArray[np.int64], announce: Announce = lambda _: None
    ) -> Outcomes:
        """The outcomes of as many rollouts as there are rows, in portions; noise: the seeds (N,) of the plant's noise,
        so that a rollout does not depend on those beside it, but for its last digits."""
        place = self.executor if len(x) > AT_ONCE else Here()
        told, jobs = self.specification, []
        for first in range(0, len(x), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            given = x[part].numpy(), theta[part].numpy(), noise[part].tolist()
            jobs.append(place.submit(portion, self.policy, told.conditions, told.failure, *given))
        found = []
        for each in results(jobs):
            found.append(each)
            announce(f"{min(len(found) * AT_ONCE, len(x))} of {len(x)} rollouts")
        returns, failed = zip(*found, strict=True)
        return Outcomes(np.concatenate(returns), np.concatenate(failed))
