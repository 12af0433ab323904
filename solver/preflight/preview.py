"""Preview of a task by trajectory optimisation, before minutes of training.

It shows whether there is a motion to the target, its return compared with the idle robot's, and the limits it reaches.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch

from modelgen.arrays import Array
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.oracles.search import PUMPS, coarse_hold, pumped, random_motions, straight
from solver.oracles.trajectory import NonlinearProgram, Trajectory, design
from solver.plants.outcome import rollouts, succeeded, without_input
from solver.problem.problem import Problem

GUESSES, SEED = 12, 0  # random motions at most
GAIN = 0.02  # least gain of a useful motion, as a share of the idle robot's cost
NOTHING = 1e-6  # a cost below this is zero
LEANS, AT_LIMIT = 0.05, 0.99  # share of the horizon with a state above this share of its limit


@dataclass(frozen=True)
class Preview:
    """Best motion from the mean start that the search found."""

    robot: CompiledRobot
    seconds: float  # of the search
    idle_return: float
    costs: tuple[float, float]  # per second: of the mean start, and of all inputs at half of their limits
    best: Trajectory | None = None
    at_target: bool = False  # by the success criterion of evaluations

    def text(self) -> str:
        """One line for the terminal. Empty if there is no useful motion to the target."""
        if self.best is None or not (self.at_target and self.is_useful):
            return ""
        returns = [f"{value + 0.0:.4g}" for value in (self.best.reward, self.idle_return)]
        return (
            f"a motion to the target returns {returns[0]} from the mean start, the robot without input {returns[1]} "
            f"(found in {self.seconds:.0f} s; `solver limit {self.robot.name}` looks for the best)"
        )

    def warnings(self) -> list[str]:
        """Warnings, a paragraph each."""
        return [text for text in (self._no_motion(), *self._leaning()) if text]

    def _no_motion(self) -> str:
        horizon = self.robot.metadata.task.horizon
        remedies = (
            f"If the training does not reach it either, the target is out of reach within {horizon:g} s, or too "
            "expensive: lengthen the horizon, raise an input limit or a rate limit, or lower the action cost (a second "
            f"at half of the input limits costs {self.costs[1]:.3g}, a second at the start {self.costs[0]:.3g}). "
            f"`solver limit {self.robot.name} --guesses 40` searches longer."
        )
        if self.best is None or not self.is_useful:
            return (
                f"a search of {self.seconds:.0f} s found no motion from the mean start that costs less than doing "
                f"nothing, which returns {self.idle_return:.4g}. {remedies}"
            )
        if not self.at_target:
            return (
                f"the best motion that a search of {self.seconds:.0f} s found from the mean start does not end at the "
                f"target: it returns {self.best.reward:.4g}, and doing nothing {self.idle_return:.4g}. {remedies}"
            )
        return ""

    @property
    def is_useful(self) -> bool:
        """Whether the motion costs less than the idle robot, or the idle robot costs nothing."""
        least = self.idle_return + GAIN * abs(self.idle_return)
        return self.best is not None and self.best.reward >= min(least, -NOTHING)

    def _leaning(self) -> list[str]:
        """Warnings of states that stay at their limit during the motion."""
        if self.best is None:
            return []
        states, horizon = self.robot.metadata.states, self.robot.metadata.task.horizon
        limits = np.array([np.inf if state.continuous else state.limit for state in states])
        share = (np.abs(self.best.x) > AT_LIMIT * limits).mean(0)
        return [
            f"the best motion found keeps {states[i].name} at its limit of {states[i].limit:g} {states[i].unit} for "
            f"{share[i] * horizon:.2g} s. A policy learns to steer along a limit with difficulty: raise "
            "the limit in the model file if the robot allows it."
            for i in np.flatnonzero(share > LEANS)
        ]


def preview(robot: CompiledRobot, seconds: float) -> Preview:
    """Search for a motion to the target that costs less than the idle robot.

    robot: of any backend, with the nominal parameters of the training. seconds: of processor time; the last search may
    take half as long again. Raises SolverError for a mean start beyond a limit.
    """
    begun = time.process_time()
    hold = coarse_hold(robot)
    program = NonlinearProgram(robot.with_kernels("casadi"), hold=hold, patience=seconds / 2.0)
    problem, start = Problem(robot), design(robot.metadata, 1)[0]
    begin = problem.confine(torch.tensor(start[None], dtype=torch.float32))
    resting = float(rollouts(problem, without_input(problem), begin).returns)
    costs = float(problem.state_cost(begin)), float(problem.action_cost.cost(_half_input(problem)))
    result = Preview(robot, 0.0, resting, costs)
    swings = (pumped(program, start, share) for share in PUMPS)
    random = random_motions(program, start, GUESSES, SEED)
    for guess in (straight(program, start), *chain(*zip(random, swings, strict=False)), *random[len(PUMPS) :]):
        motion = program.solve(start, guess)
        if motion is not None and (result.best is None or motion.reward > result.best.reward):
            at_target = _arrives(problem, motion.x.repeat(hold, axis=0))
            result = replace(result, best=motion, at_target=at_target)
        over = time.process_time() - begun
        if over > seconds or (result.at_target and result.is_useful):
            break
    return replace(result, seconds=over)


def _half_input(problem: Problem) -> torch.Tensor:
    """Inputs (1, m) half of the way from the trim to the limits that are farther from it."""
    far = torch.where(problem.input_middle >= problem.trim, problem.upper_input, problem.lower_input)
    return (problem.trim + 0.5 * (far - problem.trim))[None]


def _arrives(problem: Problem, x: Array) -> bool:
    """Whether a motion x (K, n), one state a control period, is a success."""
    return bool(succeeded(problem, problem.confine(torch.tensor(x, dtype=torch.float32))[:, None])[0])


def previewed(robot: CompiledRobot, seconds: float) -> tuple[str, list[str]]:
    """Line and warnings of a preview: both empty for 0 seconds, and a warning if the search is not possible."""
    if seconds == 0.0:
        return "", []
    try:
        result = preview(robot, seconds)
    except SolverError as error:
        return "", [f"no preview of the task: {error}"]
    return result.text(), result.warnings()
