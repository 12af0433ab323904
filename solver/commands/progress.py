"""Progress of a training run: a live line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from solver.runs.metrics import Report


@contextmanager
def progress(done: int, total: int, unit: str = "iteration") -> Iterator[Report]:
    """A report function: iterations or actions done, time left, value error and the last evaluated return."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from solver.plants.outcome import decimals

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
            if "return_mean" in row:
                digits = decimals(row["return_mean"], least=1)
                latest = f"return {row['return_mean']:.{digits}f}, success {100 * row['success_rate']:.0f} %"
            error = f"value error {row['value_error']:.3f}  " if "value_error" in row else ""
            completed = row["iteration"] + 1 if unit == "iteration" else row["steps"]
            waited = row.get("waited", 0.0)  # iterations beyond the planned ones
            bar.update(task, completed=completed, total=total + waited, description=error + latest)

        yield report


def _silent(row: dict[str, float]) -> None:
    """Report nothing."""
