"""One step of a plan: how far the targets of an iteration look ahead, against whom, and how V is fitted to them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from solver.game.adversaries import Adversary
from solver.game.game import ClosedFormPolicy
from solver.game.policies import CLOSED_FORM, Hold
from solver.problem.problem import Problem
from solver.streams import Purpose, stream
from solver.value.frozen import ValueFunction


@dataclass(frozen=True)
class Lookahead:
    """The look-ahead of a target: how far, in which value steps, and with which policy (paper, section III-C)."""

    decay: float  # lambda, per value step
    floor: float  # of the weight of the last return, which sets the number of steps
    step_periods: int  # control periods of a value step, in which both players hold their moves
    hold: Hold = CLOSED_FORM  # of the policy
    modulation: str = "stationary"  # of the adversaries' radii, see `solver.game.adversaries.Modulation`

    def policy(self, problem: Problem, value: ValueFunction) -> ClosedFormPolicy:
        """Policy of V in a value step."""
        return self.hold.policy(problem, value, self.step_periods)

    @property
    def steps(self) -> int:
        """Number of value steps N: the least for which the next weight, lambda^N, is at most `floor`."""
        return max(1, math.ceil(math.log(self.floor) / math.log(self.decay))) if self.decay > 0.0 else 1

    def weights(self) -> Iterator[float]:
        """Weights of the returns R_1 ... R_N. Their sum is one."""
        for n in range(self.steps - 1):
            yield (1.0 - self.decay) * self.decay**n
        yield self.decay ** (self.steps - 1)


@dataclass(frozen=True)
class Step:
    """One iteration of a plan.

    (run_seed, number, purpose) seeds every random stream of the iteration, so that a resumed training repeats an
    uninterrupted one bit for bit.
    """

    number: int  # no other iteration of the training has it
    run_seed: int
    states: int  # N
    lookahead: Lookahead
    adversaries: tuple[Adversary, ...]
    minibatch: int
    learning_rates: tuple[float, ...]  # of the epochs of the fit
    fresh_optimiser: bool  # whether the fit begins without the moments of the fit before
    adversary_share: float = 0.0  # of the full radii, for the metrics

    def seed(self, purpose: Purpose) -> int:
        """Seed of the random stream with this purpose."""
        return stream(self.run_seed, self.number, purpose)

    def generator(self, purpose: Purpose, device: torch.device | str) -> torch.Generator:
        """Random numbers of the stream with this purpose."""
        return torch.Generator(device=device).manual_seed(self.seed(purpose))
