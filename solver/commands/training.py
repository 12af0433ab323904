"""Start or resume a run and show its progress, for `solver train` and `solver baseline`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from modelgen.commandline.program import warn
from modelgen.loader import CompiledRobot
from solver.commands.progress import progress
from solver.commands.resuming import hint
from solver.runs import kinds
from solver.runs.folder import Report, pace, read_metrics
from solver.runs.kinds import Description, Kind, kind_of
from solver.runs.shipped import require_no_shipped


def start(
    kind: Kind,
    run: Description,
    out: Path | None,
    overwrite: bool,
    before: Callable[[], None] = lambda: None,
    robot: CompiledRobot | None = None,
) -> None:
    """Train a new run. Raises KeyboardInterrupt with the command that continues it.

    before, robot: as in `solver.runs.kinds.start`.
    """
    folder = out or Path("runs") / run.name
    _train(kind, run, folder, 0, lambda report: kinds.start(kind, run, folder, report, overwrite, before, robot))


def resume(folder: Path) -> None:
    """Continue a run of any kind."""
    require_no_shipped(folder)
    kind = kind_of(folder)
    run, done = kind.training.read(folder), kind.done(folder)
    _train(kind, run, folder, done, lambda report: kinds.resume(folder, report))


def _train(kind: Kind, run: Description, folder: Path, done: int, train: Callable[[Report], None]) -> None:
    with progress(done, run.length, kind.unit) as report:
        try:
            train(report)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(hint(kind.command, folder)) from None
    figures = f"    solver plot {folder}" if kind.command == "train" else ""
    print(f"trained {folder}    next: solver evaluate {folder}{figures}")
    if (reached := pace(read_metrics(folder))) is not None:
        print(reached)
    text = kind.training.diagnosis(folder)
    if text:
        warn(text)
