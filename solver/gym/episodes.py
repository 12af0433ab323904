"""Episodes of a robot: starts, parameters, held actions and rewards, for many episodes at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from solver.errors import SolverError
from solver.plants.outcome import settling_periods, succeeded
from solver.problem.episode_options import episode_actions, is_number
from solver.problem.integrator import integrate_period
from solver.problem.problem import Problem, StartDistribution

Array = NDArray[Any]
INFORMATION = ("is_success", "state_cost", "action_cost")  # what an environment tells beside the reward
TARGET_SPREAD = 0.2  # of the state limits, largest standard deviation of a start near the target


class Episodes:
    """N episodes of a robot, simulated together.

    problem: with told parameters, every episode draws its context `c` (N, k), and the robot has these parameters.
    size: N.
    start: `gaussian`, the task's start distribution; `angle`, the same with uniform continuous angles; or `uniform` in
    the state domain.
    randomize: share of its nominal value within which every parameter is drawn uniformly in each episode, and then
    clipped to its bounds.
    seconds: length of an episode, by default the task's horizon.
    hold: control periods for which an action is held. An episode has `length` actions.
    target_share: share of the episodes that start near the target instead, see `Problem.scatter`.

    Raises SolverError for an argument out of range.
    """

    def __init__(
        self,
        problem: Problem,
        size: int,
        start: StartDistribution,
        randomize: float,
        seconds: float | None,
        hold: int,
        target_share: float = 0.0,
    ) -> None:
        if not is_number(target_share) or not 0.0 <= target_share <= 1.0:
            raise SolverError(f"target_share is {target_share!r}; give a share of the episodes, in [0, 1]")
        self.length = episode_actions(problem, start, randomize, seconds, hold)
        self.rate = problem.robot.metadata.task.control_rate / hold  # actions per second
        self.problem, self.start, self.randomize, self.hold = problem, start, randomize, int(hold)
        self.target_share = target_share
        self.x = torch.zeros(size, len(problem.state_limits))
        self.c = torch.zeros(size, 0 if problem.context is None else len(problem.context))
        self.theta = problem.theta.repeat(size, 1)
        self.state_cost, self.action_cost = torch.zeros(size), torch.zeros(size)  # integrals over the last action
        self.success = np.zeros(size, bool)  # of the episodes that have ended
        self.recent = deque([self.x], 1 + min(settling_periods(problem), self.length * self.hold))  # x at period ends
        self.taken = np.full(size, -1)  # actions so far in the current episode; -1 before the first episode

    @property
    def seconds(self) -> float:
        """Length of an action in seconds."""
        return 1.0 / self.rate

    def restart(self, rows: Sequence[int], generators: Sequence[np.random.Generator]) -> None:
        """Start new episodes in the given rows. generators: one for every row of the N, source of starts and
        parameters."""
        problem = self.problem
        self.x = self.x.clone()  # the old one is among the recent states
        for row in rows:
            generator = torch.Generator().manual_seed(int(generators[row].integers(2**62)))
            drawn, n = self._draw(generator), self.x.shape[1]
            self.x[row], self.c[row] = drawn[:n], drawn[n:]
            if self.randomize > 0.0:
                spread = self.randomize * problem.theta.abs()
                theta = problem.theta + spread * (2.0 * torch.rand(len(spread), generator=generator) - 1.0)
                self.theta[row] = theta.clamp(problem.theta_bounds[:, 0], problem.theta_bounds[:, 1])
            if problem.context is not None:
                self.theta[row] = problem.context.replaced(self.theta[row], self.c[row, None])[0]
            self.taken[row] = 0
        self.recent[-1] = self.x

    def _draw(self, generator: torch.Generator) -> Tensor:
        """Start and context (n + k,) of an episode."""
        problem = self.problem
        if self.target_share > 0.0 and float(torch.rand(1, generator=generator)) < self.target_share:
            return problem.scatter(problem.sample_targets(1, generator), TARGET_SPREAD, generator)[0]
        sample = {
            "gaussian": problem.sample_starts,
            "angle": problem.sample_angles,
            "uniform": problem.sample_domain,
        }[self.start]
        return sample(1, generator)[0]

    def advance(self, action: Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Summed rewards (N,) of the actions (N, m) in [-1, 1], and a mask (N,) of the episodes that have ended.

        Raises SolverError before the first reset, for actions of another shape or that are not finite, and if states
        become infinite or NaN.
        """
        if (self.taken < 0).any():
            raise SolverError("no episode has started; call reset before step")
        problem, shape = self.problem, (len(self.x), len(self.problem.input_limits))
        share = np.asarray(action, dtype=np.float32)
        if share.shape != shape or not np.isfinite(share).all():
            raise SolverError(
                f"actions must be finite numbers of shape {shape}, from -1 (lower limit of an input) to 1 (upper limit)"
            )
        u = problem.input_of(torch.from_numpy(share.clip(-1.0, 1.0)))
        theta = self.theta if self.randomize > 0.0 or problem.context is not None else None
        cost, reward = problem.action_cost.cost(u), torch.zeros(len(self.x))
        self.state_cost, self.action_cost = torch.zeros(len(self.x)), self.hold * problem.control_step * cost
        for _ in range(self.hold):
            self.x, state_cost = integrate_period(problem, self.x, u, theta)
            reward -= state_cost + cost * problem.control_step
            self.state_cost += state_cost
            self.recent.append(self.x)
        if not bool(torch.isfinite(self.x).all()):
            raise SolverError(
                f"the states of {problem.robot.name} became infinite or NaN within a control period; raise the task's "
                "control_rate"
            )
        self.taken += 1
        ended = self.taken >= self.length
        self.success = ended & (succeeded(problem, torch.stack(list(self.recent))).numpy() if ended.any() else False)
        return reward.double().numpy(), ended

    @property
    def information(self) -> dict[str, Array]:
        """What INFORMATION names, (N,) each: whether the episode has ended as a success, and the terms of the cost over
        the last action, whose sum is minus the reward."""
        values = (self.success, self.state_cost.double().numpy(), self.action_cost.double().numpy())
        return dict(zip(INFORMATION, values, strict=True))
