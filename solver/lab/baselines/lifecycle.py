"""Start, resume and load a baseline of Stable-Baselines3: the functions of `solver.runs.kinds.Training`.

A baseline has the dynamics, starts and evaluations of the solver's own policies. It trains in segments of
`evaluate_every` actions. Every segment starts new episodes and seeds all random streams by (seed, actions so far).
These two numbers are the whole random state, so a resumed run equals an uninterrupted one bit for bit.

The best policy at the end of a segment is kept: the policy with the most successes, then with the largest mean return.
These rollouts have other starts than the final evaluation.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from modelgen.files import replacing
from modelgen.loader import CompiledRobot
from solver.errors import DivergenceError, SolverError
from solver.gym.environment import RobotVectorEnv
from solver.lab.baselines.settings import (
    BASELINE,
    KEYS,
    MODEL,
    PARTS,
    BaselineRun,
    BaselineSettings,
    baseline_settings,
    load_baseline,
    new_run,
)
from solver.lab.baselines.stable_baselines import contents, fill, follow_schedules, make_model, renew_logger
from solver.local.linearization import linearization, time_scale
from solver.plants.episodes import features
from solver.plants.outcome import Controller, rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs import artifact
from solver.runs.folder import RUN, load_checkpoint, save_checkpoint
from solver.runs.kinds import RolloutPolicy
from solver.runs.metrics import Report, metrics_log
from solver.streams import EVALUATION_SEED, Purpose, serial_torch, stream

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

HOLDS = 4  # actions in a time scale of the robot, by default
LEAST_ACTIONS = 16  # in an episode: four time scales


@dataclass(frozen=True)
class BestPolicy:
    """Best policy so far: the one with the most successes, then with the largest mean return."""

    steps: int  # actions before it
    success_rate: float
    return_mean: float
    policy: dict[str, Tensor]  # weights of its networks, by name


def describe(robot: CompiledRobot, generated: str | None, algorithm: str = "sac", **choices: Any) -> BaselineRun:
    """Description of a new run with the defaults of an algorithm and some changed settings."""
    return new_run(robot, generated, baseline_settings(algorithm, **choices))


def start(run: BaselineRun, folder: Path, report: Report, robot: CompiledRobot | None = None) -> None:
    """Train a new baseline in `folder`. Replaces a run in it. robot: as in `solver.runs.kinds.Training.start`."""
    environments = _environments(run, folder, robot=robot)
    model = make_model(run.settings, environments, run.settings.steps)
    artifact.begin(folder, run, environments.problem.robot)  # after all errors of the new run
    untrained = BestPolicy(0, 0.0, -math.inf, _policy(model))
    _save(folder, model, run, untrained)
    _train(folder, model, environments, run, untrained, report)


def resume(folder: Path, report: Report) -> None:
    """Continue from the folder's checkpoint, with the run's own settings."""
    run = read(folder)
    environments = _environments(run, folder)
    model = make_model(run.settings, environments, run.settings.steps)
    best = _restore(model, load_checkpoint(folder, PARTS, results=run.results))
    _train(folder, model, environments, run, best, report)


def read(folder: Path) -> BaselineRun:
    """Content of baseline.json. Raises SolverError if it is missing or damaged."""
    return load_baseline(folder)


def diagnosis(folder: Path) -> str:  # noqa: ARG001
    """An empty text: there is no diagnosis of baselines."""
    return ""


def load_rollout_policy(
    folder: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> RolloutPolicy:
    """Nominal problem of a baseline's robot, the deterministic policy, and the run's label.

    Raises SolverError for `reaction_periods`, because a baseline has no value function.
    """
    folder = Path(folder)
    run = load_baseline(folder)
    if reaction_periods is not None:
        raise SolverError(f"{folder} holds a baseline, which has no value function; leave out --reaction-periods")
    environments = _environments(run, folder, generated)
    model = make_model(run.settings, environments, steps=1)
    best = _restore(model, {**load_checkpoint(folder, PARTS, results=run.results), "buffer": None})
    model.policy.load_state_dict(best.policy)
    problem, label = environments.problem, run.label_at(model.num_timesteps, "actions")
    return RolloutPolicy(problem, controller(problem, model, run.settings.input_share), label)


def controller(problem: Problem, model: BaseAlgorithm, input_share: float) -> Controller:
    """Deterministic policy of a model, in physical states and inputs, with the cost of its input.

    States that are not finite get the input NaN, because the model refuses them.
    """

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        finite = torch.isfinite(x).all(1, keepdim=True)
        action, _ = model.predict(features(problem, torch.where(finite, x, 0.0)).numpy(), deterministic=True)
        u = torch.where(finite, problem.input_of(input_share * torch.from_numpy(action)), torch.nan)
        return u, problem.action_cost.cost(u)

    return act


def _environments(
    run: BaselineRun, folder: Path, generated: str | None = None, robot: CompiledRobot | None = None
) -> RobotVectorEnv:
    """Training environments. Raises SolverError for another artifact and for a segment shorter than an episode."""
    s, robot = run.settings, robot or load_robot(run.robot, "cpu", generated or run.generated)
    hold, task = s.hold or usual_hold(robot), robot.metadata.task
    shortest = min(LEAST_ACTIONS * hold / task.control_rate, task.horizon)
    environments = RobotVectorEnv(
        run.robot,
        s.environments,
        start=s.start,
        target_share=s.target_share,
        randomize=s.randomize_share if s.randomize else 0.0,
        hold=hold,
        seconds=max(shortest, s.episode_share * task.horizon),
        generated=str(robot.folder.parent),
    )
    require_same_artifact(folder, run.artifact_hash, environments.problem.robot)
    least = s.environments * environments.episodes.length
    if s.evaluate_every < least:
        raise SolverError(
            f"setting evaluate_every is {s.evaluate_every}, and episodes start anew after every evaluation: give at "
            f"least {least}, one episode of {environments.episodes.length} actions in each of the "
            f"{s.environments} environments, or fewer --environments"
        )
    return environments


def usual_hold(robot: CompiledRobot) -> int:
    """Control periods in a quarter of a robot's time scale, at least one."""
    return max(1, round(time_scale(linearization(robot)) * robot.metadata.task.control_rate / HOLDS))


