"""The trained policies that ship with the package: run folders that a name stands for, such as `pendulum-rfvi`.

Each holds the description of its run, a checkpoint with the weights only, and figures.json with what the policy does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT, load_description, save_description

FOLDER = Path(__file__).resolve().parents[1] / "shipped"
FIGURES = "figures.json"
HEADER = ("policy", "return", "success", "limit", "gap", "seed", "commit", "date")


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
    return str(run) == path.name and path.name in names() and not path.exists()


def of_robot(name: str | Path) -> list[str]:
    """The shipped policies of the robot of this name, cFVI first; none where a file or folder has the name."""
    return [] if Path(name).exists() else [each for each in names() if each.rpartition("-")[0] == str(name)]


def read_figures(name: str) -> Figures:
    """The figures of a shipped policy. Raises SolverError for a damaged file."""

    return load_description(FOLDER / name / FIGURES, Figures)


def save_figures(name: str, figures: Figures) -> None:
    """Write the figures of a shipped policy. Raises SolverError when they cannot be written."""
    save_description(FOLDER / name / FIGURES, figures)


def require_no_shipped(run: str | Path) -> None:
    """Raise SolverError for the name of a shipped policy, where a run of the user's own is needed."""
    if is_shipped(run):
        raise SolverError(f"{run} is a shipped policy: it has weights only, and its training cannot be continued")


def table(figures: dict[str, Figures]) -> str:
    """A table of shipped policies, a line for each."""
    rows = [HEADER]
    for name, row in figures.items():
        percent = "" if row.gap_percent is None else f" ({row.gap_percent:.1f} %)"
        result = (f"{row.return_mean:.2f} +- {row.return_spread:.2f}", f"{100 * row.success_rate:.0f} %")
        rows.append((name, *result, f"{row.limit:.2f}", f"{row.gap:.2f}{percent}", str(row.seed), row.commit, row.date))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows)
    return "\n".join(line.rstrip() for line in lines)
