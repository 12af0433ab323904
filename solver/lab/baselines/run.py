"""Description of a baseline run (baseline.json)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.lab.baselines.settings import BaselineSettings, for_states
from solver.problem.robots import require_current
from solver.runs import artifact
from solver.runs.folder import RUN, load_description
from solver.runs.kinds import Description, kind_of

BASELINE, MODEL = "baseline.json", "model.zip"
PARTS = ("steps", "parameters", "buffer", "best", RUN)  # of a checkpoint
#: Settings that are newer than stored results, with the value of these results.
LATER = {"episode_share": 1.0}
KEYS = ("steps", "return_mean")  # of every row of metrics.jsonl; the first is the counter


@dataclass(frozen=True)
class BaselineRun(Description):
    """Description of a baseline run: its robot and its settings."""

    settings: BaselineSettings

    @property
    def name(self) -> str:
        """Name of the run folder: robot, algorithm, start distribution, randomisation of parameters, and seed."""
        s = self.settings
        return f"{self.robot}-{s.algorithm}-{s.start}{'-randomized' if s.randomize else ''}-seed{s.seed}"

    @property
    def label(self) -> str:
        """Robot and algorithm; the start distribution and the randomisation if they are not the defaults."""
        s = self.settings
        start = "" if s.start == BaselineSettings.start else f"-{s.start}"
        return f"{self.robot}-{s.algorithm}{start}{'-randomized' if s.randomize else ''}"

    @property
    def length(self) -> int:
        """Number of actions."""
        return self.settings.steps

    def identity(self) -> dict[str, Any]:
        """All settings, without newer settings at the value of stored results (LATER)."""
        return {name: value for name, value in vars(self.settings).items() if LATER.get(name) != value}


def new_run(robot: CompiledRobot, generated: str | None, settings: BaselineSettings) -> BaselineRun:
    """Description of a run with these settings. Settings without a number of actions get the default of the robot.

    Raises SolverError for an artifact that was not built from the present model file.
    """
    require_current(robot)
    return BaselineRun(robot.name, robot.hash, generated, for_states(settings, len(robot.state_names)))


def load_baseline(folder: Path) -> BaselineRun:
    """Content of baseline.json. Raises SolverError if it is missing or damaged, or for a run of another kind."""
    kind_of(folder, command="baseline")
    return artifact.located(load_description(folder / BASELINE, BaselineRun), folder)
