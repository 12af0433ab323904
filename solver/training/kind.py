"""Start, resume and load runs of fitted value iteration: the functions of `solver.runs.kinds.Training`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.plants.outcome import summary
from solver.plants.rollouts import Controller, rollouts, sample_starts, without_input
from solver.problem.problem import Problem
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs.folder import RUN, save_checkpoint
from solver.runs.kinds import remove_run
from solver.runs.metrics import MetricsLog, Report, read_metrics
from solver.streams import EVALUATION_SEED
from solver.training import diagnosis as stall
from solver.training.presets import make_settings
from solver.training.run import KEYS, Run, load_run, load_run_checkpoint, save_run
from solver.training.selection import Score
from solver.training.session import Session, workers_of
from solver.training.solution import load_solution
from solver.training.warm_start import take_over


def describe(robot: CompiledRobot, generated: str | None, preset: str = "fast", **choices: Any) -> Run:
    """A new run on a preset with some settings changed; see `solver.training.presets.make_settings`."""
    return Run(robot.name, robot.hash, generated, make_settings(preset, robot, **choices), preset)


def start(run: Run, folder: Path, report: Report) -> None:
    """Train a new run in `folder`, in place of a run that is there."""
    session = _session(run, folder)
    if run.warm_from:
        take_over(session.value, run.robot, Path(run.warm_from))
    remove_run(folder)  # only now that the new run can start
    save_run(folder, run)
    save_checkpoint(folder, {**session.checkpoint(), RUN: run.results()})
    _train(session, run, folder, report)


def resume(folder: Path, report: Report) -> None:
    """Continue from the folder's checkpoint, with the run's own settings."""
    run = read(folder)
    _train(_session(run, folder, load_run_checkpoint(folder, run.settings.device)), run, folder, report)


def read(folder: Path) -> Run:
    """Read run.json."""
    return load_run(folder)


def load_controller(
    folder: Path, generated: str | None = None, reaction_periods: float | None = None
) -> tuple[Problem, Controller, str]:
    """The nominal problem of a run's robot, its policy, and its label."""
    solution = load_solution(folder, generated, reaction_periods)
    return solution.problem, solution.controller(), solution.label


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
    return stall.diagnosis(kept, read_metrics(folder), idle_return, run.robot, folder)


def _session(run: Run, folder: Path, checkpoint: dict[str, Any] | None = None) -> Session:
    robot = load_robot(run.robot, run.settings.device, run.generated, nominal=run.nominal)
    require_same_artifact(folder, run.artifact_hash, robot)
    return Session(robot, run.settings, checkpoint, run.identified)


def _train(session: Session, run: Run, folder: Path, report: Report) -> None:
    """Iterate to the end; checkpoint after every iteration, log and report its metrics."""
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
