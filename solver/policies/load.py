"""Trained policies and value functions as plain NumPy functions, for tests on a robot and for other programs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.fvi.initial_value import make_ensemble
from solver.fvi.presets import make_settings
from solver.fvi.renamed import warn_of_renamed
from solver.fvi.run_folder import BASELINE, Run, load_checkpoint, load_run
from solver.fvi.settings import ADVERSARY
from solver.game.held_input_policy import require_reaction_periods
from solver.plants.rollouts import Controller, controller
from solver.problem.problem import Problem
from solver.problem.robots import load_robot, require_same_artifact
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

WITHOUT_EFFECT = (
    "seed",
    "chunk",
    "device",
    "backend",
    "episodes",
    "evaluate_every",
    "threads",
)  # on what a policy is like


@dataclass(frozen=True)
class Solution:
    """A trained run, ready to evaluate: the nominal problem and the value function of its last checkpoint."""

    run: Run
    problem: Problem
    ensemble: Ensemble
    value: FrozenValue
    iteration: int

    def controller(self) -> Controller:
        """The run's policy."""
        return controller(self.problem, self.value, self.run.settings.reaction_periods)


def load_solution(folder: str | Path, generated: str | None = None, reaction_periods: float | None = None) -> Solution:
    """Read a run folder. `generated` names the folder of artifacts when it has moved.

    reaction_periods: as in `Settings`, where the policy is to take another value than in training.
    Raises SolverError for a folder that holds no run, a damaged checkpoint, or another artifact.
    """
    folder = Path(folder)
    run = load_run(folder)
    robot = load_robot(run.robot, "cpu", generated or run.generated)
    require_same_artifact(folder, run.artifact_hash, robot)
    if reaction_periods is not None:
        require_reaction_periods(reaction_periods)
        run = replace(run, settings=replace(run.settings, reaction_periods=float(reaction_periods)))
    checkpoint = load_checkpoint(folder)
    ensemble = make_ensemble(robot, run.settings)
    try:
        ensemble.load_state_dict(checkpoint["ensemble"])
    except (RuntimeError, KeyError, TypeError) as error:
        raise SolverError(
            f"the checkpoint in {folder} does not fit the settings in its run.json: {str(error).splitlines()[0]}"
        ) from error
    return Solution(run, Problem(robot), ensemble, FrozenValue(ensemble), checkpoint["iteration"])


def load_controller(
    folder: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> tuple[Problem, Controller, str]:
    """Whatever a run folder holds as something to roll out: the nominal problem, the controller, and a label.

    reaction_periods: as in `load_solution`; SolverError for a baseline, which has no V.

    The label says all that was chosen but the seed, and where the training stopped before its end: runs that differ by
    their seeds only have the same. A folder with
    a baseline.json is read by `solver.baselines.runs.load_controller`, which returns the same. Raises as
    `load_solution`.
    """
    if (Path(folder) / BASELINE).is_file() and reaction_periods is None:
        from solver.baselines import runs  # needs Stable-Baselines3

        return runs.load_controller(folder, generated)
    solution = load_solution(folder, generated, reaction_periods)
    text = label(solution.run, solution.problem.robot)
    if solution.iteration < solution.run.settings.iterations:
        text += f" (after {solution.iteration} of {solution.run.settings.iterations} iterations)"
    return solution.problem, solution.controller(), text


def label(run: Run, robot: CompiledRobot) -> str:
    """Robot, algorithm and preset, and every setting that is not the preset's and may change the policy."""
    usual = make_settings(run.preset, robot, algorithm=run.settings.algorithm)
    words = [run.robot, run.settings.algorithm, run.preset]
    idle = {*WITHOUT_EFFECT, *(ADVERSARY if run.settings.algorithm == "cfvi" else ())}
    for name, value in vars(run.settings).items():
        if name not in idle and value != getattr(usual, name):
            words.append(f"{name}={' '.join(map(str, value)) if isinstance(value, tuple) else value}")
    return " ".join(words)


class Policy:
    """u = grad g~(B^T dV/dx), or that of `solver.game.held_input_policy`, as NumPy."""

    def __init__(self, solution: Solution) -> None:
        self._act = solution.controller()
        self._states = solution.problem.robot.state_names

    def __call__(self, x: ArrayLike) -> NDArray[np.float32]:
        """States (N, n) in SI units -> inputs (N, m), within the input limits. SolverError for another shape."""
        u: NDArray[np.float32] = self._act(_states(x, self._states))[0].numpy()
        return u


class Value:
    """V and dV/dx, as NumPy."""

    def __init__(self, solution: Solution) -> None:
        self._value = solution.value
        self._states = solution.problem.robot.state_names

    def __call__(self, x: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """States (N, n) -> V (N,), dV/dx (N, n). SolverError for another shape."""
        value, gradient = self._value(_states(x, self._states))
        return value.numpy(), gradient.numpy()


def _states(x: ArrayLike, names: tuple[str, ...]) -> torch.Tensor:
    array = np.array(x, dtype=np.float32, order="C")  # a copy: Torch takes no read-only array
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SolverError(
            f"x has shape {array.shape}; give (N, {len(names)}), one row a sample, columns {', '.join(names)}"
        )
    return torch.from_numpy(array)


def load_policy(
    folder: str | Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    *,
    sampled: float | None = None,
) -> Policy:
    """The policy of a run folder: `policy(x)` maps (N, n) to (N, m).

    reaction_periods: control periods that an input acts before the next one can, by default as in training; 0 is the
    closed form. sampled: its name in version 0.1, deprecated.
    """
    if sampled is not None:
        warn_of_renamed({"sampled": sampled})
        reaction_periods = sampled
    return Policy(load_solution(folder, generated, reaction_periods))


def load_value(folder: str | Path, generated: str | None = None) -> Value:
    """The value function of a run folder: `value(x)` gives V (N,) and dV/dx (N, n)."""
    return Value(load_solution(folder, generated))
