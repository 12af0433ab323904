"""What trajectory optimisation says of a task before minutes of training: whether a motion to its target is found, what
it is worth beside a robot that does nothing, and which limits it leans on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import torch

import modelgen
from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.oracles.search import PUMPS, coarse_hold, pumped, random_motions, straight
from solver.oracles.starts import design
from solver.oracles.trajectory import NonlinearProgram, Trajectory
from solver.plants.outcome import succeeded
from solver.plants.rollouts import rollouts, without_input
from solver.problem.problem import Problem

GUESSES, SEED = 12, 0  # random motions at most
GAIN = 0.02  # of what the idle robot pays, that a motion must save to be worth it
NOTHING = 1e-6  # a cost that counts as none
LEANS, AT_LIMIT = 0.05, 0.99  # share of the horizon with a state above this share of its limit


@dataclass(frozen=True)
class Preview:
    """The best motion found from the mean start."""

    robot: CompiledRobot
    seconds: float  # of the search
    idle_return: float
    costs: tuple[float, float]  # in a second: of the state at the mean start, of every input at half of its limit
    best: Trajectory | None = None
    at_target: bool = False  # by the evaluation's own measure

    def text(self) -> str:
        """One line for the terminal, where there is a motion to the target."""
        if self.best is None or not (self.at_target and self.worth):
            return ""
        returns = [f"{value + 0.0:.4g}" for value in (self.best.reward, self.idle_return)]
        return (
            f"a motion to the target returns {returns[0]} from the mean start, the robot without input {returns[1]} "
            f"(found in {self.seconds:.0f} s; `solver limit {self.robot.name}` looks for the best)"
        )

    def warnings(self) -> list[str]:
        """A paragraph for each thing that speaks against the task."""
        return [text for text in (self._no_motion(), *self._leaning()) if text]

    def _no_motion(self) -> str:
        horizon = self.robot.metadata.task.horizon
        remedies = (
            f"If the training does not get there either, the target is out of reach within {horizon:g} s, or not worth "
            "its cost: lengthen the horizon, raise an input limit or a rate limit, or lower the action cost (a second "
            f"at half of the input limits costs {self.costs[1]:.3g}, one at the start {self.costs[0]:.3g}). "
            f"`solver limit {self.robot.name} --guesses 40` looks further."
        )
        if self.best is None or not self.worth:
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
    def worth(self) -> bool:
        """Whether the motion saves something, or the robot begins where nothing is to be saved."""
        least = self.idle_return + GAIN * abs(self.idle_return)
        return self.best is not None and self.best.reward >= min(least, -NOTHING)

    def _leaning(self) -> list[str]:
        """Limits that bind on the way: the policy has to steer along them."""
        if self.best is None:
            return []
        states, horizon = self.robot.metadata.states, self.robot.metadata.task.horizon
        limits = np.array([np.inf if state.continuous else state.limit for state in states])
        share = (np.abs(self.best.x) > AT_LIMIT * limits).mean(0)
        return [
            f"the best motion found keeps {states[i].name} at its limit of {states[i].limit:g} {states[i].unit} for "
            f"{share[i] * horizon:.2g} s. A policy learns to steer along a limit with difficulty: raise it "
            "in the model file, if the robot allows it."
            for i in np.flatnonzero(share > LEANS)
        ]


def preview(robot: CompiledRobot, seconds: float) -> Preview:
    """Search for a motion to the target that is worth its cost, for so many seconds of processor time.

    robot: of any backend, with the nominal parameters of the training. It may take half as long again: a search from
    one guess that has begun goes on, for at most that long. Raises ModelError where the artifact's CasADi functions may
    not be loaded, SolverError for a mean start beyond a limit.
    """
    begun = time.process_time()
    metadata, nominal = robot.metadata, [each.value for each in robot.metadata.parameters]
    hold = coarse_hold(robot)
    program = NonlinearProgram(
        modelgen.load(robot.name, backend="casadi", directory=robot.folder.parent).with_nominal(nominal),
        hold=hold,
        patience=seconds / 2.0,
    )
    problem, start = Problem(robot), design(metadata, 1)[0]
    begin = problem.confine(torch.tensor(start[None], dtype=torch.float32))
    resting = float(rollouts(problem, without_input(problem), begin).returns)
    costs = float(problem.state_cost(begin)), float(problem.action_cost.cost(_half_input(problem)))
    found = Preview(robot, 0.0, resting, costs)
    swings = (pumped(program, start, share) for share in PUMPS)
    random = random_motions(program, start, GUESSES, SEED)
    for guess in (straight(program, start), *chain(*zip(random, swings, strict=False)), *random[len(PUMPS) :]):
        motion = program.solve(start, guess)
        if motion is not None and (found.best is None or motion.reward > found.best.reward):
            at_target = _arrives(problem, motion.x.repeat(hold, axis=0))
            found = replace(found, best=motion, at_target=at_target)
        over = time.process_time() - begun
        if over > seconds or (found.at_target and found.worth):
            break
    return replace(found, seconds=over)


def _half_input(problem: Problem) -> torch.Tensor:
    """Inputs (1, m) half of the way from the trim to the limits that are farther from it."""
    far = torch.where(problem.input_middle >= problem.trim, problem.upper_input, problem.lower_input)
    return (problem.trim + 0.5 * (far - problem.trim))[None]


def _arrives(problem: Problem, x: Array) -> bool:
    """Whether a motion x (K, n), with a state for every control period, is a success."""
    return bool(succeeded(problem, problem.confine(torch.tensor(x, dtype=torch.float32))[:, None])[0])


def previewed(robot: CompiledRobot, seconds: float) -> tuple[str, list[str]]:
    """The line and the warnings of a preview; nothing for 0 seconds, and a warning where it cannot be made."""
    if seconds == 0.0:
        return "", []
    try:
        found = preview(robot, seconds)
    except (ModelError, SolverError) as error:
        return "", [f"the task is not previewed: {error}"]
    return found.text(), found.warnings()
