"""A run that is started or resumed with its progress shown, for the commands that train.

The progress is a live line on a terminal; elsewhere, as in a log, a line for each evaluation. After Ctrl-C a hint says
how to resume.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tyro.conf import Positional, arg

from modelgen.commandline.program import warn
from modelgen.errors import in_shell
from solver.errors import SolverError
from solver.runs import kinds
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import Description, Kind, kind_of
from solver.runs.metrics import Report
from solver.runs.shipped import require_no_shipped

if TYPE_CHECKING:
    from solver.preflight import Preflight


@dataclass(frozen=True)
class RunOptions:
    """What the commands that write a run folder have in common."""

    robot: Annotated[str, Positional] = ""
    """Name of a robot built with `modelgen build`."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Run folder. By default runs/NAME, with the robot, the algorithm, what else differs, and the seed in the name."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Annotated[Path | None, arg(metavar="DIR")] = None
    """Continue the run in this folder with its own settings. Give no other option."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def begin(command: str, options: RunOptions, settings: Any, **choices: Any) -> None:
    """Resume the run that the options name, or train a new one with these settings. Raises SolverError for neither.

    choices: further ones of `solver.train`.
    """
    from solver.interface import new_training

    if options.resume is not None:
        _resume(options.resume)
        return
    if not options.robot:
        raise SolverError(f"name a robot to train, for example `solver {command} pendulum`, or a run with --resume DIR")
    new = new_training(options.robot, out=options.out, generated=options.generated, **choices, **vars(settings))
    _train(new.folder, 0, new.description, new.kind, lambda report: new.start(report, options.overwrite, _say))


def _say(checks: Preflight) -> None:
    for line in checks.lines:
        print(line, file=sys.stderr)
    for text in checks.warnings:
        warn(text)


def require_alone(given: Mapping[str, Any]) -> None:
    """Raise SolverError when --resume is given with another option: a run keeps its own settings."""
    if "resume" in given and len(given) > 1:
        raise SolverError("a resumed run keeps its own robot and settings; give --resume DIR and nothing else")


def hint(command: str, folder: Path) -> str:
    """The message after Ctrl-C."""
    if not (folder / CHECKPOINT).is_file():
        return "interrupted before the run had a checkpoint; start it again"
    return f"interrupted; continue with: solver {command} --resume {in_shell(folder)}"


@contextmanager
def progress(done: int, total: int, unit: str = "iteration") -> Iterator[Report]:
    """A function that reports rows of metrics: iterations or actions, time, value error and return."""
    if not sys.stderr.isatty():
        yield _lines(total, unit)
        return
    columns = (
        TextColumn(unit),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, completed=done)
        latest = "return not evaluated yet"

        def report(row: dict[str, float]) -> None:
            nonlocal latest
            latest = _evaluated(row) or latest
            completed, planned = _counted(row, total, unit)
            bar.update(task, completed=completed, total=planned, description=_error(row) + latest)

        yield report


def _lines(total: int, unit: str) -> Report:
    """Print a line for every row with an evaluation."""
    started = time.monotonic()

    def report(row: dict[str, float]) -> None:
        if evaluated := _evaluated(row):
            completed, planned = _counted(row, total, unit)
            seconds = time.monotonic() - started
            print(f"{unit} {completed:.0f}/{planned:.0f}  {_error(row)}{evaluated}  ({seconds:.0f} s)", file=sys.stderr)

    return report


def _evaluated(row: dict[str, float]) -> str:
    """Return and success of a row with an evaluation; empty for other rows."""
    if "return_mean" not in row:
        return ""
    from solver.plants.outcome import decimals

    digits = decimals(row["return_mean"], least=1)
    return f"return {row['return_mean']:.{digits}f}, success {100 * row['success_rate']:.0f} %"


def _counted(row: dict[str, float], total: int, unit: str) -> tuple[float, float]:
    """How many are done, and how many are planned, with the added ones."""
    return row["iteration"] + 1 if unit == "iteration" else row["steps"], total + row.get("waited", 0.0)


def _error(row: dict[str, float]) -> str:
    return f"value error {row['value_error']:.3f}  " if "value_error" in row else ""


def _resume(folder: Path) -> None:
    """Continue a run of any kind."""
    require_no_shipped(folder)
    kind = kind_of(folder)
    run, done = kind.training.read(folder), kind.done(folder)
    _train(folder, done, run, kind, lambda report: kinds.resume(folder, report))


def _train(folder: Path, done: int, run: Description, kind: Kind, train: Callable[[Report], None]) -> None:
    from solver.interface import Run

    with progress(done, run.length, kind.unit) as report:
        try:
            train(report)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(hint(kind.command, folder)) from None
    figures = f"    solver plot {in_shell(folder)}" if kind.command == "train" else ""
    print(f"trained {folder}    next: solver evaluate {in_shell(folder)}{figures}")
    trained = Run(folder)
    if (reached := trained.pace) is not None:
        print(reached)
    if text := trained.diagnosis:
        warn(text)
