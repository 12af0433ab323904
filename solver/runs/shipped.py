"""The trained policies that ship with the package: run folders that a name stands for, such as `pendulum-rfvi`.

Each holds the description of its run, a checkpoint with the weights only, and figures.json with what the policy does.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT, load_description, save_description

FOLDER = Path(__file__).resolve().parents[1] / "shipped"
FIGURES = "figures.json"


@dataclass(frozen=True)
class Figures:
    """What a shipped policy does, and how it was made."""

    robot: str
    algorithm: str
    seed: int
    return_mean: float  # over the evaluation's rollouts on the nominal robot
    return_spread: float
    success_rate: float
    limit: float  # of `solver limit`, and what follows with it
    idle_return: float
    gap: float
    gap_percent: float | None
    commit: str
    date: str  # ISO 8601

    def __post_init__(self) -> None:
        """Raise TypeError for a number that is none."""
        for entry in dataclasses.fields(self):
            value = getattr(self, entry.name)
            if entry.name == "gap_percent" and value is None:
                continue
            expected = {"str": str, "int": int}.get(str(entry.type), (int, float))
            if isinstance(value, bool) or not isinstance(value, expected):
                raise TypeError(f"{entry.name} is {value!r}")


def names() -> list[str]:
    """The names of all shipped policies, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CHECKPOINT}"))


def run_folder(run: str | Path) -> Path:
    """The folder of a run, given as a path or as the name of a shipped policy. A path that is there comes first."""
    path = Path(run)
    return FOLDER / path if is_shipped(path) else path


def is_shipped(run: str | Path) -> bool:
    """Whether these words name a shipped policy, and no file or folder of the user."""
    path = Path(run)
    return str(run) == path.name and not path.exists() and path.name in names()


def of_robot(name: str | Path) -> list[str]:
    """The shipped policies of the robot of this name, cFVI first; none where a file or folder has the name."""
    return [] if Path(name).exists() else [each for each in names() if each.rpartition("-")[0] == str(name)]


def read_figures(name: str) -> Figures:
    """The figures of a shipped policy. Raises SolverError for a damaged file."""

    def build(content: dict[str, Any]) -> Figures:
        return Figures(**content)

    return load_description(FOLDER / name / FIGURES, build)


def save_figures(name: str, figures: Figures) -> None:
    """Write the figures of a shipped policy. Raises SolverError when they cannot be written."""
    save_description(FOLDER / name / FIGURES, figures)


def require_no_shipped(run: str | Path) -> None:
    """Raise SolverError for the name of a shipped policy, where a run of the user's own is needed."""
    if is_shipped(run):
        raise SolverError(f"{run} is a shipped policy: it has weights only, and its training cannot be continued")
