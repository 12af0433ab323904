"""A training's life as `solver.runs.kinds.Training` asks: planned, started, resumed, judged, loaded and shipped.

A training that begins with another run's value function is shorter. It is meant for a changed parameter, cost or limit.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from modelgen.artifact.folder import SHIPPED
from modelgen.errors import in_shell
from modelgen.files import replacing
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.adversaries import Adversary, ToldAdversary
from solver.local.basin import can_tell
from solver.plants.outcome import rollouts, sample_starts, summary, without_input
from solver.problem import Problem
from solver.problem.identified import IdentifiedSet
from solver.problem.identified import read as read_identified
from solver.problem.parameters import Change, GivenRanges, resolve
from solver.problem.robots import load_robot, require_same_artifact
from solver.runs import artifact, shipped
from solver.runs.folder import CHECKPOINT, RUN, save_checkpoint, save_description
from solver.runs.kinds import RolloutPolicy
from solver.runs.metrics import Report, metrics_log, read_metrics
from solver.runs.shipped import run_folder
from solver.streams import EVALUATION_SEED
from solver.training.selection import ROUGH, Score
from solver.training.session import Session, workers_of
from solver.training.settings import Settings, make_settings, radii_of
from solver.training.solution import KEYS, RunDescription, load_run, load_run_checkpoint, load_solution
from solver.training.solution import RUN as DESCRIPTION
from solver.value.network import Ensemble

Adversaries = Iterable[Adversary] | Mapping[str, float]
#: Settings of the network, which a training takes from the run that it begins with.
NETWORK = ("members", "layers", "width", "input_scale", "basin")
WARM_SHARE = 0.25  # of the usual iterations
WARM_RAMP = (0.0, 0.5)  # of the adversaries: V knows the task already
WARM_LEARNING_RATE = 0.5  # share of the usual first learning rate


def plan(
    name: str, generated: str | None = None, *, identified: str | Path | None = None, **choices: Any
) -> tuple[CompiledRobot, RunDescription]:
    """Robot with float32 kernels on the CPU and the nominal parameters of the training, and description of the run.

    identified: file of `modelgen identify`. choices: as in `describe`. Raises SolverError for a file of another robot.
    """
    robot = load_robot(name, "cpu", generated)
    known = None if identified is None else read_identified(Path(identified), robot)
    robot = robot if known is None else robot.with_nominal(known.nominal)
    return robot, describe(robot, generated, identified=known, **choices)


def describe(
    robot: CompiledRobot,
    generated: str | None,
    preset: str = "fast",
    *,
    algorithm: str = "rfvi",
    adversaries: Adversaries | None = None,
    identified: IdentifiedSet | None = None,
    given: GivenRanges = (),
    start_from: str | PathLike[str] | None = None,
    **settings: Any,
) -> RunDescription:
    """Description of a new run of a robot with the nominal parameters of the training.

    given: parameters that the policy is told, by name; or their ranges. It is told the references of the robot too. The
    preset gives the settings. The identified set changes them, then the run to start from, then `adversaries` and
    `settings`; see `solver.make_settings`. Raises SolverError for an unknown name, and for a run of another robot.
    """
    told, changes = resolve(robot, given, can_tell), dict[str, Any]()
    if identified is not None:
        changes["adversaries"] = identified.adversaries() if algorithm == "rfvi" else {}
    if told and preset == "fast":
        changes["width"] = Settings.width  # V then varies with more than the states
    if adversaries is not None:
        radii = radii_of(adversaries)
        changes["adversaries"] = radii and {**changes.get("adversaries", {}), **radii}
    if start_from is not None:
        usual = make_settings(preset, robot, algorithm, **changes)
        changes |= _warm_settings(Path(start_from), robot.name, usual)
    chosen = make_settings(preset, robot, algorithm, **{**changes, **settings})
    if identified is not None and any(entry.name not in robot.metadata.references for entry in told):
        raise SolverError(
            "--given and --identified are both given: the set of the file belongs to one robot, and not to a family. "
            "Leave one of them out."
        )
    if radius := chosen.adversaries.get(ToldAdversary.name):
        ToldAdversary(radius).admissible_set(Problem(robot, given=told), radius)  # its error comes before the training
    begin, references = fspath(start_from or ""), robot.metadata.references
    return RunDescription(robot.name, robot.hash, generated, chosen, preset, begin, identified, told, references)


def start(run: RunDescription, folder: Path, report: Report, robot: CompiledRobot | None = None) -> None:
    """Train a new run in `folder`. Replaces a run in it.

    robot: the run's robot with float32 kernels on the CPU and the run's parameters, if the caller has it open.
    """
    session = _session(run, folder, robot)
    if run.warm_from:
        take_over_weights(session.value, run.robot, Path(run.warm_from))
    artifact.begin(folder, run, session.robot)  # after all errors of the new run
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
    """Paragraph on a finished run that does not solve its task, see `advice`; empty for others."""
    best, rows = load_run_checkpoint(folder)["best"], read_metrics(folder)
    if not best:
        return ""
    if Score(*best["score"]).successes >= SOLVED:
        return roughness(rows, folder)
    solution = load_solution(folder)
    run, problem = solution.run, solution.problem
    starts = sample_starts(problem, run.settings.episodes, EVALUATION_SEED)
    kept = summary(rollouts(problem, solution.controller(), starts))
    kept["selection_success"] = Score(*best["score"]).successes
    idle_return = float(rollouts(problem, without_input(problem), starts).returns.mean())
    return advice(kept, rows, idle_return, run.robot, folder)


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
    with metrics_log(folder, session.schedule.number, KEYS, "train") as log, workers_of(session.settings) as workers:
        for row in session.rows(workers):
            log.write(row)
            save_checkpoint(folder, {**session.checkpoint(), RUN: run.results()})
            report(row)


LARGEST = 500_000  # bytes of a shipped checkpoint


def require_shippable(folder: Path) -> RunDescription:
    """Run in a folder. Raises SolverError unless it has ended and its artifact is the shipped one."""
    shipped.require_no_shipped(folder)
    run = load_run(folder)
    require_same_artifact(folder, run.artifact_hash, load_robot(run.robot, "cpu", str(SHIPPED)))
    done = load_run_checkpoint(folder)["iteration"]
    if done < run.length:
        raise SolverError(
            f"{folder} has {done} of {run.length} iterations; finish it with `solver train --resume {in_shell(folder)}`"
        )
    return run


def ship(folder: Path, figures: shipped.Figures, largest: int = LARGEST) -> str:
    """Name of the run in a folder among the shipped policies, where this writes it with its figures: all or nothing.

    It replaces an earlier policy. Raises SolverError as `require_shippable`, for a checkpoint of more than `largest`
    bytes, and where a file cannot be written.
    """
    run = require_shippable(folder)
    shipped_run = dataclasses.replace(run, generated=None, warm_from=Path(run.warm_from).name)
    content = _weights_only(load_run_checkpoint(folder)) | {RUN: shipped_run.results()}
    written = io.BytesIO()
    torch.save(content, written)
    if written.tell() > largest:
        raise SolverError(
            f"the weights of {folder} have {written.tell()} bytes; a shipped policy has at most {largest}. Train a "
            "smaller network, with fewer --members or a smaller --width"
        )
    name = f"{run.robot}-{run.settings.algorithm}"
    target = shipped.FOLDER / name
    with (  # moved into place in the opposite order, once all are written: weights make a policy, so they come last
        replacing(target / CHECKPOINT, SolverError) as weights,
        replacing(target / shipped.FIGURES, SolverError) as measured,
        replacing(target / DESCRIPTION, SolverError) as description,
    ):
        weights.write_bytes(written.getvalue())
        save_description(measured, figures)
        save_description(description, shipped_run)
    return name


def _weights_only(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Checkpoint with the best value function, and empty entries for the rest."""
    best = checkpoint["best"]
    return {
        "iteration": checkpoint["iteration"],
        "ensemble": {} if best else checkpoint["ensemble"],
        "best": best,
        "optimisers": [],
        RUN: checkpoint[RUN],
    }


