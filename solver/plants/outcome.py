"""Outcome of rollouts: the success rule, and statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from solver.problem.geometry import conjugate, product
from solver.problem.problem import Problem

SETTLED = 0.5  # s, end of a rollout in which a success stays at the target,
SETTLED_SHARE = 0.2  # or this share of the task's horizon if that is shorter
ANGLE, RATE = math.radians(5.0), 0.5  # rad and rad/s, tolerances of an angle and of its rate,
SHARE = 0.05  # or this share of the limit if that is larger


@dataclass(frozen=True)
class Rollouts:
    """N rollouts of T control periods."""

    x: Tensor  # (T + 1, N, n + k) true states, with the contexts that the policy was told
    u: Tensor  # (T, N, m) inputs of the policy
    state_reward: Tensor  # (N,) minus the undiscounted state cost
    action_reward: Tensor  # (N,) minus the undiscounted action cost
    success: Tensor  # (N,) bool
    at_limit: Tensor  # (N, n) bool, True for states that were at their limit at any time
    estimates: Mapping[str, Tensor] = field(default_factory=dict)  # (N,) the observer's last, by parameter
    innovation: Tensor | None = None  # (N,) the observer's mean normalised innovation for each measured number

    @property
    def returns(self) -> Tensor:
        """Returns (N,): undiscounted sums of the reward."""
        return self.state_reward + self.action_reward

    def part(self, rows: slice) -> Rollouts:
        """Rollouts of a slice of the starts."""
        rewards = self.state_reward[rows], self.action_reward[rows]
        estimates = {name: found[rows] for name, found in self.estimates.items()}
        found = estimates, None if self.innovation is None else self.innovation[rows]
        return Rollouts(self.x[:, rows], self.u[:, rows], *rewards, self.success[rows], self.at_limit[rows], *found)


def succeeded(problem: Problem, rows: Tensor) -> Tensor:
    """Mask (N,) of the successes among rollouts through the rows (K, N, n + k), one for every control period.

    A success has every coordinate, the angle of every rotation, and their rates within their tolerances of the target
    of its row during the last `settling_periods`, or during all of a shorter rollout, and no state at its limit. States
    that the task declares free may have any other value.
    """
    rows = rows[-1 - settling_periods(problem) :]
    x, target = rows[..., : len(problem.target)], problem.targets(rows)
    states, count = problem.robot.metadata.states, problem.robot.metadata.nq
    position, rate = tolerances(problem)
    error = (x - target)[..., :count].abs()
    turned = torch.where(problem.clipped[:count], error, torch.minimum(error, 2.0 * math.pi - error))
    for rotation in problem.robot.metadata.rotations:
        apart = product(conjugate(problem.target[rotation.quaternion]), x[..., rotation.quaternion])
        sine = torch.linalg.vector_norm(apart[..., 1:], dim=-1, keepdim=True)
        turned[..., rotation.quaternion] = 2.0 * torch.atan2(sine, apart[..., :1].abs())
    still = problem.rates(target.reshape(-1, len(states))).view(*target.shape[:-1], -1)
    speed = (problem.rates(x.reshape(-1, len(states))).view(*x.shape[:-1], -1) - still).abs()
    near = torch.cat([turned <= position, speed <= rate], -1)
    judged = states[: near.shape[-1]]
    restricted = [i for i, state in enumerate(judged) if state.name not in problem.robot.metadata.task.free]
    inside = ~problem.at_limit(x).any(-1)
    return (near[..., restricted].all(-1) & inside).all(0)


def settling_periods(problem: Problem) -> int:
    """Control periods for which a success stays at the target: the shorter of SETTLED seconds and SETTLED_SHARE of the
    task's horizon."""
    return round(min(SETTLED, SETTLED_SHARE * problem.robot.metadata.task.horizon) / problem.control_step)


def tolerances(problem: Problem) -> tuple[Tensor, Tensor]:
    """Tolerances (nq,) of the coordinates, and (nv,) of their rates, in a success.

    They are SHARE of the limits. For an angle, they are at least ANGLE and RATE. A continuous angle has no limit: its
    tolerance is ANGLE. Each entry of a quaternion has the tolerance of the angle of its rotation.
    """
    metadata, device = problem.robot.metadata, problem.target.device
    states, turning = metadata.states[: metadata.nq], metadata.turning
    angles = torch.tensor([state.unit == "rad" or i in turning for i, state in enumerate(states)], device=device)
    limits = torch.where(problem.clipped, problem.state_limits, 0.0)[: len(states)]
    for rotation in problem.limited:
        limits[rotation.quaternion] = rotation.limit
    position = torch.maximum(SHARE * limits, ANGLE * angles)
    turns = [unit == "rad" for _, unit, _ in problem.tangent.entries[: metadata.pose]]
    if metadata.rolls:
        turns = [state.unit == "rad/s" for state in metadata.states[metadata.velocities]]
    return position, torch.maximum(SHARE * problem.largest_rates, RATE * torch.tensor(turns, device=device))


def summary(result: Rollouts) -> dict[str, float]:
    """Statistics of N rollouts, with the names of metrics.jsonl (docs/reference/run-folder.md)."""
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
    """Number of decimals, at least `least`, that prints a return of this size with `least` + 1 significant digits."""
    return least if size == 0.0 or not math.isfinite(size) else max(least, least - math.floor(math.log10(abs(size))))
