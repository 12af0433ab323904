"""A page of results: Markdown with files beside it, and its head, which says how the results were made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from modelgen.files import replacing
from solver.errors import SolverError
from solver.lab.baselines.settings import BaselineSettings
from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import PRESET, Plan
from solver.lab.reproduction.runs import Runs
from solver.runs.folder import write_text
from solver.runs.origin import machine

NONE = "–"  # in a cell without a number


@dataclass(frozen=True)
class Origin:
    """How the runs were made, for the text."""

    command: str
    jobs: int
    threads: int


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
        """Write a figure and refer to it."""
        path = self.out / f"{self.name}{suffix}.png"
        with replacing(path, SolverError) as unfinished:
            figure.savefig(unfinished, dpi=140)
        self.files.append(path)
        self.say(f"![{caption}]({path.name})")

    def keep(self, text: str, suffix: str) -> None:
        """Write another file beside the page."""
        path = self.out / f"{self.name}{suffix}"
        write_text(path, text)
        self.files.append(path)

    def write(self) -> list[Path]:
        """All paths, the text first."""
        path = self.out / f"{self.name}.md"
        write_text(path, "\n".join(self.lines).rstrip() + "\n")
        return [path, *self.files]


def head(page: Page, runs: Runs, origin: Origin, known: set[tuple[str, str, int]]) -> None:
    """Command, seeds, machine, and everything in which this is less than the paper's.

    known: method, robot and seed of what an earlier call measured.
    """
    plan = page.plan
    count = len(plan.seeds)
    page.say(f"# {plan.experiment}, budget {plan.budget_name}")
    page.say(f"Made by `{origin.command}`.")
    own, theirs = "seed" if count == 1 else "seeds", paper_results.SEEDS
    less = f", **fewer than the paper's {theirs}**" if count < theirs else f"; the paper's figures are over {theirs}"
    page.say(f"- {count} {own} ({', '.join(map(str, plan.seeds))}){less}.")
    shared = f"At most {origin.jobs} trainings at once, {origin.threads} threads each."
    page.say(f"- Machine of this page: {machine()}. {shared}")
    page.say(
        f"- Our methods are trained with the preset `{PRESET}`, whose admissible sets, networks and look-ahead are not "
        "the authors'. cFVI and rFVI stand for the paper's DP: uniform states and, with more than one joint, a share "
        "from rollouts that the preset sets (`on_policy_share`). RTDP draws all its states from rollouts, "
        "and spreads them."
    )
    baselines = [t for t in plan.trainings if isinstance(t.settings, BaselineSettings)]
    lengths: dict[tuple[str, int, int, int], list[str]] = {}
    for each in baselines:
        s = each.settings
        robots = lengths.setdefault((s.algorithm, s.steps, s.hold, each.usual.steps), [])
        robots += [each.robot] if each.robot not in robots else []
    for (algorithm, steps, hold, usual), robots in sorted(lengths.items()):
        held = f"{hold} control periods" if hold else "a quarter of the robot's time scale"
        shorter = f", **shorter than the {usual:,} of `solver baseline`**" if steps < usual else ""
        page.say(
            f"- {algorithm.upper()} is trained for {steps:,} actions of {held} each on {', '.join(robots)}{shorter}; "
            "the paper does not print how long its baselines were trained."
        )
    failed = {(f.training.robot, f.training.settings) for f in runs.failures}
    missing: dict[tuple[str, str, str], list[str]] = {}
    for training in plan.trainings:
        key = (training.method, training.robot, training.seed)
        if training not in runs.folders and key not in known:
            why = "failed" if (training.robot, training.settings) in failed else "not trained to the end"
            missing.setdefault((training.method, training.robot, why), []).append(str(training.seed))
    if missing:
        page.say(
            *(
                f"- **Missing:** {method}, {robot}, {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(seeds)}: {why}."
                for (method, robot, why), seeds in missing.items()
            )
        )
