"""Baselines from Stable-Baselines3 on the same dynamics, starts and evaluation as the solver's own policies.

Training runs in segments of `evaluate_every` actions. Every segment starts new episodes and seeds all random streams
by (seed, actions so far), which are thereby the whole random state: a resumed run repeats an uninterrupted one bit for
bit.
"""

from __future__ import annotations

import dataclasses
import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from solver.baselines.settings import BaselineSettings
from solver.baselines.stable_baselines import contents, fill, make_model
from solver.errors import DivergenceError, SolverError
from solver.fvi.run_folder import (
    BASELINE,
    MODEL,
    MetricsLog,
    check_words,
    load_checkpoint,
    remove_run,
    require_free,
    save_checkpoint,
    write_atomically,
)
from solver.fvi.trainer import Report
from solver.gym.environment import RobotVectorEnv, features
from solver.plants.rollouts import Controller, rollouts, sample_starts, summary
from solver.problem.problem import Problem
from solver.problem.robots import require_same_artifact
from solver.serial import serial_torch
from solver.streams import EVALUATION_SEED, Purpose, stream

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

KEYS = ("steps", "return_mean")  # what every row of metrics.jsonl holds; the first counts
PARTS = ("steps", "artifact_hash", "parameters", "buffer")


@dataclass(frozen=True)
class Baseline:
    """What baseline.json says of a run."""

    robot: str
    artifact_hash: str
    generated: str | None  # the folder that held the artifact, when one was named
    settings: BaselineSettings

    def __post_init__(self) -> None:
        """TypeError where a name is none."""
        check_words(robot=self.robot, artifact_hash=self.artifact_hash)
        check_words(generated="" if self.generated is None else self.generated)


def start(
    robot: str,
    settings: BaselineSettings,
    folder: Path,
    generated: str | None,
    report: Report,
    overwrite: bool = False,
) -> None:
    """Train a new baseline in `folder`. SolverError when the folder already holds a run that may not be replaced."""
    require_free(folder, "baseline", overwrite)
    environments = _environments(robot, settings, generated)
    run = Baseline(robot, environments.problem.robot.hash, generated, settings)
    text = json.dumps(dataclasses.asdict(run), indent=2) + "\n"
    model = make_model(settings, environments, settings.steps)
    remove_run(folder)  # only now that the new run can start
    write_atomically(folder / BASELINE, lambda stream: stream.write(text.encode()))
    _save(folder, model, run)
    _train(folder, model, environments.problem, run, report)


def resume(folder: Path, report: Report) -> None:
    """Go on where the folder's checkpoint stands, with the run's own settings."""
    run = load_baseline(folder)
    environments = _environments(run.robot, run.settings, run.generated)
    require_same_artifact(folder, run.artifact_hash, environments.problem.robot)
    model = make_model(run.settings, environments, run.settings.steps)
    _restore(model, load_checkpoint(folder, keys=PARTS))
    _train(folder, model, environments.problem, run, report)


def load_baseline(folder: Path) -> Baseline:
    """Read baseline.json; SolverError when the folder holds none that can be read."""
    path = folder / BASELINE
    if not path.is_file():
        raise SolverError(f"{folder} holds no {BASELINE}. Give the folder that `solver baseline` wrote.")
    try:
        content = json.loads(path.read_text())
        settings = content.pop("settings")
        for entry in dataclasses.fields(BaselineSettings):  # a default may be another by now
            if entry.name not in settings:
                raise KeyError(f"it does not state {entry.name}")
        return Baseline(settings=BaselineSettings(**settings), **content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}). Train again into a new folder."
        ) from error


def load_controller(folder: str | Path, generated: str | None = None) -> tuple[Problem, Controller, str]:
    """The nominal problem of a baseline's robot, its deterministic policy, and its name in tables.

    Weights only are read from the checkpoint; nothing is unpickled. SolverError as for the solver's own runs.
    """
    folder = Path(folder)
    run = load_baseline(folder)
    environments = _environments(run.robot, run.settings, generated or run.generated)
    require_same_artifact(folder, run.artifact_hash, environments.problem.robot)
    model = make_model(run.settings, environments, steps=1)
    _restore(model, {**load_checkpoint(folder, keys=PARTS), "buffer": None})
    text = f"{run.robot} {run.settings.label}"
    if model.num_timesteps < run.settings.steps:
        text += f" (after {model.num_timesteps} of {run.settings.steps} actions)"
    return environments.problem, controller(environments.problem, model), text


