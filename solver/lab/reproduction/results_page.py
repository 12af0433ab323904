"""A page of results in Markdown, with figures and a JSON file beside it, and its head with command and missing runs.

A person may write notes below the last line of a page. They stay when the page is made again. A later call also keeps
rows of the JSON file, so that a table can be made run by run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from modelgen.artifact.manifest import typed
from modelgen.files import replacing
from solver.errors import SolverError
from solver.lab.baselines.settings import BaselineSettings
from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import PRESET, Plan
from solver.lab.reproduction.runs import Runs
from solver.runs.folder import write_text

Row = TypeVar("Row")
Content = TypeVar("Content")

NONE = "–"  # cell without a number
NOTES = "<!-- Notes: kept when the page is made again. -->"


class Page:
    """Markdown page under construction. Figures are written at once, the text by `write`."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.plan, self.out = plan, out
        self.name = f"{plan.experiment}-{plan.budget_name}"
        self.lines: list[str] = []
        self.files: list[Path] = []

    def say(self, *lines: str) -> None:
        """Append lines and an empty line."""
        self.lines += [*lines, ""]

    def table(self, header: list[str], rows: list[list[str]]) -> None:
        """Append a table. Its first column is aligned to the left."""
        marks = ["---", *["---:"] * (len(header) - 1)]
        self.say(*("| " + " | ".join(cells) + " |" for cells in [header, marks, *rows]))

    def show(self, figure: Figure, suffix: str, caption: str) -> None:
        """Write a figure and append it to the page."""
        path = self.out / f"{self.name}{suffix}.png"
        with replacing(path, SolverError) as unfinished:
            figure.savefig(unfinished, dpi=140)
        self.files.append(path)
        self.say(f"![{caption}]({path.relative_to(self.out).as_posix()})")

    def keep(self, text: str, suffix: str) -> None:
        """Write another file with the name of the page and a suffix."""
        path = self.out / f"{self.name}{suffix}"
        write_text(path, text)
        self.files.append(path)

    def write(self) -> list[Path]:
        """Write the page. Returns all paths, the page first."""
        path = self.out / f"{self.name}.md"
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        text = "\n".join(self.lines).rstrip()
        write_text(path, f"{text}\n\n{NOTES}\n{before.partition(NOTES)[2].lstrip()}")
        return [path, *self.files]


def head(page: Page, runs: Runs, command: str, known: set[tuple[str, str, int]]) -> None:
    """Append the head: command, seeds, lengths of the baselines' trainings, and missing runs.

    known: method, robot and seed of the runs that an earlier call measured.
    """
    plan = page.plan
    count, theirs = len(plan.seeds), paper_results.SEEDS
    less = f"**fewer than the paper's {theirs}**" if count < theirs else f"the paper has {theirs}"
    seeds = f"{count} {'seed' if count == 1 else 'seeds'} ({', '.join(map(str, plan.seeds))})"
    page.say(f"# {plan.experiment}, budget {plan.budget_name}")
    page.say(
        f"Made by `{command}`: {seeds}, {less}. Our methods use the preset `{PRESET}`. Its admissible sets, networks "
        "and look-ahead are not the authors'."
    )
    lines = [*_lengths(plan), *_missing(plan, runs, known)]
    if lines:
        page.say(*lines)


def _lengths(plan: Plan) -> list[str]:
    """Lines on the lengths of the baselines' trainings, which the paper does not give."""
    lengths: dict[tuple[str, int, int, int], list[str]] = {}
    for training in plan.trainings:
        s = training.settings
        if isinstance(s, BaselineSettings):
            robots = lengths.setdefault((s.algorithm, s.steps, s.hold, training.usual.steps), [])
            robots += [training.robot] if training.robot not in robots else []
    return [
        f"- {algorithm.upper()}: {steps:,} actions of "
        f"{f'{hold} control periods' if hold else 'a quarter of the time scale'} on {', '.join(robots)}"
        f"{f', **shorter than the {usual:,} of `solver baseline`**' if steps < usual else ''}."
        for (algorithm, steps, hold, usual), robots in sorted(lengths.items())
    ]


def _missing(plan: Plan, runs: Runs, known: set[tuple[str, str, int]]) -> list[str]:
    """Lines on runs without a result. Methods with the same missing seeds and reason share a line."""
    failed = {(failure.training.robot, failure.training.settings) for failure in runs.failures}
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for training in plan.trainings:
        key = (training.method, training.robot, training.seed)
        if training not in runs.folders and key not in known:
            why = "failed" if (training.robot, training.settings) in failed else "not trained to the end"
            seeds.setdefault((training.robot, training.method, why), []).append(str(training.seed))
    methods: dict[tuple[str, str, str], list[str]] = {}
    for (robot, method, why), some in seeds.items():
        word = f"{'seed' if len(some) == 1 else 'seeds'} {', '.join(some)}"
        methods.setdefault((robot, word, why), []).append(method)
    return [
        f"- **Missing:** {robot}, {word}, {why}: {'; '.join(names)}." for (robot, word, why), names in methods.items()
    ]


def read_known(path: Path, read: Callable[[Any], Content]) -> Content | None:
    """Content of a JSON file after `read`, or None without a file. Raises SolverError if `read` refuses the content."""
    if not path.is_file():
        return None
    try:
        return read(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise SolverError(
            f"{path} is damaged or from another version ({error}); move it away, or write to another folder with --out"
        ) from error


def read_rows(path: Path, kind: type[Row], also: Callable[[dict[str, Any]], None] = lambda _: None) -> list[Row]:
    """Entries of `rows` in a JSON file as dataclasses of a kind; empty without a file.

    also: reads other parts of the content. Raises SolverError for other content.
    """

    def read(content: Any) -> list[Row]:
        also(content)
        return [typed(kind, entry, "rows") for entry in content["rows"]]

    return read_known(path, read) or []
