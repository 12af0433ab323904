"""The outcome of rollouts: when one is a success, and the statistics of many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.problem.problem import Problem

SETTLED = 0.5  # s at the end of a rollout for which it must stay at the target,
SETTLED_SHARE = 0.2  # or this share of the task's horizon, where that is less
ANGLE, RATE = math.radians(5.0), 0.5  # rad and rad/s within which a joint is at its target and at rest,
SHARE = 0.05  # or this share of the limit, where that is more


@dataclass(frozen=True)
class Rollouts:
    """N rollouts of T control periods."""

    x: Tensor  # (T + 1, N, n)
    u: Tensor  # (T, N, m)
    state_reward: Tensor  # (N,) undiscounted
    action_reward: Tensor  # (N,)
    success: Tensor  # (N,) bool
    at_limit: Tensor  # (N, n) bool, states that the simulation stopped at their limit at some time

    @property
    def returns(self) -> Tensor:
        """Undiscounted sums of the reward, (N,)."""
        return self.state_reward + self.action_reward

    def part(self, rows: slice) -> Rollouts:
        """Some of the rollouts."""
        rewards = self.state_reward[rows], self.action_reward[rows]
        return Rollouts(self.x[:, rows], self.u[:, rows], *rewards, self.success[rows], self.at_limit[rows])


def succeeded(problem: Problem, x: Tensor) -> Tensor:
    """Which rollouts through the states x (K, N, n), one state a control period, are successes, (N,) bool.

    During the last `settling_periods`, or all of a shorter rollout, every coordinate is within its tolerance of the
    target, and so is its rate; no state is at its limit. States that the task names as free may have any value.
    """
    x = x[-1 - settling_periods(problem) :]
    states, count = problem.robot.metadata.states, len(problem.robot.metadata.coordinates)
    position, rate = tolerances(problem)
    error = (x - problem.target)[..., :count].abs()
    turned = torch.where(problem.clipped[:count], error, torch.minimum(error, 2.0 * math.pi - error))
    speed = (problem.rates(x.reshape(-1, len(states))) - problem.rates(problem.target[None])).view_as(error).abs()
    near = torch.cat([turned <= position, speed <= rate], -1)
    judged = [i for i, state in enumerate(states) if state.name not in problem.robot.metadata.task.free]
    inside = ~problem.at_limit(x).any(-1)
    return (near[..., judged].all(-1) & inside).all(0)


def settling_periods(problem: Problem) -> int:
    """Control periods for which a success stays at the target: SETTLED seconds, or a share of the task's horizon where
    that is less."""
    return round(min(SETTLED, SETTLED_SHARE * problem.robot.metadata.task.horizon) / problem.control_step)


def tolerances(problem: Problem) -> tuple[Tensor, Tensor]:
    """How far each coordinate may be from its target in a success, and its rate from the target's, (q,) each.

    ANGLE and RATE where the coordinate is an angle, or SHARE of the limit where that is more. A joint that wraps has no
    limit, and its angle must be within ANGLE.
    """
    states = problem.robot.metadata.states[: len(problem.robot.metadata.coordinates)]
    angles = torch.tensor([state.unit == "rad" for state in states], device=problem.target.device)
    limits = torch.where(problem.clipped, problem.state_limits, 0.0)[: len(states)]
    position = torch.maximum(SHARE * limits, ANGLE * angles)
    return position, torch.maximum(SHARE * problem.largest_rates, RATE * angles)


def summary(result: Rollouts) -> dict[str, float]:
    """The statistics of N rollouts, under the names that metrics.jsonl uses (docs/reference/run-folder.md)."""
    spread = 1.96 * result.returns.std() if len(result.returns) > 1 else torch.zeros(())
    return {
        "return_mean": float(result.returns.mean()),
        "return_spread": float(spread),
        "return_worst": float(result.returns.min()),
        "state_reward": float(result.state_reward.mean()),
        "action_reward": float(result.action_reward.mean()),
        "success_rate": float(result.success.float().mean()),
        "limit_rate": float(result.at_limit.any(1).float().mean()),
    }


def decimals(size: float, least: int = 2) -> int:
    """Those that print a return of this size with three digits, or with two for a `least` of 1: costs may be far from
    1."""
    return least if size == 0.0 or not math.isfinite(size) else max(least, least - math.floor(math.log10(abs(size))))
