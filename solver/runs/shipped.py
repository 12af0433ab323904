"""Policies that ship with the package, and the origin of results: the machine, and the commit of the program.

A folder holds the description of the run, a checkpoint with the weights only, and figures.json with its results.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT, load_description

FOLDER = Path(__file__).resolve().parents[1] / "shipped"
FIGURES = "figures.json"
HEADER = ("policy", "return", "success", "limit", "gap", "seed", "commit", "date")


@dataclass(frozen=True)
class Figures:
    """Results of a shipped policy, and their origin."""

    robot: str
    algorithm: str
    seed: int
    return_mean: float  # over the evaluation's rollouts on the nominal robot
    return_spread: float
    success_rate: float
    limit: float  # from `solver limit`, as the next three
    idle_return: float
    gap: float
    gap_percent: float | None
    commit: str
    date: str  # ISO 8601


def names() -> list[str]:
    """Names of all shipped policies, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CHECKPOINT}"))


def run_folder(run: str | Path) -> Path:
    """Folder of a run, from a path or the name of a shipped policy. An existing path has priority."""
    path = Path(run)
    return FOLDER / path if is_shipped(path) else path


def named(run: str | PathLike[str], generated: str | None) -> tuple[str, str | None]:
    """Name of a run and its folder of artifacts, by default that with which a `solver.Run` was opened."""
    return fspath(run), generated or getattr(run, "generated", None)


def is_shipped(run: str | Path) -> bool:
    """Whether `run` is the name of a shipped policy and not an existing path."""
    path = Path(run)
    return str(run) == path.name and path.name in names() and not path.exists()


def everywhere(run: str | Path) -> str:
    """Name of a shipped policy, or absolute path of another run: what other processes and machines find."""
    return str(run) if is_shipped(run) else str(Path(run).absolute())


def of_robot(name: str | Path) -> list[str]:
    """Shipped policies of a robot, cFVI first. Empty if a file or folder has the robot's name."""
    return [] if Path(name).exists() else [policy for policy in names() if policy.rpartition("-")[0] == str(name)]


def read_figures(name: str) -> Figures:
    """Results of a shipped policy. Raises SolverError for a damaged file."""
    return load_description(FOLDER / name / FIGURES, Figures)


def require_no_shipped(run: str | Path) -> None:
    """Raises SolverError for the name of a shipped policy."""
    if is_shipped(run):
        raise SolverError(
            f"{run} is a shipped policy, which has weights only, so its training cannot continue; name a run folder"
        )


def table(figures: dict[str, Figures]) -> str:
    """Table of shipped policies, one line a policy."""
    rows = [HEADER]
    for name, row in figures.items():
        percent = "" if row.gap_percent is None else f" ({row.gap_percent:.1f} %)"
        result = (f"{row.return_mean:.2f} +- {row.return_spread:.2f}", f"{100 * row.success_rate:.0f} %")
        rows.append((name, *result, f"{row.limit:.2f}", f"{row.gap:.2f}{percent}", str(row.seed), row.commit, row.date))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) for cells in rows)
    return "\n".join(line.rstrip() for line in lines)


ROOT = Path(__file__).resolve().parents[2]
UNKNOWN = "–"
CODE = ("benchmarks", "generated", "modelgen", "models", "pyproject.toml", "solver", ":!solver/shipped")


def machine() -> str:
    """Cores, memory and processor of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    cores = os.cpu_count() or 1
    return f"{cores} {'core' if cores == 1 else 'cores'}, {memory:.0f} GiB of memory, {name}"


def commit() -> str:
    """Commit of the program's repository, with a + if its code has changed since.

    Changed pages and policies do not count: they are results, which an earlier row may have written. UNKNOWN if the
    program is not in its own repository, for example if it is installed.
    """
    if not (ROOT / ".git").exists():
        return UNKNOWN

    def git(*words: str) -> str:
        words = ("git", "-C", str(ROOT), *words)
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout.strip()

    try:
        named = git("describe", "--always", "--exclude=*")
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *CODE)
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return named + "+" * bool(changed)
