"""Sources of states: the whole domain, the task's starts, its target, and rollouts of the current policy.

Uniform states are the paper's dynamic programming (DP). States of rollouts are its real-time dynamic programming
(RTDP), drawn from a first-in first-out buffer. A mixture takes a share of the states from each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from solver.local.basin import near_target
from solver.plants.outcome import Controller, rollouts
from solver.problem import Problem
from solver.value.family import Basin, BasinFamily


@dataclass(frozen=True)
class Mixture:
    """Shares of the states of an iteration. The rest is uniform in the state domain."""

    starts: float = 0.0  # from the task's start distribution, a little spread
    target: float = 0.0  # around the target
    rollouts: float = 0.0  # from the buffer of rollouts
    spread: float = 0.0  # largest standard deviation added to states of rollouts, as a share of the state limits


#: Every mixture that a training can take, by name.
MIXTURES = {
    "mixture": Mixture(0.05, 0.1, 0.5),  # V may have a kink near the starts; few uniform states lie near the target
    "domain": Mixture(0.05, 0.1),
    "uniform": Mixture(),  # DP of the paper
    "rollouts": Mixture(rollouts=1.0),  # RTDP of the paper
    "spread-rollouts": Mixture(rollouts=1.0, spread=0.25),  # states beside a narrow bundle of motions determine dV/dx
}


@dataclass
class StateSource:
    """Source of the states of every iteration, with the buffer `visited` (V, n + k), which is empty for DP."""

    problem: Problem
    mixture: Mixture
    basin: Basin | BasinFamily | None = None  # its metric scales the states around the target
    start_spread: float = 0.05  # standard deviation added to starts, as a share of the state limits
    unknown: float = 0.3  # smallest share around the target, of mixtures with one, where the basin is empty
    target_spread: float = 0.15  # the largest around the target where there is no basin, likewise
    new_rollouts: int = 16  # in an iteration
    parts: int = 16  # of the horizon; a rollout for the buffer lasts one part
    buffer: int = 100_000  # largest number of visited states
    noise: float = 0.2  # standard deviation of the noise on their inputs, as a share of the input limits
    noise_seconds: float = 0.1  # correlation time of this noise: white noise averages out within a swing
    visited: Tensor = field(init=False)

    def __post_init__(self) -> None:
        told = 0 if self.problem.context is None else len(self.problem.context)
        self.visited = self.problem.state_limits.new_empty(0, len(self.problem.state_limits) + told)

    def draw(self, policy: Controller, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k). With a share of rollouts, new rollouts of `policy` with noise enter the buffer first."""
        near = self.mixture.target  # zero stays zero, as in the paper's samplings
        if near and self.basin is not None and self.basin.empty:
            near = max(near, self.unknown)
        shares = (self.mixture.rollouts, self.mixture.starts, near)
        own, at_start, at_target = (round(share * size) for share in shares)
        at_target -= max(0, own + at_start + at_target - size)  # all three may have been rounded up
        at_start -= max(0, own + at_start + at_target - size)
        parts = [self.problem.sample_domain(size - own - at_start - at_target, generator)]
        parts += [self._near_starts(at_start, generator), self._near_target(at_target, generator)]
        if own > 0:
            self._explore(policy, generator)
            index = torch.randint(len(self.visited), (own,), generator=generator, device=generator.device)
            parts.append(self.problem.scatter(self.visited[index], self.mixture.spread, generator))
        return torch.cat(parts)

    def _near_starts(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k) around the starts, so that V is fitted there and not only at the starts."""
        rows = self.problem.sample_starts(size, generator)
        starts, _ = self.problem.split(rows)
        draw = torch.randn(starts.shape, generator=generator, device=generator.device)
        moved = self.problem.confine(starts + self.start_spread * self.problem.state_limits * draw)
        return self.problem.join(moved, rows)

    def _near_target(self, size: int, generator: torch.Generator) -> Tensor:
        """Rows (size, n + k) around the target, where V is steepest: in the metric of the basin where there is one."""
        if self.basin is not None:
            return near_target(self.problem, self.basin, size, generator)
        return self.problem.scatter(self.problem.sample_targets(size, generator), self.target_spread, generator)

    def _explore(self, policy: Controller, generator: torch.Generator) -> None:
        """Append the states of new rollouts to the buffer and remove the oldest.

        A rollout lasts one part of the horizon. A share begins at the task's starts, the others where earlier rollouts
        passed: many short rollouts take less time than few long ones. The first ones all begin at the starts.
        """
        count = self.parts * self.new_rollouts
        starts = self.problem.sample_starts(self.new_rollouts if len(self.visited) else count, generator)
        begin = torch.cat([starts, self._passed(count - len(starts), generator)])
        seconds = max(self.problem.robot.metadata.task.horizon / self.parts, self.problem.control_step)
        x = rollouts(self.problem, self._noisy(policy, generator), begin, seconds=seconds).x
        states = torch.cat([self.visited, x.reshape(-1, self.visited.shape[1])])
        self.visited = states[-self.buffer :].clone()  # a checkpoint would save everything that a view shows a part of

    def _passed(self, size: int, generator: torch.Generator) -> Tensor:
        """Visited states (size, n + k). Where references are told, every second one has others: they jump there."""
        index = torch.randint(max(len(self.visited), 1), (size,), generator=generator, device=generator.device)
        rows, context = self.visited[index], self.problem.context
        if context is not None and context.references:
            n = len(self.problem.target)
            rows[::2, n:] = context.redrawn(rows[::2, n:], generator)
        return rows

    def _noisy(self, policy: Controller, generator: torch.Generator) -> Controller:
        """The policy with a first-order Gauss-Markov process added to its inputs, within the input limits."""
        keep = math.exp(-self.problem.control_step / self.noise_seconds)
        state: list[Tensor] = []

        def noisy(x: Tensor) -> tuple[Tensor, Tensor]:
            u, cost = policy(x)
            draw = torch.randn(u.shape, generator=generator, device=u.device)
            state[:] = [keep * state[0] + math.sqrt(1.0 - keep**2) * draw if state else draw]
            moved = u + self.noise * self.problem.input_limits * state[0]
            return torch.clamp(moved, self.problem.lower_input, self.problem.upper_input), cost

        return noisy
