"""Start, resume and load a run of fitted value iteration: the functions of `solver.runs.kinds.Training`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.outcome import rollouts, sample_starts, summary, without_input
from solver.problem.parameters import Change
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs import artifact
from solver.runs.folder import RUN, MetricsLog, Report, read_metrics, save_checkpoint
from solver.runs.kinds import RolloutPolicy, remove_run
from solver.streams import EVALUATION_SEED
from solver.training import diagnosis as of_metrics
from solver.training.plan import take_over_weights
from solver.training.presets import make_settings
from solver.training.run import KEYS, RunDescription, load_run, load_run_checkpoint, save_run
from solver.training.selection import Score
from solver.training.session import Session, workers_of
from solver.training.solution import load_solution


def describe(robot: CompiledRobot, generated: str | None, preset: str = "fast", **choices: Any) -> RunDescription:
    """Description of a new run with a preset and some changed settings; see `solver.make_settings`."""
    return RunDescription(robot.name, robot.hash, generated, make_settings(preset, robot, **choices), preset)


def start(run: RunDescription, folder: Path, report: Report, robot: CompiledRobot | None = None) -> None:
    """Train a new run in `folder`. Replaces a run in it.

    robot: the run's robot with float32 kernels on the CPU and the run's parameters, if the caller has it open.
    """
    session = _session(run, folder, robot)
    if run.warm_from:
        take_over_weights(session.value, run.robot, Path(run.warm_from))
    remove_run(folder)  # after all errors of the new run
    artifact.keep(session.robot.folder, folder)
    save_run(folder, run)
    save_checkpoint(folder, {**session.checkpoint(), RUN: run.results()})
    _train(session, run, folder, report)


def resume(folder: Path, report: Report) -> None:
    """Continue from the folder's checkpoint, with the run's own settings."""
    run = read(folder)
    checkpoint = load_run_checkpoint(folder, run.settings.device)
    _train(_session(run, folder, checkpoint=checkpoint), run, folder, report)


def read(folder: Path) -> RunDescription:
    """Content of run.json. Raises SolverError if it is missing or damaged."""
    return load_run(folder)


def load_rollout_policy(
    folder: Path,
    generated: str | None = None,
    reaction_periods: float | None = None,
    told: Mapping[str, Change] = MappingProxyType({}),
    contexts: bool = False,
) -> RolloutPolicy:
    """Nominal problem of the run's robot, the run's policy, and the run's label."""
    solution = load_solution(folder, generated, reaction_periods, told, contexts)
    return RolloutPolicy(solution.problem, solution.controller(), solution.label)


def diagnosis(folder: Path) -> str:
    """Paragraph on a finished run that does not solve its task, see `solver.training.diagnosis`; empty for others."""
    best, solution = load_run_checkpoint(folder)["best"], load_solution(folder)
    if not best:
        return ""
    run, problem = solution.run, solution.problem
    starts = sample_starts(problem, run.settings.episodes, EVALUATION_SEED)
    kept = summary(rollouts(problem, solution.controller(), starts))
    kept["selection_success"] = Score(*best["score"]).successes
    idle_return = float(rollouts(problem, without_input(problem), starts).returns.mean())
    return of_metrics.diagnosis(kept, read_metrics(folder), idle_return, run.robot, folder)


def _session(
    run: RunDescription, folder: Path, robot: CompiledRobot | None = None, checkpoint: dict[str, Any] | None = None
) -> Session:
    if robot is None or run.settings.device != "cpu":
        generated = run.generated if robot is None else str(robot.folder.parent)
        robot = load_robot(run.robot, run.settings.device, generated, nominal=run.nominal)
    require_same_artifact(folder, run.artifact_hash, robot)
    return Session(robot, run.settings, checkpoint, run.identified, run.given)


def _train(session: Session, run: RunDescription, folder: Path, report: Report) -> None:
    """Iterate to the end, with a checkpoint and a row of metrics after every iteration."""
    try:
        with closing(MetricsLog(folder, session.schedule.number, KEYS)) as log, workers_of(session.settings) as workers:
            for row in session.rows(workers):
                log.write(row)
                save_checkpoint(folder, {**session.checkpoint(), RUN: run.results()})
                report(row)
    except OSError as error:
        raise SolverError(
            f"cannot write metrics to {folder}: {error}. The last checkpoint is whole: free some space and continue "
            f"with `solver train --resume {folder}`."
        ) from error
