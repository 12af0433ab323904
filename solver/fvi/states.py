"""The states of an iteration: from the whole domain, around the task's starts and target, and from rollouts.

Uniform states are the paper's dynamic programming (DP). Real-time dynamic programming (RTDP) draws from a first-in
first-out buffer. Every iteration adds rollouts of the current policy to it, some with noise on the inputs, for
exploration, and some against the adversaries. `Settings.start_share`, `target_share` and `on_policy_share` set the
mixture.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.local.basin import near_target
from solver.plants.rollouts import Controller, rollouts
from solver.problem.problem import Problem
from solver.training.settings import Settings
from solver.value.quadratic_form import Basin

Play = Callable[[Tensor], Tensor]
PARTS = 8  # of the horizon: a rollout for the buffer lasts one
NOISE_SECONDS = 0.1  # correlation time of the exploration noise: white noise would average out within a swing


class StateSource:
    """Draws the states of every iteration, and keeps the buffer of visited states (V, n), which is empty for DP."""

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self.problem, self.settings = problem, settings
        self.basin: Basin | None = None
        self.visited = problem.state_limits.new_empty(0, len(problem.state_limits))

    def draw(self, act: Controller, generator: torch.Generator, play: Play | None = None, times: int = 1) -> Tensor:
        """States (N, n): `times` as many as the setting says.

        With an on-policy share it first adds rollouts to the buffer: of `act` with noise, and of `play`, a function of
        starts (K, n) that returns states (T, K, n).
        """
        s = self.settings
        shares = (s.on_policy_share, s.start_share, s.target_share)
        size = times * s.states
        own, at_start, at_target = (round(share * size) for share in shares)
        at_target -= max(0, own + at_start + at_target - size)  # each may have been rounded up
        at_start -= max(0, own + at_start + at_target - size)
        parts = [self.problem.sample_domain(size - own - at_start - at_target, generator)]
        parts.append(self._near_starts(at_start, generator))
        parts.append(self._near_target(at_target, generator))
        if own > 0:
            self._explore(act, generator, play)
            index = torch.randint(len(self.visited), (own,), generator=generator, device=generator.device)
            parts.append(self._scattered(self.visited[index], s.on_policy_spread, generator))
        return torch.cat(parts)

    def _near_starts(self, size: int, generator: torch.Generator) -> Tensor:
        """Starts with a Gaussian added, so that V is fitted around the starts and not only at them."""
        starts = self.problem.sample_starts(size, generator)
        draw = torch.randn(starts.shape, generator=generator, device=generator.device)
        return self.problem.confine(starts + self.settings.start_spread * self.problem.state_limits * draw)

    def _near_target(self, size: int, generator: torch.Generator) -> Tensor:
        """States around the target, where V is steepest: in the metric of the basin where there is one."""
        if self.basin is not None:
            return near_target(self.problem, self.basin, size, generator)
        return self._scattered(self.problem.target.expand(size, -1), self.settings.target_spread, generator)

    def _scattered(self, x: Tensor, spread: float, generator: torch.Generator) -> Tensor:
        """x (N, n) with a Gaussian added; each row has a standard deviation of its own, up to the spread."""
        if spread == 0.0:
            return x
        draw = torch.randn(x.shape, generator=generator, device=generator.device)
        scale = torch.rand((len(x), 1), generator=generator, device=generator.device)
        return self.problem.confine(x + spread * scale * self.problem.state_limits * draw)

    def _explore(self, act: Controller, generator: torch.Generator, play: Play | None) -> None:
        """Append the states of new rollouts to the buffer, and remove the oldest.

        Each lasts a part of the horizon. One part of them begins at the task's starts, the others where earlier ones
        passed: many short rollouts take less time than few long ones.
        """
        s, size = self.settings, self.visited.shape[1]
        starts = self.problem.sample_starts(s.rollouts, generator)
        played = round(s.adversarial_share * s.rollouts) if play else 0
        parts = []
        if played < s.rollouts:
            noisy = disturbed(act, self.problem, s.exploration_noise, generator)
            begin = self._continued(starts[played:], generator)
            part = self.problem.robot.metadata.task.horizon * (s.rollouts - played) / len(begin)
            seconds = max(part, self.problem.control_step)
            parts.append(rollouts(self.problem, noisy, begin, seconds=seconds).x)
        if play and played:
            parts.append(play(starts[:played]))
        states = torch.cat([self.visited, *(part.reshape(-1, size) for part in parts)])
        self.visited = states[-s.buffer :].clone()  # a checkpoint would save all that a view shows a part of

    def _continued(self, starts: Tensor, generator: torch.Generator) -> Tensor:
        """The starts (K, n) and, once there are visited states, (PARTS - 1) K of these."""
        if not len(self.visited):
            return starts
        size = ((PARTS - 1) * len(starts),)
        index = torch.randint(len(self.visited), size, generator=generator, device=generator.device)
        return torch.cat([starts, self.visited[index]])

    def restore(self, visited: Tensor) -> None:
        """Restore the buffer of a checkpoint. SolverError for one of another robot."""
        if visited.ndim != 2 or visited.shape[1] != self.visited.shape[1]:
            raise SolverError(
                f"the checkpoint's buffer has shape {tuple(visited.shape)}; give (N, {self.visited.shape[1]})"
            )
        self.visited = visited.to(self.visited)


def disturbed(act: Controller, problem: Problem, noise: float, generator: torch.Generator) -> Controller:
    """`act` with a first-order Gauss-Markov process added to its inputs: standard deviation noise * input limit; the
    sum is clipped to the limits."""
    keep = math.exp(-problem.control_step / NOISE_SECONDS)
    state: list[Tensor] = []

    def noisy(x: Tensor) -> tuple[Tensor, Tensor]:
        u, cost = act(x)
        draw = torch.randn(u.shape, generator=generator, device=u.device)
        state[:] = [keep * state[0] + math.sqrt(1.0 - keep**2) * draw if state else draw]
        limits = problem.input_limits
        return torch.clamp(u + noise * limits * state[0], -limits, limits), cost

    return noisy
