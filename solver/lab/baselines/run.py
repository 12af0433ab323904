"""What baseline.json says of a baseline run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelgen.loader import CompiledRobot
from solver.lab.baselines.settings import BaselineSettings, for_states
from solver.problem.robots import require_current
from solver.runs.folder import RUN, load_description
from solver.runs.kinds import Description, kind_of

BASELINE, MODEL = "baseline.json", "model.zip"
PARTS = ("steps", "parameters", "buffer", "best", RUN)  # of a checkpoint
#: Settings that came after runs whose figures are kept, with the value that is as before.
LATER = {"episode_share": 1.0}
KEYS = ("steps", "return_mean")  # of every row of metrics.jsonl; the first counts


@dataclass(frozen=True)
class BaselineRun(Description):
    """The description of a baseline run."""

    settings: BaselineSettings

    @property
    def name(self) -> str:
        """Robot, algorithm, distribution of the starts, whether parameters are randomised, and seed."""
        s = self.settings
        return f"{self.robot}-{s.algorithm}-{s.start}{'-randomized' if s.randomize else ''}-seed{s.seed}"

    @property
    def length(self) -> int:
        """Actions."""
        return self.settings.steps

    def identity(self) -> dict[str, Any]:
        """All settings, but for those of LATER that change nothing."""
        return {name: value for name, value in vars(self.settings).items() if LATER.get(name) != value}


def new_run(robot: CompiledRobot, generated: str | None, settings: BaselineSettings) -> BaselineRun:
    """A run with these settings, and the actions that the robot is trained for where they leave it open.

    Raises SolverError for an artifact that was not built from the present model file.
    """
    require_current(robot)
    return BaselineRun(robot.name, robot.hash, generated, for_states(settings, len(robot.state_names)))


def load_baseline(folder: Path) -> BaselineRun:
    """Read baseline.json. Raises SolverError when it is missing, damaged, or the folder holds another kind of run."""
    kind_of(folder, command="baseline")
    return load_description(folder / BASELINE, BaselineRun)
