"""What run.json says of a run of fitted value iteration, and what its checkpoint holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from solver.problem.identified import Identified
from solver.runs import folder as files
from solver.runs.kinds import Description, kind_of
from solver.training.settings import ADVERSARY, Settings, read_settings

RUN = "run.json"
ARTIFACT = "artifact"  # folder in a run folder for the artifact of a robot that was compiled in memory
PARTS = ("iteration", "ensemble", "optimisers", "artifact_hash", "settings", "best")  # of a checkpoint
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


def save_run(folder: Path, run: Run) -> None:
    """Write run.json. The place of an artifact in the run folder is written relative to it."""
    own = run.generated is not None and Path(run.generated) == folder / ARTIFACT
    files.save_description(folder / RUN, replace(run, generated=ARTIFACT) if own else run)


def load_run(folder: Path) -> Run:
    """Read run.json. Raises SolverError when it is missing or damaged, or the folder holds another kind of run."""
    kind_of(folder, command="train")
    run = files.load_description(folder / RUN, _build)
    return replace(run, generated=str(folder / ARTIFACT)) if run.generated == ARTIFACT else run


def _build(content: dict[str, Any]) -> Run:
    settings = read_settings(content.pop("settings"))
    identified = content.pop("identified", None)
    return Run(settings=settings, identified=identified and Identified.of(identified), **content)


def load_run_checkpoint(folder: Path, device: str = "cpu") -> dict[str, Any]:
    """Read the checkpoint. Raises SolverError when it is missing, damaged, or of another run's robot or kind."""
    content = files.load_checkpoint(folder, PARTS, device, _check_content)
    files.require_own_checkpoint(content, load_run(folder).artifact_hash, folder)
    return content


def _check_content(content: dict[str, Any]) -> None:
    """Raise ValueError for optimisers and visited states of another type."""
    for state in content.get("optimisers", ()):
        if not isinstance(state, dict):
            raise ValueError("an entry of `optimisers` is not the state of an optimiser")
    if not isinstance(content.get("visited", torch.empty(0)), torch.Tensor):
        raise ValueError("its entry `visited` is not a tensor")
