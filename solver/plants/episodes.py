"""Episodes of a robot, simulated together, for environments of every framework: their options, rewards and features."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from solver.errors import SolverError
from solver.plants.outcome import settling_periods, succeeded
from solver.problem import Problem, StartDistribution
from solver.problem.geometry import ENTRIES, matrix
from solver.problem.integrator import integrate_period, steps_within
from solver.problem.parameters import is_number, is_whole

Array = NDArray[Any]
INFORMATION = ("is_success", "state_cost", "action_cost")  # what `step` returns with the reward
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
        self.steps = steps_within(problem, *problem.around(self.randomize)) if self.randomize else problem.substeps
        self.state_cost, self.action_cost = torch.zeros(size), torch.zeros(size)  # integrals over the last action
        self.success = np.zeros(size, bool)  # of the episodes that have ended
        self.recent = deque([self.rows], 1 + min(settling_periods(problem), self.length * self.hold))  # at period ends
        self.taken = np.full(size, -1)  # actions so far in the current episode; -1 before the first episode

    @property
    def seconds(self) -> float:
        """Length of an action in seconds."""
        return 1.0 / self.rate

    @property
    def rows(self) -> Tensor:
        """States with their contexts (N, n + k)."""
        return torch.cat([self.x, self.c], 1) if self.c.shape[1] else self.x

    def restart(self, rows: Sequence[int], generators: Sequence[np.random.Generator]) -> None:
        """Start new episodes in the given rows. generators: one for every row of the N, source of starts and
        parameters."""
        problem = self.problem
        self.x = self.x.clone()  # without contexts, the old one is among the recent rows
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
        self.recent[-1] = self.rows

    def _draw(self, generator: torch.Generator) -> Tensor:
        """Start and context (n + k,) of an episode."""
        problem = self.problem
        if self.target_share > 0.0 and float(torch.rand(1, generator=generator)) < self.target_share:
            return problem.scatter(problem.sample_targets(1, generator), TARGET_SPREAD, generator)[0]
        if self.start == "gaussian":
            return problem.sample_starts(1, generator)[0]
        sample = problem.sample_angles if self.start == "angle" else problem.sample_domain
        return sample(1, generator)[0]

    def advance(self, action: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Summed rewards (N,) of the actions (N, m) in [-1, 1], and a mask (N,) of the episodes that have ended.

        Raises SolverError before the first reset, for actions of another shape or that are not finite, and if states
        become infinite or NaN.
        """
        if (self.taken < 0).any():
            raise SolverError("no episode has started; call reset before step")
        problem, names = self.problem, self.problem.robot.input_names
        try:
            share = np.asarray(action, dtype=np.float32)
        except (TypeError, ValueError):  # a text, a mapping, or rows of several lengths
            share = np.empty(0, np.float32)
        if share.shape != (len(self.x), len(names)) or not np.isfinite(share).all():
            raise SolverError(
                f"the action of a robot is an array ({len(names)},) of finite numbers, from -1 (lower limit of an "
                f"input) to 1 (upper limit): {', '.join(names)}"
            )
        u = problem.input_of(torch.from_numpy(share.clip(-1.0, 1.0)))
        theta = self.theta if self.randomize > 0.0 or problem.context is not None else None
        cost, reward = problem.cost_at(self.rows).cost(u), torch.zeros(len(self.x))
        self.state_cost, self.action_cost = torch.zeros(len(self.x)), self.hold * problem.control_step * cost
        for _ in range(self.hold):
            self.x, state_cost = integrate_period(problem, self.x, u, theta, steps=self.steps)
            reward -= state_cost + cost * problem.control_step
            self.state_cost += state_cost
            self.recent.append(self.rows)
        if not bool(torch.isfinite(self.x).all()):
            raise SolverError(
                f"the states of {problem.robot.name} became infinite or NaN within a control period; raise the task's "
                "control_rate"
            )
        self.taken += 1
        ended = self.taken >= self.length
        if ended.any():
            self.success = ended & succeeded(problem, torch.stack(list(self.recent)), theta).numpy()
        else:
            self.success = ended
        return reward.double().numpy(), ended

    @property
    def information(self) -> dict[str, Array]:
        """Entries of INFORMATION, (N,) each: whether the episode has ended as a success, and the two terms of the cost
        over the last action. Minus their sum is the reward."""
        values = (self.success, self.state_cost.double().numpy(), self.action_cost.double().numpy())
        return dict(zip(INFORMATION, values, strict=True))


Observation = Literal["features", "state"]


def episode_actions(
    problem: Problem, start: StartDistribution, randomize: float, seconds: float | None, hold: int
) -> int:
    """Number of actions of an episode; see `solver.gym.environment.Episodes`.

    Raises SolverError for an argument out of range.
    """
    if start not in get_args(StartDistribution):
        raise SolverError(f"start is {start!r}; choices are {', '.join(get_args(StartDistribution))}")
    if not is_number(randomize) or not 0.0 <= randomize < 1.0:
        raise SolverError(f"randomize is {randomize!r}; give a share of the nominal parameters, in [0, 1)")
    task = problem.robot.metadata.task
    length = problem.horizon if seconds is None else seconds
    if not is_number(length) or not 0.0 < length < math.inf:
        raise SolverError(f"seconds is {seconds!r}; give a positive length of an episode")
    periods = round(length * task.control_rate)
    if not is_whole(hold) or not 1 <= hold <= periods:
        raise SolverError(
            f"hold is {hold!r}, and an episode has {periods} control periods of {problem.control_step:g} s; give "
            "hold an integer from 1 to the number of control periods"
        )
    return math.ceil(periods / hold)


def require_observation(observation: object) -> None:
    """Raises SolverError unless the observation is one that environments make."""
    if observation not in get_args(Observation):
        raise SolverError(f"observation is {observation!r}; choices are {', '.join(get_args(Observation))}")


def features(problem: Problem, x: Tensor) -> Tensor:
    """Features (N, k) in [-1, 1] of the states x (N, n), or of their positions (N, q).

    A continuous angle becomes its cosine and sine, a quaternion the nine entries of its rotation matrix. Every other
    state is divided by its limit.
    """
    columns: list[Tensor] = []
    metadata = problem.robot.metadata
    matrices = {rotation.coordinate: rotation.quaternion for rotation in metadata.rotations}
    for i, limit in enumerate(problem.state_limits[: x.shape[1]]):
        if i in matrices:
            columns += matrix(x[:, matrices[i]]).unbind(1)
        elif i not in metadata.turning:
            wraps = i in problem.continuous
            columns += [torch.cos(x[:, i]), torch.sin(x[:, i])] if wraps else [(x[:, i] / limit).clamp(-1.0, 1.0)]
    return torch.stack(columns, 1)


def feature_scales(problem: Problem, position: float, rate: float) -> list[float]:
    """Factors (k,) of `features` for a network: 1 for cosines and sines, `position` or `rate` for other states."""
    scales, metadata = [], problem.robot.metadata
    first = {rotation.coordinate for rotation in metadata.rotations}
    for i, state in enumerate(metadata.states):
        if i in metadata.turning:
            scales += [1.0] * ENTRIES if i in first else []
            continue
        scales += [1.0, 1.0] if i in problem.continuous else [position if state.kind == "position" else rate]
    return scales
