"""A page of results: Markdown with files beside it, and its head, which says how the results were made.

Notes of people stand below the last line of a page. They are kept when the page is made again.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from modelgen.files import replacing
from solver.errors import SolverError
from solver.lab.baselines.settings import BaselineSettings
from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import PRESET, Plan
from solver.lab.reproduction.runs import Runs
from solver.runs.folder import write_text

NONE = "–"  # in a cell without a number
NOTES = "<!-- Notes: kept when the page is made again. -->"


class Page:
    """Collects Markdown, and writes figures as they come."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.plan, self.out = plan, out
        self.name = f"{plan.experiment}-{plan.budget_name}"
        self.lines: list[str] = []
        self.files: list[Path] = []

    def say(self, *lines: str) -> None:
        """Append lines and an empty one."""
        self.lines += [*lines, ""]

    def table(self, header: list[str], rows: list[list[str]]) -> None:
        """Append a table, the first column to the left."""
        marks = ["---", *["---:"] * (len(header) - 1)]
        self.say(*("| " + " | ".join(cells) + " |" for cells in [header, marks, *rows]))

    def show(self, figure: Figure, suffix: str, caption: str) -> None:
        """Write a figure, and show it on the page."""
        path = self.out / f"{self.name}{suffix}.png"
        with replacing(path, SolverError) as unfinished:
            figure.savefig(unfinished, dpi=140)
        self.files.append(path)
        self.say(f"![{caption}]({path.relative_to(self.out).as_posix()})")

    def keep(self, text: str, suffix: str) -> None:
        """Write another file, named after the page."""
        path = self.out / f"{self.name}{suffix}"
        write_text(path, text)
        self.files.append(path)

    def write(self) -> list[Path]:
        """All paths, the text first."""
        path = self.out / f"{self.name}.md"
        before = path.read_text(encoding="utf-8") if path.is_file() else ""
        text = "\n".join(self.lines).rstrip()
        write_text(path, f"{text}\n\n{NOTES}\n{before.partition(NOTES)[2].lstrip()}")
        return [path, *self.files]


def head(page: Page, runs: Runs, command: str, known: set[tuple[str, str, int]]) -> None:
    """Command, seeds, lengths of the baselines' trainings, and missing runs.

    known: method, robot and seed of what an earlier call measured.
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
    """Lengths of the baselines' trainings, which the paper does not print."""
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
    """Runs without a result. Methods that lack the same seeds for the same reason share a line."""
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
