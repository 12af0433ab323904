"""Counterexample: one rollout in a file, from which it can be repeated and drawn."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from modelgen.artifact.manifest import typed
from modelgen.errors import in_shell
from solver.certification.experiment import Experiment, roll_out
from solver.certification.specification import LONGEST, Conditions, FailureRule
from solver.certification.toml_table import LARGEST
from solver.errors import SolverError
from solver.evaluation import require_seconds
from solver.evaluation.plots import Scene, animate, over_time, save_figure
from solver.evaluation.trajectory import start_state
from solver.plants.outcome import Rollouts, decimals
from solver.problem import Problem
from solver.problem.parameters import changed_parameters
from solver.runs.folder import CHECKPOINT, write_text
from solver.runs.kinds import load_rollout_policy
from solver.runs.shipped import is_shipped, run_folder
from solver.streams import SEEDS


@dataclass(frozen=True)
class Counterexample:
    """A single rollout from `start` with `parameters`, and its outcome."""

    run: str  # absolute path of the folder, or name of a shipped policy
    robot: str
    checkpoint: str  # SHA-256 of the run's checkpoint
    conditions: Conditions
    failure: FailureRule
    noise: int  # seed of the plant's noise
    start: dict[str, float]
    parameters: dict[str, float]
    total: float  # the return
    success: bool

    @property
    def judgement(self) -> str:
        """Outcome in words, by the failure rule of the specification."""
        return "no failure" if self.success else "a failure"

    def result(self) -> dict[str, Any]:
        """Outcome for the JSON of reports."""
        return {"return": self.total, "success": self.success, "start": self.start, "parameters": self.parameters}


def checkpoint_hash(run: str | Path) -> str:
    """SHA-256 of a run's checkpoint. Raises SolverError if it has none."""
    path = run_folder(run) / CHECKPOINT
    if not path.is_file():
        raise SolverError(
            f"{run} has no {CHECKPOINT}: its training has not finished the first iteration. Resume it with `solver "
            f"train --resume {in_shell(run)}`."
        )
    return hashlib.sha256(path.read_bytes()).hexdigest()


def play(run: str | Path, experiment: Experiment, x: Tensor, theta: Tensor, noise: int) -> Counterexample:
    """Counterexample from one start x (n,) with theta (p,). In a batch, the last digits may differ."""
    spec, robot = experiment.specification, experiment.problem.robot
    problem, act, _ = experiment.policy.load()
    result = roll_out(problem, act, spec.conditions, x[None], theta[None], noise)
    return Counterexample(
        run=str(run) if is_shipped(run) else str(Path(run).resolve()),
        robot=robot.name,
        checkpoint=checkpoint_hash(run),
        conditions=spec.conditions,
        failure=spec.failure,
        noise=noise,
        start=dict(zip(robot.state_names, x.tolist(), strict=True)),
        parameters=dict(zip(robot.parameter_names, theta.tolist(), strict=True)),
        total=float(result.returns[0]),
        success=not bool(spec.failure.failed(result)[0]),
    )


def replay(counterexample: Counterexample, generated: str | None = None) -> tuple[Problem, Rollouts]:
    """Problem and rollout of a counterexample, repeated.

    Raises SolverError if checkpoint or robot have changed, and for a start, parameters or a horizon that an edit of the
    file has made impossible.
    """
    problem, act, _ = load_rollout_policy(counterexample.run, generated, contexts=True)
    if checkpoint_hash(counterexample.run) != counterexample.checkpoint:
        raise SolverError(f"the checkpoint of {counterexample.run} has changed since; certify the run again")
    robot = problem.robot
    if (robot.name, [*robot.state_names], [*robot.parameter_names]) != (
        counterexample.robot,
        [*counterexample.start],
        [*counterexample.parameters],
    ):
        raise SolverError(
            f"the counterexample belongs to another robot than {counterexample.run}; certify the run again"
        )
    theta, x = changed_parameters(problem, counterexample.parameters), torch.tensor([*counterexample.start.values()])
    start_state(problem, counterexample.start, theta)
    require_seconds(problem, counterexample.conditions.horizon)
    return problem, roll_out(problem, act, counterexample.conditions, x[None], theta[None], counterexample.noise)


