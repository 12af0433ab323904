"""n-step value targets: the exponentially weighted average of n-step returns under both players' moves.

V_tar = sum_{n=1}^{N-1} (1 - lambda) lambda^(n-1) R_n + lambda^(N-1) R_N, where R_n is the discounted reward of n steps
plus the discounted V^k at their end, each clamped to <= 0 (paper, section III-C). Chunks of states are independent and
small enough to stay in cache; a pool of threads works through them, each thread with serial kernels.

The networks are zero at the task's target. The value there is not where an adversary never lets the robot rest: it is
the steady cost rate over the discount rate. Targets can be taken relative to that of the target state (relative value
iteration: White, 1963; Puterman, Markov Decision Processes, section 8.5.5), which neither player notices, since both
follow the gradient alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.game import Game, Modulation
from solver.value_function import FrozenValue

#: Rollouts from the target state that its own value is the mean of, and how far from it they begin, in shares of the
#: state limits: at the target itself the gradient is zero and no adversary moves.
ROLLOUTS, OFF_TARGET = 256, 1e-6


@dataclass(frozen=True)
class Trace:
    """How far and in which steps a target looks ahead."""

    decay: float  # lambda, per control period
    floor: float  # the last weight; sets the number of steps
    periods: int  # control periods that one value step holds both players' moves

    @property
    def step_decay(self) -> float:
        """lambda per value step."""
        return self.decay**self.periods

    @property
    def steps(self) -> int:
        """N, so that the next weight lambda^N would be at most `floor`."""
        return max(1, math.ceil(math.log(self.floor) / math.log(self.step_decay))) if self.decay > 0.0 else 1

    def weights(self) -> Iterator[float]:
        """The weights of R_1 ... R_N; they sum to one."""
        for n in range(self.steps - 1):
            yield (1.0 - self.step_decay) * self.step_decay**n
        yield self.step_decay ** (self.steps - 1)


@torch.no_grad()
def chunk_targets(x: Tensor, value: FrozenValue, game: Game, trace: Trace, modulation: str, seed: int) -> Tensor:
    """Targets (N,) of one chunk of states x (N, n)."""
    generator = torch.Generator(device=x.device).manual_seed(seed)
    shape = (len(x), x.shape[1], len(game.input_limits))
    radius = Modulation(game.radii, modulation, trace.periods * game.control_step, shape, generator)
    space = value.workspace(len(x))
    target, returns = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    _, costate = value(x, space)
    for n, weight in enumerate(trace.weights()):
        move = game.move(x, costate, radius)
        x, cost = game.advance(x, move, trace.periods)
        returns.sub_(cost, alpha=game.discount(n * trace.periods))
        at_end, costate = value(x, space)
        n_step = torch.add(returns, at_end, alpha=game.discount((n + 1) * trace.periods))
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
    """Targets (N,) of all states x (N, n); the same for any number of workers."""

    def work(part: tuple[int, Tensor]) -> Tensor:
        return chunk_targets(part[1], value, game, trace, modulation, seed + part[0])

    return torch.cat(list(workers.map(work, enumerate(torch.split(x, chunk)))))


def value_at_target(value: FrozenValue, game: Game, trace: Trace, modulation: str, seed: int) -> float:
    """The value target of the task's target state, as a mean over rollouts."""
    generator = torch.Generator(device=game.target.device).manual_seed(seed)
    off = torch.randn(ROLLOUTS, len(game.target), generator=generator, device=game.target.device)
    x = game.confine(game.target + OFF_TARGET * game.state_limits * off)
    return float(chunk_targets(x, value, game, trace, modulation, seed + 1).mean())
