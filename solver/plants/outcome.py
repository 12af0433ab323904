"""The outcome of rollouts: when one is a success, and the statistics of many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.problem.problem import Problem

SUCCESS_ANGLE = math.radians(5.0)
SUCCESS_RATE = 0.5  # rad/s
SUCCESS_POSITION = 0.05  # of the limit, for robots without a continuous joint


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


def succeeded(problem: Problem, x: Tensor) -> Tensor:
    """Whether a rollout that ends at x (N, n) is a success, (N,) bool.

    Every continuous joint must end within 5 degrees of its target and below 0.5 rad/s. A robot without continuous
    joints succeeds when every state is within 5 % of its limit from the target.
    """
    error = (x - problem.target).abs()
    if not problem.continuous:
        return (error <= SUCCESS_POSITION * problem.state_limits).all(1)
    rates = (problem.rates(x) - problem.rates(problem.target[None])).abs()
    angles = torch.minimum(error, 2.0 * math.pi - error)[:, problem.continuous]
    return (angles < SUCCESS_ANGLE).all(1) & (rates < SUCCESS_RATE).all(1)


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