def judged(counterexample: Counterexample, result: Rollouts) -> Counterexample:
    """The counterexample with the outcome of a rollout in place of the one that its file states."""
    success = not bool(counterexample.failure.failed(result)[0])
    return dataclasses.replace(counterexample, total=float(result.returns[0]), success=success)


def save(path: Path, counterexample: Counterexample) -> None:
    """Write the file of a counterexample. Raises SolverError if it cannot be written."""
    write_text(path, json.dumps(dataclasses.asdict(counterexample), indent=2, allow_nan=False) + "\n")


def load(path: Path) -> Counterexample:
    """Counterexample from its file. Raises SolverError if `solver certify` did not write the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        counterexample: Counterexample = typed(Counterexample, content, path.name)
        _check(counterexample)
    except OSError as error:
        raise SolverError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise SolverError(
            f"{path} is not a counterexample file of `solver certify` ({error}). Write it again with `solver certify`."
        ) from error
    return counterexample


def _check(counterexample: Counterexample) -> None:
    """Raises ValueError for an entry out of range."""
    conditions, failure = counterexample.conditions, counterexample.failure
    numbers = [counterexample.total, *counterexample.start.values(), *counterexample.parameters.values()]
    numbers += [*(limit for _, limit in failure.limits), failure.return_below or 0.0]
    if not all(abs(number) <= LARGEST for number in numbers):
        raise ValueError(f"a number is not finite, or larger than {LARGEST:g}")
    if not all(0 <= index < len(counterexample.start) for index, _ in failure.limits):
        raise ValueError("a limit of its failure rule is not that of a state")
    if not conditions.horizon <= LONGEST:
        raise ValueError(f"its horizon is not a number of seconds up to {LONGEST:g}")
    if not 0 <= counterexample.noise < SEEDS:
        raise ValueError("its noise is not a seed")


def record(
    counterexample: Counterexample, stem: Path, generated: str | None = None
) -> tuple[Counterexample, list[Path]]:
    """Counterexample with the outcome of the repeated rollout, and the paths of its files STEM.png, STEM.csv and, for
    a robot with a drawing, STEM.gif."""
    problem, result = replay(counterexample, generated)
    counterexample = judged(counterexample, result)
    files = paths(stem)
    save_figure(motion(counterexample, problem, result), files[0])
    write_text(files[1], table(problem, result))
    total = counterexample.total
    theta = problem.theta.new_tensor(list(counterexample.parameters.values())).numpy()
    scene = Scene(problem.robot, theta, result.x[:, 0].numpy(), f"worst case: return {total:.{decimals(total, 1)}f}")
    if not scene.segments().shape[1]:
        return counterexample, files[:2]
    animate([scene], files[2])
    return counterexample, files


def paths(stem: Path) -> list[Path]:
    """Paths of the files: STEM.png, STEM.csv and STEM.gif."""
    return [stem.with_name(f"{stem.name}.{ending}") for ending in ("png", "csv", "gif")]


def motion(counterexample: Counterexample, problem: Problem, result: Rollouts) -> Figure:
    """Figure of states and inputs over time, with parameters and outcome in its title."""
    parameters = ", ".join(f"{name} {value:.4g}" for name, value in counterexample.parameters.items())
    title = f"{counterexample.robot}, {counterexample.conditions.plant} plant\n{parameters}"
    return over_time(problem, result, title, counterexample.judgement)


def table(problem: Problem, result: Rollouts) -> str:
    """CSV of the first rollout: time (s), states and inputs, one row for each control period. The last row has no
    inputs."""
    metadata, text = problem.robot.metadata, io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["time", *(state.name for state in metadata.states), *(entry.name for entry in metadata.inputs)])
    inputs = [*result.u[:, 0].tolist(), [""] * len(metadata.inputs)]
    for index, (x, u) in enumerate(zip(result.x[:, 0].tolist(), inputs, strict=True)):
        writer.writerow([f"{index * problem.control_step:.9g}", *x, *u])
    return text.getvalue()
