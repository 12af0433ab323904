"""A trained run, loaded: its problem, its value function and its policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.policies import require_reaction_periods
from solver.plants.rollouts import Controller, controller
from solver.problem.problem import Problem
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs.shipped import run_folder
from solver.training.networks import make_ensemble
from solver.training.presets import make_settings
from solver.training.run import Run, load_run, load_run_checkpoint
from solver.training.settings import ADVERSARY
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

#: Settings that do not change the policy.
WITHOUT_EFFECT = ("seed", "device", "episodes", "evaluate_every", "threads")


@dataclass(frozen=True)
class Solution:
    """A trained run, ready to evaluate: the nominal problem and the value function that the training kept."""

    run: Run
    problem: Problem
    ensemble: Ensemble
    value: FrozenValue
    iteration: int  # of the last checkpoint

    def controller(self) -> Controller:
        """The run's policy."""
        return controller(self.problem, self.value.sparing, self.run.settings.reaction_periods)

    @property
    def label(self) -> str:
        """The label of the run, and where the training stopped before its end."""
        text, settings = label(self.run, self.problem.robot), self.run.settings
        if self.iteration == settings.iterations:
            return text
        return f"{text} (after {self.iteration} of {settings.iterations} iterations)"


def load_solution(folder: str | Path, generated: str | None = None, reaction_periods: float | None = None) -> Solution:
    """Read a run folder, or a policy that ships with the package, by its name.

    generated: the folder of artifacts when it has moved.

    reaction_periods: as in `Settings`, where the policy is to take another value than in training.
    Raises SolverError for a folder that holds no run, a damaged checkpoint, or another artifact.
    """
    folder = run_folder(folder)
    run, checkpoint = load_run(folder), load_run_checkpoint(folder)
    robot = load_robot(run.robot, "cpu", generated or run.generated, nominal=run.nominal)
    require_same_artifact(folder, run.artifact_hash, robot)
    if reaction_periods is not None:
        require_reaction_periods(reaction_periods)
        run = replace(run, settings=replace(run.settings, reaction_periods=float(reaction_periods)))
    kept = checkpoint["best"] or checkpoint  # none before the first evaluation
    ensemble = make_ensemble(robot, run.settings)
    try:
        ensemble.load_state_dict(kept["ensemble"])
    except (RuntimeError, KeyError, TypeError) as error:
        raise SolverError(
            f"the checkpoint in {folder} does not fit the settings in its run.json: {' '.join(str(error).split())}"
        ) from error
    return Solution(
        run, Problem(robot, identified=run.identified), ensemble, FrozenValue(ensemble), checkpoint["iteration"]
    )


def label(run: Run, robot: CompiledRobot) -> str:
    """Robot, algorithm and preset, and every setting that differs from the preset's and may change the policy."""
    usual = make_settings(run.preset, robot, algorithm=run.settings.algorithm)
    words = [run.robot, run.settings.algorithm, run.preset]
    if run.identified:
        words.append(f"identified={Path(run.identified.source).name}")
    idle = {*WITHOUT_EFFECT, *(ADVERSARY if run.settings.algorithm == "cfvi" else ())}
    for name, value in vars(run.settings).items():
        if name not in idle and value != getattr(usual, name):
            words.append(f"{name}={_in_words(value)}")
    return " ".join(words)


def _in_words(value: Any) -> str:
    """A setting as a label shows it."""
    if isinstance(value, dict):
        return ",".join(f"{name}:{number:g}" for name, number in value.items())
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