def _train(
    folder: Path, model: BaseAlgorithm, environments: RobotVectorEnv, run: BaselineRun, best: BestPolicy, report: Report
) -> None:
    """Train segments to the end, with metrics and a checkpoint after every segment."""
    s, problem, action_seconds = run.settings, environments.problem, environments.episodes.seconds
    x = sample_starts(problem, s.episodes, EVALUATION_SEED)
    selection = sample_starts(problem, s.episodes, stream(s.seed, 0, Purpose.SELECTION))
    with metrics_log(folder, model.num_timesteps + 1, KEYS, "baseline") as log, serial_torch():
        while model.num_timesteps < s.steps:
            started = time.perf_counter()
            _learn(model, min(s.evaluate_every, s.steps - model.num_timesteps), s, action_seconds)
            row = {"steps": float(model.num_timesteps), "seconds": time.perf_counter() - started}
            losses = model.logger.name_to_value.items()
            row |= {name.removeprefix("train/"): float(v) for name, v in losses if name.startswith("train/")}
            act = controller(problem, model, s.input_share)
            row |= summary(rollouts(problem, act, x))
            selected = summary(rollouts(problem, act, selection))
            rates = selected["success_rate"], selected["return_mean"]
            last = BestPolicy(model.num_timesteps, *rates, _policy(model))
            best = max(best, last, key=lambda each: (each.success_rate, each.return_mean))  # the older one if equal
            row["kept"] = float(best.steps)
            log.write(row)
            _save(folder, model, run, best)
            report(row)


def _learn(model: BaseAlgorithm, steps: int, settings: BaselineSettings, action_seconds: float) -> None:
    """Train one segment. Raises DivergenceError if the weights are not finite."""
    seed = stream(settings.seed, model.num_timesteps, Purpose.STATES) % 2**32
    assert model.env is not None
    model.set_env(model.env, force_reset=True)
    model.set_random_seed(seed)
    renew_logger(model)
    follow_schedules(model, settings, action_seconds)
    failure: Exception | None = None
    try:
        model.learn(steps, log_interval=2**62, reset_num_timesteps=False)
    except (SolverError, ValueError) as error:  # the environment or Torch refuses weights that are not finite
        failure = error
    finite = all(bool(torch.isfinite(weights).all()) for weights in model.policy.parameters())
    if finite and isinstance(failure, SolverError):
        raise failure
    if failure or not finite:
        raise DivergenceError(
            f"{settings.algorithm} diverged after {model.num_timesteps} actions: its weights are not finite"
            f"{f' ({failure})'.splitlines()[0] if failure else ''}. Train again with a smaller --learning-rate than "
            f"{settings.learning_rate:g}. The last checkpoint is kept."
        ) from failure


def _policy(model: BaseAlgorithm) -> dict[str, Tensor]:
    """Copy of the weights of the networks."""
    return {name: value.detach().clone() for name, value in model.policy.state_dict().items()}


def _save(folder: Path, model: BaseAlgorithm, run: BaselineRun, best: BestPolicy) -> None:
    """Write the checkpoint, and the model with the best policy in the format of Stable-Baselines3."""
    last = _policy(model)
    model.policy.load_state_dict(best.policy)
    with replacing(folder / MODEL, SolverError) as unfinished:
        model.save(unfinished)
    model.policy.load_state_dict(last)
    finished = model.num_timesteps >= run.settings.steps
    content = {"steps": model.num_timesteps, RUN: run.results(), "best": vars(best), **contents(model)}
    save_checkpoint(folder, content if not finished else {**content, "buffer": None})


def _restore(model: BaseAlgorithm, content: dict[str, Any]) -> BestPolicy:
    """Inverse of `_save`. Raises SolverError for a checkpoint with other settings."""
    try:
        best = BestPolicy(**content["best"])
        model.policy.load_state_dict(best.policy)
        fill(model, content)
        model.num_timesteps = content["steps"]
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise SolverError(
            f"the checkpoint does not fit the settings in {BASELINE}, which was edited; put the old settings back "
            f"or train again ({' '.join(str(error).split())})"
        ) from error
    return best
