"""Progress of a training run: a live line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from solver.training import Report


@contextmanager
def progress(done: int, iterations: int) -> Iterator[Report]:
    """A report function for `train`: iteration, seconds left, value error and the last evaluated return."""
    if not sys.stderr.isatty():
        yield _silent
        return
    columns = (
        TextColumn("iteration"),
        MofNCompleteColumn(),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=iterations, completed=done)
        latest = "return not evaluated yet"

        def report(row: dict[str, float]) -> None:
            nonlocal latest
            if "return_mean" in row:
                latest = f"return {row['return_mean']:.1f}, success {100 * row['success_rate']:.0f} %"
            bar.update(task, advance=1, description=f"value error {row['value_error']:.3f}  {latest}")

        yield report


def _silent(row: dict[str, float]) -> None:
    """Report nothing."""