def _warm_settings(folder: Path, robot: str, usual: Settings) -> dict[str, Any]:
    """Changes of the usual settings for a training that begins with the run in `folder`."""
    before = _run_of(folder, robot).settings
    return {name: getattr(before, name) for name in NETWORK} | {
        "iterations": max(1, round(WARM_SHARE * usual.iterations)),
        "adversary_ramp": WARM_RAMP,
        "learning_rate": WARM_LEARNING_RATE * usual.learning_rate,
        "step_periods": usual.step_periods[-2:],
    }


def take_over_weights(ensemble: Ensemble, robot: str, folder: Path) -> None:
    """Copy the best weights of a run, or of a shipped policy by its name.

    Basin and metric stay, because the robot may have changed. Raises SolverError if the weights do not fit.
    """
    _run_of(folder, robot)
    checkpoint = load_run_checkpoint(run_folder(folder))
    kept = (checkpoint["best"] or checkpoint)["ensemble"]
    prefix = "members."
    weights = {name.removeprefix(prefix): value for name, value in kept.items() if name.startswith(prefix)}
    try:
        ensemble.members.load_state_dict(weights)
    except RuntimeError as error:
        raise SolverError(
            f"the network of {folder} does not fit this training: the robot has other states now, or --given, "
            "--members, --layers or --width differ. Leave these out, or train without --start-from."
        ) from error


