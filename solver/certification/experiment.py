"""Rollouts of one policy under a specification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from solver.certification.specification import Conditions, Specification
from solver.plants import make_plant
from solver.plants.outcome import Rollouts
from solver.plants.rollouts import Controller, rollouts
from solver.problem.parameters import left_all_bounds
from solver.problem.problem import Problem
from solver.streams import Purpose, stream

Array = NDArray[np.float64]
AT_ONCE = 2048  # rollouts; states and inputs of all periods are in memory
Announce = Callable[[str], None]


def roll_out(
    problem: Problem, act: Controller, conditions: Conditions, x: Tensor, theta: Tensor, noise: int
) -> Rollouts:
    """Rollouts from x (N, n) at theta (N, p); noise: the seed of the plant's noise.

    Raises SolverError for rollouts whose states are not finite.
    """
    plant = make_plant(conditions.plant, problem, theta, conditions.effects, noise)
    result = rollouts(problem, act, x, plant, conditions.horizon, conditions.observer)
    broken = torch.nonzero(~torch.isfinite(result.returns))
    if len(broken):
        raise left_all_bounds(problem, theta[int(broken[0])])
    return result


@dataclass(frozen=True)
class Outcomes:
    """Returns and failures of N rollouts."""

    returns: Array  # (N,)
    failed: NDArray[np.bool_]  # (N,)


@dataclass(frozen=True)
class Experiment:
    """A policy, and how it is tested."""

    problem: Problem
    act: Controller
    specification: Specification

    def outcomes(
        self, x: Tensor, theta: Tensor, seed: int, purpose: Purpose, announce: Announce = lambda _: None
    ) -> Outcomes:
        """The outcomes of as many rollouts as there are rows, in portions with their own noise."""
        returns, failed = [], []
        for first in range(0, len(x), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            noise = stream(seed, first, purpose) % 2**32
            result = roll_out(self.problem, self.act, self.specification.conditions, x[part], theta[part], noise)
            returns.append(result.returns.double().numpy())
            failed.append(self.specification.failure.judge(result))
            announce(f"{min(first + AT_ONCE, len(x))} of {len(x)} rollouts")
        return Outcomes(np.concatenate(returns), np.concatenate(failed))
