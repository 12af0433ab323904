"""What run.json says of a run of fitted value iteration, and what its checkpoint holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from modelgen.artifact.typed import typed
from solver.problem.identified import Identified
from solver.runs import folder as files
from solver.runs.kinds import Description, kind_of
from solver.training.settings import ADVERSARY, Settings

RUN = "run.json"
ARTIFACT = "artifact"  # folder in a run folder for the artifact of a robot that was compiled in memory
PARTS = ("iteration", "ensemble", "optimisers", "best", files.RUN)  # of a checkpoint
KEYS = ("iteration", "value_error")  # of every row of metrics.jsonl; the first counts


@dataclass(frozen=True)
class Run(Description):
    """The description of a run."""

    settings: Settings
    preset: str
    warm_from: str = ""  # the folder of the run whose value function it begins with
    identified: Identified | None = None  # what recordings say of the robot; its nominal parameters are theirs

    @property
    def nominal(self) -> tuple[float, ...]:
        """The identified parameters (p,), or nothing where the model file's count."""
        return self.identified.nominal if self.identified else ()

    @property
    def name(self) -> str:
        """Robot, algorithm, preset and seed."""
        return f"{self.robot}-{self.settings.algorithm}-{self.preset}-seed{self.settings.seed}"

    @property
    def length(self) -> int:
        """Value iterations."""
        return self.settings.iterations

    def identity(self) -> dict[str, Any]:
        """Where it began, and all settings but backend, threads and, for cFVI, those of the adversary."""
        idle = {"threads", *(ADVERSARY if self.settings.algorithm == "cfvi" else ())}
        settings = {name: value for name, value in vars(self.settings).items() if name not in idle}
        return settings | {"warm_from": self.warm_from, "identified": self.identified and asdict(self.identified)}


@dataclass(frozen=True)
class Kept:
    """The entry `best` of a checkpoint, see `solver.training.selection.Best`."""

    iteration: int
    score: tuple[float, float, float, float, float]
    ensemble: dict[str, Any]


def save_run(folder: Path, run: Run) -> None:
    """Write run.json. The place of an artifact in the run folder is written relative to it."""
    own = run.generated is not None and Path(run.generated) == folder / ARTIFACT
    files.save_description(folder / RUN, replace(run, generated=ARTIFACT) if own else run)


def load_run(folder: Path) -> Run:
    """Read run.json. Raises SolverError when it is missing or damaged, or the folder holds another kind of run."""
    kind_of(folder, command="train")
    run = files.load_description(folder / RUN, Run)
    return replace(run, generated=str(folder / ARTIFACT)) if run.generated == ARTIFACT else run


def load_run_checkpoint(folder: Path, device: str = "cpu") -> dict[str, Any]:
    """Read the checkpoint. Raises SolverError when it is missing, damaged, or not that of the run in run.json."""
    content = files.load_checkpoint(folder, PARTS, device, _check_content)
    files.require_own_checkpoint(content, load_run(folder).results(), folder)
    return content


def _check_content(content: dict[str, Any]) -> None:
    """Raises ValueError or TypeError for entries of another type."""
    optimisers = content.get("optimisers", [])
    if not isinstance(optimisers, list) or not all(isinstance(state, dict) for state in optimisers):
        raise ValueError("its entry `optimisers` is not a list of states of optimisers")
    if not isinstance(content.get("visited", torch.empty(0)), torch.Tensor):
        raise ValueError("its entry `visited` is not a tensor")
    best = content.get("best", {})
    if not isinstance(best, dict) or not isinstance(content.get("ensemble", {}), dict):
        raise ValueError("its value function is not a mapping of weights")
    if best:
        typed(Kept, best, "best")