def _run_of(folder: Path, robot: str) -> RunDescription:
    """Description of a run folder or of a shipped policy. Raises SolverError for a run of another robot."""
    run = load_run(run_folder(folder))
    if run.robot != robot:
        raise SolverError(f"{folder} is a run of {run.robot}, and this training is of {robot}")
    return run


SOLVED = 0.95  # least share of successes in the selection of a solved task
LEANING = 0.2  # share of rollouts with a state at its limit
UNFITTED = 0.1  # value error, as a share of the mean |target|
LOST = 0.8  # later iterations lost successes if their share ends below this part of the best share
#: Keys of the rows of evaluations.
EVALUATED = {"iteration", "selection_success"}
FITTED = {"value_error", "target_mean"}  # keys of all rows
NOMINAL = {"value_mismatch", "adversary"}  # keys of the rows of evaluations


def advice(
    kept: Mapping[str, float], rows: Sequence[dict[str, float]], idle_return: float, robot: str, folder: Path
) -> str:
    """Paragraph on an unsolved task with the metrics and changes to try.

    kept: success_rate, return_mean and limit_rate of the best policy, and its selection_success. rows: of
    metrics.jsonl; they only explain, so a damaged file does not change the success. idle_return: mean return of the
    robot without input from the task's starts.
    """
    evaluated, reached = [row for row in rows if row.keys() >= EVALUATED], kept["selection_success"]
    fitted = [row for row in rows if row.keys() >= FITTED][-1:]
    errors = [row["value_error"] / max(abs(row["target_mean"]), 1e-9) for row in fitted]
    judged = "; there a success that met a limit counts as two thirds" if kept["limit_rate"] > 0.0 else ""
    text = (
        f"the best policy succeeds in {100 * kept['success_rate']:.0f} % of the rollouts. The training chose it by "
        f"other rollouts, in which its share of successes was {100 * reached:.0f} %{judged}. Mean return "
        f"{kept['return_mean']:.3g}, {idle_return:.3g} without input; {100 * kept['limit_rate']:.0f} % of the rollouts "
        "have a state at its limit."
    )
    for row, error in zip(fitted, errors, strict=True):
        text += f" The value error is {row['value_error']:.2g}, {100 * error:.0f} % of the mean target."
    then = f"`solver train {robot} --start-from {in_shell(folder)}` continues from this run."
    last = evaluated[-1]["selection_success"] if evaluated else reached
    return " ".join([text, *_remedies(kept, last, max(errors, default=0.0), idle_return, robot), then])


def roughness(rows: Sequence[dict[str, float]], folder: Path) -> str:
    """Sentences on the rough V of a task that cFVI solved; empty for a smooth V. With adversaries V differs from the
    nominal return in any case."""
    last = [row for row in rows if row.keys() >= NOMINAL | EVALUATED][-1:]
    if not last or last[0]["adversary"] > 0.0 or last[0]["value_mismatch"] <= ROUGH:
        return ""
    return (
        "the task is solved, but V is rough: it differs from the cost of its policy by "
        f"{100 * last[0]['value_mismatch']:.0f} % of that cost. The policy may cost that much more than necessary. "
        f"`solver limit {in_shell(folder)}` searches better motions; train with more --states."
    )


def _remedies(
    kept: Mapping[str, float], last_success: float, error: float, idle_return: float, robot: str
) -> list[str]:
    """Changes to try; the most probable remedy is first."""
    remedies = []
    if kept["limit_rate"] > LEANING:
        remedies.append("Widen the limits that it reaches, or raise their cost with --limit-cost.")
    if error > UNFITTED:
        remedies.append(
            "The networks do not follow their targets: try more --states, a larger --width, or more --epochs."
        )
    if last_success < LOST * kept["selection_success"]:
        remedies.append("Later iterations lost successes: try a smaller --learning-rate, or more --states.")
    if kept["return_mean"] <= idle_return + 0.1 * abs(idle_return):
        cost, idle = -kept["return_mean"], -idle_return
        more = f"{cost / idle:.2g} times as much as" if idle > 0.0 else "more than"
        much = more if cost > 1.1 * idle else "about as much as"
        remedies.append(f"It costs {much} no input: `solver limit {robot}` shows the best return.")
    return remedies or [
        "It comes near but does not settle: try more --iterations, or shorter --step-periods at the end."
    ]
