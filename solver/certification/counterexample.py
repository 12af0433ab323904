"""One rollout that can be played again: the file of the worst case."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from solver.certification.experiment import Experiment, roll_out
from solver.certification.reading import LARGEST
from solver.certification.specification import LONGEST, Conditions
from solver.errors import SolverError
from solver.plants.outcome import Rollouts
from solver.problem.problem import Problem
from solver.runs.folder import CHECKPOINT, write_text
from solver.runs.kinds import load_controller
from solver.runs.shipped import is_shipped, run_folder
from solver.streams import SEEDS


@dataclass(frozen=True)
class Counterexample:
    """A rollout alone: from `start` at `parameters`, and what came of it."""

    run: str  # the folder, absolute, or the name of a shipped policy
    robot: str
    checkpoint: str  # its SHA-256
    conditions: Conditions
    noise: int  # the seed of the plant's noise
    start: dict[str, float]
    parameters: dict[str, float]
    total: float  # the return
    success: bool

    @property
    def judgement(self) -> str:
        """By what its specification calls a failure, in words."""
        return "no failure" if self.success else "a failure"

    def result(self) -> dict[str, Any]:
        """The outcome, as reports have it."""
        return {
            "return": self.total,
            "success": self.success,
            "start": self.start,
            "parameters": self.parameters,
        }


def checkpoint_hash(run: str | Path) -> str:
    """The SHA-256 of a run's checkpoint. SolverError where it has none."""
    path = run_folder(run) / CHECKPOINT
    if not path.is_file():
        raise SolverError(f"{run} holds no {CHECKPOINT}: training has not finished its first iteration.")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def play(run: str | Path, experiment: Experiment, x: Tensor, theta: Tensor, noise: int) -> Counterexample:
    """Roll out one start (n,) at theta (p,), alone: in a batch the last digits may be others."""
    told, robot = experiment.specification, experiment.problem.robot
    result = roll_out(experiment.problem, experiment.act, told.conditions, x[None], theta[None], noise)
    return Counterexample(
        run=str(run) if is_shipped(run) else str(Path(run).resolve()),
        robot=robot.name,
        checkpoint=checkpoint_hash(run),
        conditions=told.conditions,
        noise=noise,
        start=dict(zip(robot.state_names, x.tolist(), strict=True)),
        parameters=dict(zip(robot.parameter_names, theta.tolist(), strict=True)),
        total=float(result.returns[0]),
        success=not bool(told.failure.judge(result)[0]),
    )


def replay(found: Counterexample, generated: str | None = None) -> tuple[Problem, Rollouts]:
    """The rollout once more. SolverError where the run's checkpoint or the robot are others today."""
    problem, act, _ = load_controller(found.run, generated)
    if checkpoint_hash(found.run) != found.checkpoint:
        raise SolverError(
            f"{found.run} has another checkpoint than when the counterexample was found; certify it again"
        )
    robot = problem.robot
    if (robot.name, [*robot.state_names], [*robot.parameter_names]) != (
        found.robot,
        [*found.start],
        [*found.parameters],
    ):
        raise SolverError(f"the counterexample is of another robot than {found.run}; certify it again")
    x, theta = (torch.tensor([list(each.values())], dtype=torch.float32) for each in (found.start, found.parameters))
    return problem, roll_out(problem, act, found.conditions, x, theta, found.noise)


def save(path: Path, found: Counterexample) -> None:
    """Write the file. Raises SolverError when it cannot be written."""
    write_text(path, json.dumps(dataclasses.asdict(found), indent=2, allow_nan=False) + "\n")


def load(path: Path) -> Counterexample:
    """Read the file. Raises SolverError for one that `solver certify` did not write."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        conditions = Conditions(**{**content["conditions"], "effects": tuple(content["conditions"]["effects"])})
        found = Counterexample(**{**content, "conditions": conditions})
        _check(found)
    except OSError as error:
        raise SolverError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SolverError(f"{path} is no counterexample of `solver certify`: {error}") from error
    return found


def _check(found: Counterexample) -> None:
    """Raise ValueError for an entry of another type."""
    numbers = [found.total, *found.start.values(), *found.parameters.values()]
    if not all(type(each) in (int, float) and abs(each) <= LARGEST for each in numbers):
        raise ValueError("a number is missing or not finite")
    conditions = found.conditions
    seconds, texts = conditions.horizon, (found.run, found.robot, found.checkpoint, conditions.plant)
    if type(seconds) not in (int, float) or not 0.0 < seconds <= LONGEST:
        raise ValueError("its horizon is no length of time")
    if type(found.noise) is not int or not 0 <= found.noise < SEEDS or type(conditions.observer) is not bool:
        raise ValueError("noise or observer has the wrong type")
    if not all(isinstance(each, str) for each in (*texts, *conditions.effects)):
        raise ValueError("an entry must be text")
