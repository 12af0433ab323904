"""Progress of a training run: a live line on a terminal; elsewhere, as in a log, a line for each evaluation."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from solver.runs.folder import Report


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
