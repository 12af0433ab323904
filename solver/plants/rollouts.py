"""Rollouts of a policy on its robot, at nominal or changed parameters, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.held_input_policy import make_policy
from solver.plants.plant import Nominal, Plant
from solver.problem.problem import Problem
from solver.serial import serial_torch
from solver.value.protocol import ValueFunction

SUCCESS_ANGLE = math.radians(5.0)
SUCCESS_RATE = 0.5  # rad/s
MOST_EPISODES = 100_000  # at once; states and inputs of all periods are kept
SUCCESS_POSITION = 0.05  # of the limit, for robots without a continuous joint

Controller = Callable[[Tensor], tuple[Tensor, Tensor]]  # x (N, n) -> u (N, m), g_c(u) (N,)


@dataclass(frozen=True)
class Rollouts:
    """N rollouts of T control periods."""

    x: Tensor  # (T + 1, N, n)
    u: Tensor  # (T, N, m)
    state_reward: Tensor  # (N,) undiscounted
    action_reward: Tensor  # (N,)
    success: Tensor  # (N,) bool
    at_limit: Tensor  # (N, n) bool, the states that the simulation stopped at their limit on the way

    @property
    def returns(self) -> Tensor:
        """(N,) undiscounted sums of the reward."""
        return self.state_reward + self.action_reward


def controller(problem: Problem, value: ValueFunction, reaction_periods: float = 0.0) -> Controller:
    """The policy of a value function; reaction_periods as in `solver.game.held_input_policy.make_policy`."""
    policy = make_policy(problem, value, reaction_periods)

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        return policy.respond(x, value(x)[1])[:2]

    return act


def sample_starts(problem: Problem, episodes: int, seed: int) -> Tensor:
    """Starts (N, n) from the task's Gaussian distribution, confined to the state domain."""
    return problem.sample_starts(episodes, torch.Generator(device=problem.state_limits.device).manual_seed(seed))


@torch.no_grad()
@serial_torch()
def rollouts(
    problem: Problem, act: Controller, x: Tensor, plant: Plant | None = None, seconds: float | None = None
) -> Rollouts:
    """Follow a controller from x (N, n) for the task's horizon, its input held at the control rate, on a plant, by
    default the nominal one. The state reward is that of the true states, the action reward that of the controller's
    own inputs, whatever a plant's drive makes of them."""
    task = problem.robot.metadata.task
    motion = (plant or Nominal(problem)).begin(x)
    steps = round((seconds or task.horizon) * task.control_rate)
    states, inputs = [x], []
    state_reward, action_reward = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
    for _ in range(steps):
        u, cost = act(motion.seen)
        state_reward -= problem.state_cost(motion.x) * problem.control_step
        action_reward -= cost * problem.control_step
        motion.step(u)
        states.append(motion.x)
        inputs.append(u)
    x = torch.stack(states)
    at_limit = problem.at_limit(x[1:]).any(0)
    return Rollouts(x, torch.stack(inputs), state_reward, action_reward, succeeded(problem, states[-1]), at_limit)


def require_episodes(episodes: int) -> None:
    """SolverError unless so many rollouts can be kept at once."""
    if not 1 <= episodes <= MOST_EPISODES:
        raise SolverError(f"--episodes is {episodes}; give at least 1 and at most {MOST_EPISODES}")


def succeeded(problem: Problem, x: Tensor) -> Tensor:
    """(N,) whether every continuous joint ends within 5 degrees of its target and below 0.5 rad/s.

    A robot without continuous joints succeeds when every state is within 5 % of its limit from the target.
    """
    error = (x - problem.target).abs()
    if not problem.continuous:
        return (error <= SUCCESS_POSITION * problem.state_limits).all(1)
    rates = (problem.rates(x) - problem.rates(problem.target[None])).abs()
    angles = torch.minimum(error, 2.0 * math.pi - error)[:, problem.continuous]
    return (angles < SUCCESS_ANGLE).all(1) & (rates < SUCCESS_RATE).all(1)


def summary(result: Rollouts) -> dict[str, float]:
    """What the rollouts come to, under the names the metrics use (docs/reference/run-folder.md)."""
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
