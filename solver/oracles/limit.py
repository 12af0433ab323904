"""The limit of a task from its mean start, and how far a trained policy stays behind it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import modelgen
from solver.errors import SolverError
from solver.oracles.trajectory import Guess, NonlinearProgram, Trajectory, idle, random_motions, straight
from solver.plants.nominal import Nominal
from solver.plants.outcome import succeeded
from solver.plants.rollouts import Controller, rollouts
from solver.problem.parameters import changed_parameters
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.kinds import kind_in, load_controller


@dataclass(frozen=True)
class Limit:
    """The best motion that the searches found, and the return of a run from the same start."""

    robot: str
    parameters: dict[str, float]
    best: Trajectory
    solved: int  # guesses that led to a local optimum
    guesses: int
    at_target: bool  # by the evaluation's own measure of success
    label: str | None = None
    run_return: float | None = None

    @property
    def gap(self) -> float | None:
        """The return that the run loses to the limit. Negative when no search found a motion as good as the run's."""
        return None if self.run_return is None else self.best.reward - self.run_return

    def results(self) -> dict[str, Any]:
        """The content of `solver limit --json`: everything but the motion."""
        about = {"limit": self.best.reward, "guess": self.best.guess, "solved": self.solved, "guesses": self.guesses}
        about["at_target"] = self.at_target
        if self.run_return is not None:
            about |= {"label": self.label, "run_return": self.run_return, "gap": self.gap}
        return about


def find_limit(subject: str, changes: list[str], guesses: int, seed: int, generated: str | None = None) -> Limit:
    """Find the limit for a robot's name or a run folder; changes: as `solver evaluate --set` takes them.

    Raises SolverError for an unknown run, a start beyond the state limits, and when no guess leads to a motion within
    the limits.
    """
    act: Controller | None = None
    label = None
    if kind_in(subject) is not None:
        problem, act, label = load_controller(subject, generated)
        folder: str | Path | None = problem.robot.folder.parent
    elif Path(subject).is_dir() and "/" in subject:
        raise SolverError(f"{subject} is not a run folder; give one that `solver train` wrote, or the name of a robot")
    else:
        problem, folder = Problem(load_robot(subject, "cpu", generated)), generated
    theta = changed_parameters(problem, changes)
    program = NonlinearProgram(
        modelgen.load(problem.robot.name, backend="casadi", directory=folder),
        theta.double().numpy() if changes else None,
    )
    found = [idle(program), straight(program), *random_motions(program, guesses, seed)]
    run_return = None
    if act is not None:
        own, run_return = _own_motion(program, problem, act, theta)
        found.insert(0, own)
    motions = [motion for motion in map(program.solve, found) if motion is not None]
    if not motions:
        raise SolverError(
            f"none of {len(found)} searches found a motion of {problem.robot.name} within its limits. Widen the state "
            "limits in the model file, raise its control_rate, or look further with --guesses."
        )
    best = max(motions, key=lambda motion: motion.reward)
    motion = problem.confine(torch.tensor(best.x, dtype=torch.float32))
    names = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    at_target = bool(succeeded(problem, motion[:, None])[0])
    return Limit(problem.robot.name, names, best, len(motions), len(found), at_target, label, run_return)


def _own_motion(
    program: NonlinearProgram, problem: Problem, act: Controller, theta: torch.Tensor
) -> tuple[Guess, float]:
    """A policy's rollout from the mean start as a guess, with its angles unwrapped, and its return."""
    start = torch.tensor(program.start[None], dtype=torch.float32)
    result = rollouts(problem, act, problem.confine(start), Nominal(problem, theta))
    x = result.x[:, 0].double().numpy()
    for i in problem.continuous:
        x[:, i] = np.unwrap(x[:, i])
        x[:, i] += 2.0 * np.pi * np.round((program.start[i] - x[0, i]) / (2.0 * np.pi))
    return Guess("the run's own motion", x, result.u[:, 0].double().numpy()), float(result.returns[0])