def controller(problem: Problem, model: BaseAlgorithm) -> Controller:
    """The deterministic policy of a model, in physical states and inputs, with the cost of its input.

    NaN for states that are not finite, which the model itself would refuse.
    """

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        finite = torch.isfinite(x).all(1, keepdim=True)
        action, _ = model.predict(features(problem, torch.where(finite, x, 0.0)).numpy(), deterministic=True)
        u = torch.where(finite, torch.from_numpy(action) * problem.input_limits, torch.nan)
        return u, problem.action_cost.cost(u)

    return act


def _environments(robot: str, settings: BaselineSettings, generated: str | None) -> RobotVectorEnv:
    """The training environments; SolverError for a segment that would cut every episode short."""
    s = settings
    share = s.randomize_share if s.randomize else 0.0
    environments = RobotVectorEnv(
        robot, s.environments, start=s.start, randomize=share, hold=s.hold, generated=generated
    )
    least = s.environments * environments.episodes.length
    if s.evaluate_every < least:
        raise SolverError(
            f"setting evaluate_every is {s.evaluate_every}, and episodes start anew after every evaluation: give at "
            f"least {least}, one episode of {environments.episodes.length} actions in each of the "
            f"{s.environments} environments, or fewer --environments"
        )
    return environments


def _train(folder: Path, model: BaseAlgorithm, problem: Problem, run: Baseline, report: Report) -> None:
    """Segments to the end; metrics and a checkpoint after each."""
    s = run.settings
    x = sample_starts(problem, s.episodes, EVALUATION_SEED)
    try:
        with closing(MetricsLog(folder, model.num_timesteps + 1, KEYS)) as log, serial_torch():
            while model.num_timesteps < s.steps:
                started = time.perf_counter()
                _learn(model, min(s.evaluate_every, s.steps - model.num_timesteps), s)
                row = {"steps": float(model.num_timesteps), "seconds": time.perf_counter() - started}
                losses = model.logger.name_to_value.items()
                row |= {name.removeprefix("train/"): float(v) for name, v in losses if name.startswith("train/")}
                row |= summary(rollouts(problem, controller(problem, model), x))
                log.write(row)
                _save(folder, model, run)
                report(row)
    except OSError as error:
        raise SolverError(
            f"cannot write metrics to {folder}: {error}. The last checkpoint is whole: free some space and go on "
            f"with `solver baseline --resume {folder}`."
        ) from error


def _learn(model: BaseAlgorithm, steps: int, settings: BaselineSettings) -> None:
    """One segment; DivergenceError when it leaves weights that are not finite."""
    seed = stream(settings.seed, model.num_timesteps, Purpose.STATES) % 2**32
    assert model.env is not None
    model.set_env(model.env, force_reset=True)
    model.set_random_seed(seed)
    rate = settings.learning_rate * (1.0 - 0.9 * model.num_timesteps / settings.steps)
    model.lr_schedule = lambda _: rate
    failure: Exception | None = None
    try:
        model.learn(steps, log_interval=2**62, reset_num_timesteps=False)
    except (SolverError, ValueError) as error:  # weights that are not finite are noticed by the environment or by Torch
        failure = error
    finite = all(bool(torch.isfinite(each).all()) for each in model.policy.parameters())
    if finite and isinstance(failure, SolverError):
        raise failure
    if failure or not finite:
        raise DivergenceError(
            f"{settings.algorithm} diverged after {model.num_timesteps} actions: its weights are not finite"
            f"{f' ({failure})'.splitlines()[0] if failure else ''}. Train again with a smaller --learning-rate than "
            f"{settings.learning_rate:g}. The last checkpoint is kept."
        ) from failure


def _save(folder: Path, model: BaseAlgorithm, run: Baseline) -> None:
    """The checkpoint, and the model as Stable-Baselines3 saves it, for other programs."""
    write_atomically(folder / MODEL, lambda stream: model.save(stream))  # type: ignore[arg-type]
    finished = model.num_timesteps >= run.settings.steps
    content = {"steps": model.num_timesteps, "artifact_hash": run.artifact_hash, **contents(model)}
    save_checkpoint(folder, content if not finished else {**content, "buffer": None})


def _restore(model: BaseAlgorithm, content: dict[str, Any]) -> None:
    """The inverse of `_save`; SolverError when the checkpoint was made with other settings."""
    try:
        fill(model, content)
        model.num_timesteps = content["steps"]
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SolverError(
            f"the checkpoint does not fit the settings in {BASELINE}, which was edited; put the old settings back "
            f"or train again ({' '.join(str(error).split())})"
        ) from error
