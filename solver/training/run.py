"""Description of a run of fitted value iteration (run.json), and the parts of its checkpoint."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from modelgen.artifact.manifest import typed
from solver.problem.context import Given
from solver.problem.identified import IdentifiedSet
from solver.runs import artifact
from solver.runs import folder as files
from solver.runs.kinds import Description, kind_of
from solver.training.settings import ADVERSARY, Settings

RUN = "run.json"
PARTS = ("iteration", "ensemble", "optimisers", "best", files.RUN)  # of a checkpoint
KEYS = ("iteration", "value_error")  # of every row of metrics.jsonl; the first is the counter


@dataclass(frozen=True)
class RunDescription(Description):
    """Description of a run: its robot, its settings, and what it begins with."""

    settings: Settings
    preset: str
    warm_from: str = ""  # folder of the run whose value function it begins with
    identified: IdentifiedSet | None = None  # parameters from recordings: nominal values and sets
    given: tuple[Given, ...] = ()  # parameters that the policy is told, with the references of the robot
    references: tuple[str, ...] = ()  # their names

    @property
    def nominal(self) -> tuple[float, ...]:
        """Identified parameters (p,); empty for the parameters of the model file."""
        return self.identified.nominal if self.identified else ()

    @property
    def told_names(self) -> tuple[str, ...]:
        """Names of the parameters that the policy is told."""
        return tuple(entry.name for entry in self.given)

    @property
    def reference_names(self) -> tuple[str, ...]:
        """Names of the references among the told ones."""
        return self.references

    @property
    def chosen_names(self) -> tuple[str, ...]:
        """Names of the told parameters without the references, which every run of the robot is told."""
        return tuple(name for name in self.told_names if name not in self.references)

    @property
    def name(self) -> str:
        """Name of the run folder: robot, algorithm, preset, told parameters and seed."""
        told = "".join(f"-{name}" for name in self.chosen_names)
        return f"{self.robot}-{self.settings.algorithm}-{self.preset}{told}-seed{self.settings.seed}"

    @property
    def label(self) -> str:
        """Robot and algorithm, and the preset unless it is `fast`."""
        label = f"{self.robot}-{self.settings.algorithm}"
        return label if self.preset == "fast" else f"{label}-{self.preset}"

    @property
    def length(self) -> int:
        """Number of value iterations."""
        return self.settings.iterations

    def identity(self) -> dict[str, Any]:
        """All settings but the threads and, for cFVI, the settings of the adversaries; and what the run begins with."""
        idle = {"threads", *(ADVERSARY if self.settings.algorithm == "cfvi" else ())}
        settings = {name: value for name, value in vars(self.settings).items() if name not in idle}
        begins = {"warm_from": self.warm_from, "identified": self.identified and asdict(self.identified)}
        return settings | begins | ({"given": [asdict(entry) for entry in self.given]} if self.given else {})

    def results(self) -> dict[str, Any]:
        """As in the base class. Runs of earlier versions have no entries `given` and `references`."""
        content = super().results()
        for name in ("given", "references"):
            if not content[name]:
                del content[name]
        return content


@dataclass(frozen=True)
class BestEntry:
    """Entry `best` of a checkpoint, see `solver.training.selection.Best`."""

    iteration: int
    score: tuple[float, float, float, float, float]
    ensemble: dict[str, Any]


def save_run(folder: Path, run: RunDescription) -> None:
    """Write run.json. The path of an artifact inside the run folder is written relative to the folder."""
    files.save_description(folder / RUN, artifact.stored(run, folder))


def load_run(folder: Path) -> RunDescription:
    """Content of run.json. Raises SolverError if it is missing or damaged, or for a run of another kind."""
    kind_of(folder, command="train")
    return artifact.located(files.load_description(folder / RUN, RunDescription), folder)


def load_run_checkpoint(folder: Path, device: str = "cpu") -> dict[str, Any]:
    """Checkpoint of a run. Raises SolverError if it is missing, damaged, or of another run than run.json."""
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
        typed(BestEntry, best, "best")
