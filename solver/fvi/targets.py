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

from solver.cuda_graphs import Replayed
from solver.game.game import Game, Modulation
from solver.game.policies import ClosedFormPolicy, make_policy
from solver.problem.problem import Problem
from solver.value.frozen import FrozenValue, ValueFunction


@dataclass(frozen=True)
class Trace:
    """How a target looks ahead: how far, in which steps, and with which policy."""

    decay: float  # lambda, per value step
    floor: float  # of the last weight, which sets the number of steps
    step_periods: int  # control periods of a value step, in which both players hold their moves
    reaction_periods: float = 0.0  # control periods that an input acts before the next one can; 0: the closed form

    def policy(self, problem: Problem, value: ValueFunction) -> ClosedFormPolicy:
        """The policy of V in a value step."""
        return make_policy(problem, value, self.reaction_periods, self.step_periods)

    @property
    def steps(self) -> int:
        """N, the least for which the next weight, lambda^N, is at most `floor`."""
        return max(1, math.ceil(math.log(self.floor) / math.log(self.decay))) if self.decay > 0.0 else 1

    def weights(self) -> Iterator[float]:
        """The weights of the returns R_1 ... R_N. Their sum is one."""
        for n in range(self.steps - 1):
            yield (1.0 - self.decay) * self.decay**n
        yield self.decay ** (self.steps - 1)


def game_step(
    game: Game, value: ValueFunction, policy: ClosedFormPolicy, modulation: Modulation, periods: int
) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
    """A value step: x (N, n) and dV/dx (N, n) -> the next x, the discounted cost (N,), V (N,) and dV/dx at the next x.

    On a GPU it is one CUDA graph.
    """

    def step(x: Tensor, costate: Tensor) -> tuple[Tensor, ...]:
        x, cost = game.advance(x, game.move(x, costate, policy, modulation), periods)
        return x, cost, *value(x)

    return Replayed(step, modulation.generator)


@torch.inference_mode()
def chunk_targets(x: Tensor, value: ValueFunction, game: Game, trace: Trace, modulation: str, seed: int) -> Tensor:
    """The targets (N,) of one chunk of states x (N, n)."""
    generator = torch.Generator(device=x.device).manual_seed(seed)
    problem = game.problem
    modulated = Modulation(modulation, trace.step_periods * problem.control_step, generator)
    target, returns = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    _, costate = value(x)
    policy = trace.policy(problem, value)
    step = game_step(game, value, policy, modulated, trace.step_periods)
    for n, weight in enumerate(trace.weights()):
        x, cost, at_end, costate = step(x, costate)
        returns.sub_(cost, alpha=problem.discount(n * trace.step_periods))
        n_step = torch.add(returns, at_end, alpha=problem.discount((n + 1) * trace.step_periods))
        target.add_(n_step.clamp_(max=0.0), alpha=weight)
    return target


def value_targets(
    x: Tensor,
    value: FrozenValue,
    game: Game,
    trace: Trace,
    modulation: str,
    seed: int,
    chunk: int,
    workers: Executor,
) -> Tensor:
    """The targets (N,) of all states x (N, n). They do not depend on the number of workers. A GPU takes all at once."""

    def work(part: tuple[int, Tensor]) -> Tensor:
        number, states = part
        return chunk_targets(states, value.buffered(len(states)), game, trace, modulation, seed + number)

    return torch.cat(list(workers.map(work, enumerate(torch.split(x, chunk if x.device.type == "cpu" else len(x))))))
