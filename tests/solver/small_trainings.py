"""Start trainings from tests, with settings in place of choices, and look into their checkpoints."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

from torch import Tensor

from modelgen.cli import main as modelgen
from modelgen.loader import CompiledRobot
from solver.lab.baselines.settings import BaselineRun, BaselineSettings
from solver.plants.outcome import Controller, Ended, rollouts, until_rest
from solver.problem import Problem
from solver.problem.context import Given
from solver.problem.robots import load_robot
from solver.runs import kinds
from solver.runs.metrics import Report
from solver.training.lifecycle import plan
from solver.training.settings import Settings
from solver.training.solution import RunDescription, Solution, make_ensemble
from solver.value.frozen import FrozenValue
from tests.solver.references import lean

MODELS = Path(__file__).parents[2] / "models"
#: What the policies of some families are told.
FAMILIES = {
    "pendulum": {"mass": (0.5, 1.5), "length": (0.8, 1.2)},  # one input, an angle that wraps, no trim
    "quadrotor": {"mass": (0.4, 0.6)},  # four inputs, a trim that moves with the mass, a rotation
    "lean": {"mass": (0.5, 1.5)},  # a reference, with which target and trim move
}


def shortened(folder: Path, robots: Sequence[str], horizon: float, rate: int) -> str:
    """Build shipped robots, whose tasks are of 5 s at 125 Hz, with others, and with four Euler steps in a period;
    returns their generated/ folder."""
    rates = f"control_rate={rate}, simulation_rate={4 * rate},"
    folder.mkdir(exist_ok=True)
    for robot in robots:
        text = (MODELS / f"{robot}.py").read_text(encoding="utf-8")
        for stated, other in (("horizon=5,", f"horizon={horizon},"), ("control_rate=125,", rates)):
            assert text.count(stated) == 1
            text = text.replace(stated, other)
        (folder / f"{robot}.py").write_text(text, encoding="utf-8")
        assert modelgen(["build", str(folder / f"{robot}.py"), "--generated", str(folder / "generated")]) == 0
    return str(folder / "generated")


def quiet(_: object) -> None:
    """Report nothing."""


def start(
    robot: str,
    preset: str,
    settings: Settings,
    folder: Path,
    generated: str | None = None,
    report: Report = quiet,
    overwrite: bool = False,
) -> None:
    """Train a new run."""
    run = RunDescription(robot, load_robot(robot, "cpu", generated).hash, generated, settings, preset)
    kinds.start(kinds.KINDS[0], run, folder, report, overwrite)


@contextmanager
def unjudged() -> Iterator[None]:
    """Trainings whose weights matter and whose quality does not: the rollouts that judge them take 0.05 s of the
    robot's time, and not seconds."""

    def briefly(problem: Problem, act: Controller, rows: Tensor, theta: Tensor | None = None) -> Ended:
        problem = copy.copy(problem)
        problem.horizon = 0.05
        return until_rest(problem, act, rows, theta)

    with (
        mock.patch("solver.training.selection.rollouts", partial(rollouts, seconds=0.05)),
        mock.patch("solver.training.selection.until_rest", briefly),
    ):
        yield


def start_unjudged(robot: str, settings: Settings, folder: Path) -> None:
    """Train a new run of a shipped robot, `unjudged`."""
    with unjudged():
        start(robot, "fast", settings, folder)


def start_family(name: str, settings: Settings, folder: Path) -> None:
    """Train a new run of one of FAMILIES, `unjudged`."""
    _, run = plan(name, str(lean().folder.parent) if name == "lean" else None, given=FAMILIES[name])
    with unjudged():
        kinds.start(kinds.KINDS[0], replace(run, settings=settings), folder, quiet)


def untrained_family(*given: Given, robot: CompiledRobot | None = None) -> Solution:
    """A family of a robot, by default of `references.lean`, with random networks and no basin."""
    robot = robot or lean()
    run = RunDescription(robot.name, "", None, Settings(), "fast", given=given, references=robot.metadata.references)
    problem = Problem(robot, given=given)
    ensemble = make_ensemble(problem.robot, run.settings, problem.context)
    return Solution(run, problem, ensemble, FrozenValue(ensemble), 0)


def baseline(
    robot: str, settings: BaselineSettings, folder: Path, generated: str | None = None, report: Report = quiet
) -> None:
    """Train a new baseline."""
    run = BaselineRun(robot, load_robot(robot, "cpu", generated).hash, generated, settings)
    kinds.start(kinds.KINDS[1], run, folder, report)


def tensors(content: object) -> Iterator[Tensor]:
    """Every tensor in a checkpoint, in order."""
    if isinstance(content, Tensor):
        yield content
    elif isinstance(content, dict):
        for value in content.values():
            yield from tensors(value)
    elif isinstance(content, list):
        for value in content:
            yield from tensors(value)
