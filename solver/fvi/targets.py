"""n-step value targets: the exponentially weighted average of n-step returns under both players' moves.

V_tar = sum_{n=1}^{N-1} (1 - lambda) lambda^(n-1) R_n + lambda^(N-1) R_N, where R_n is the discounted reward of n steps
plus the discounted V^k at their end, each clamped to <= 0 (paper, section III-C). The states are divided into chunks
that stay in the processor's cache. A pool of threads computes the chunks, each thread with serial kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.game import ClosedFormPolicy, Game
from solver.game.adversaries import Adversary, Modulation
from solver.game.policies import CLOSED_FORM, Hold
from solver.parallel import Replayed
from solver.problem import Problem
from solver.streams import Purpose, stream
from solver.value.frozen import FrozenValue, ValueFunction

#: States whose targets are computed together: few enough to stay in the cache of a CPU. Every chunk has a random stream
#: of its own.
CHUNK = 1536


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


def game_step(
    game: Game, value: ValueFunction, policy: ClosedFormPolicy, modulation: Modulation, periods: int
) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    """Value step: x (N, n) and dV/dx (N, n) to the next x, the discounted cost (N,), V (N,) and dV/dx at the next x.

    On a GPU it is one CUDA graph.
    """

    def step(x: Tensor, costate: Tensor) -> tuple[Tensor, ...]:
        x, cost = game.advance(x, game.move(x, costate, policy, modulation), periods)
        return x, cost, *value(x)

    return Replayed(step, modulation.generator)


@torch.inference_mode()
def chunk_targets(game: Game, value: ValueFunction, x: Tensor, lookahead: Lookahead, seed: int) -> Tensor:
    """Targets (N,) of one chunk of states x (N, n)."""
    generator = torch.Generator(device=x.device).manual_seed(seed)
    problem = game.problem
    modulated = Modulation(lookahead.modulation, lookahead.step_periods * problem.control_step, generator)
    target, returns = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    _, costate = value(x)
    policy = lookahead.policy(problem, value)
    step = game_step(game, value, policy, modulated, lookahead.step_periods)
    for n, weight in enumerate(lookahead.weights()):
        x, cost, at_end, costate = step(x, costate)
        returns.sub_(cost, alpha=problem.discount(n * lookahead.step_periods))
        n_step = torch.add(returns, at_end, alpha=problem.discount((n + 1) * lookahead.step_periods))
        target.add_(n_step.clamp_(max=0.0), alpha=weight)
    return target


def value_targets(
    game: Game, value: FrozenValue, x: Tensor, lookahead: Lookahead, seed: int, workers: Executor, chunk: int = CHUNK
) -> Tensor:
    """Targets (N,) of all states x (N, n). They do not depend on the number of workers. A GPU takes all at once."""

    def work(part: tuple[int, Tensor]) -> Tensor:
        number, states = part
        return chunk_targets(game, value, states, lookahead, seed + number)

    return torch.cat(list(workers.map(work, enumerate(torch.split(x, chunk if x.device.type == "cpu" else len(x))))))
