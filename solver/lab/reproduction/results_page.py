"""A page of results in Markdown, with figures and a JSON file, and the paper's results for comparison.

Returns: simulated systems, downward start, mean and 1.96 standard deviations, success in %. Rows have the names in the
paper; its columns on start and randomisation contradict some of these names. The table has no RTDP rFVI: by the text,
RTDP rFVI does not learn the swing-up of the cart-pole and the Furuta pendulum with the full admissible set.

Several results share a page. Each has a section between two marks there, and what persons write around it stays when
it is made again. A later call also keeps rows of the JSON file, so that a table can be made run by run.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from modelgen.artifact.manifest import typed
from solver.errors import SolverError
from solver.evaluation.plots import save_figure
from solver.lab.baselines.settings import BaselineSettings
from solver.lab.reproduction.experiments import PRESET, Plan, PlannedRun
from solver.lab.reproduction.runs import Runs
from solver.runs.folder import write_text

SEEDS = 5  # of every row and every curve
ROBOTS = ("pendulum", "cartpole", "furuta")

Number = tuple[float, float]  # mean and spread

#: By row, for each of ROBOTS: mean return, spread, success.
RETURNS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "cFVI": ((-30.5, 0.8, 100), (-24.2, 2.1, 100), (-27.7, 1.6, 100)),
    "rFVI": ((-32.7, 0.3, 100), (-27.1, 4.8, 100), (-41.3, 10.8, 100)),
    "RTDP cFVI": ((-31.1, 1.4, 100), (-24.9, 1.6, 100), (-40.1, 2.7, 100)),
    "SAC-N": ((-31.1, 0.1, 100), (-26.9, 3.2, 100), (-29.3, 1.5, 100)),
    "SAC-N UDR": ((-32.9, 0.6, 100), (-29.7, 4.6, 100), (-32.0, 1.1, 100)),
    "SAC-U": ((-30.6, 1.4, 100), (-24.2, 1.4, 100), (-28.1, 2.0, 100)),
    "SAC-U UDR": ((-31.4, 2.5, 100), (-24.2, 1.3, 100), (-28.1, 1.3, 100)),
    "DDPG-N": ((-31.1, 0.4, 100), (-50.4, 285.6, 98), (-30.5, 3.5, 100)),
    "DDPG-N UDR": ((-32.5, 0.5, 100), (-27.4, 2.3, 100), (-34.6, 9.8, 100)),
    "DDPG-U": ((-31.5, 0.7, 100), (-28.2, 5.5, 100), (-30.0, 1.7, 100)),
    "DDPG-U UDR": ((-32.5, 3.6, 100), (-27.2, 1.0, 100), (-32.1, 1.5, 100)),
    "PPO-N": ((-32.0, 0.2, 100), (-31.5, 7.2, 100), (-81.1, 18.3, 100)),
    "PPO-N UDR": ((-32.3, 0.6, 100), (-84.0, 7.8, 100), (-40.9, 4.6, 100)),
    "PPO-U": ((-33.4, 4.7, 100), (-39.7, 45.7, 99), (-38.2, 13.1, 100)),
    "PPO-U UDR": ((-35.6, 3.1, 100), (-44.8, 21.4, 100), (-48.5, 6.2, 100)),
}

#: By row, for each of ROBOTS: state reward and action reward.
REWARDS: dict[str, tuple[tuple[Number, Number], ...]] = {
    "rFVI": (((-24.5, 0.1), (-8.3, 0.4)), ((-15.5, 5.4), (-11.6, 2.0)), ((-37.0, 13.2), (-4.8, 2.7))),
    "cFVI": (((-22.3, 3.0), (-8.3, 3.2)), ((-14.4, 2.8), (-9.9, 2.2)), ((-22.3, 2.5), (-5.9, 1.3))),
    "SAC-U": (((-21.1, 5.2), (-9.4, 4.7)), ((-13.9, 2.4), (-10.4, 2.3)), ((-22.6, 2.9), (-5.9, 1.5))),
    "SAC-U UDR": (((-22.6, 2.6), (-8.9, 1.9)), ((-13.9, 2.6), (-10.3, 2.5)), ((-22.1, 2.6), (-6.1, 1.4))),
    "DDPG-U": (((-20.9, 1.2), (-10.6, 1.3)), ((-16.4, 4.7), (-11.8, 4.9)), ((-24.6, 3.6), (-5.5, 1.9))),
    "DDPG-U UDR": (((-21.0, 4.8), (-11.5, 1.6)), ((-14.5, 3.5), (-12.8, 3.5)), ((-26.1, 2.4), (-6.2, 1.9))),
    "PPO-U": (((-24.5, 4.4), (-9.0, 2.4)), ((-82.2, 83.1), (-4.9, 1.1)), ((-34.9, 12.6), (-3.4, 1.1))),
    "PPO-U UDR": (((-24.5, 0.2), (-11.1, 3.0)), ((-55.9, 23.1), (-9.8, 5.2)), ((-42.9, 4.6), (-6.1, 2.4))),
}

#: Best return from exactly downward by direct trajectory optimisation, by plant and robot. `solver limit ROBOT` prints
#: the values of `nominal`.
LIMITS = {
    "nominal": {"pendulum": -30.4, "cartpole": -24.9, "furuta": -29.0},
    "euler": {"pendulum": -29.9, "cartpole": -24.4, "furuta": -28.5},
}

#: Rollouts of the authors' checkpoints on the pendulum by multiple of its mass: mean return, success in % or None.
CHECKPOINTS: dict[str, dict[float, tuple[float, float | None]]] = {
    "cFVI": {0.5: (-18.6, None), 1.0: (-31.0, 100), 1.3: (-45.6, None), 1.5: (-49.2, 83)},
    "rFVI": {0.5: (-20.7, None), 1.0: (-33.7, 100), 1.3: (-39.2, None), 1.5: (-48.4, 100)},
}


def cell(mean: float, success: float | None) -> str:
    """Mean return, with the success rate in % if it is not 100."""
    known = NONE if success is None else f"{success:.3g} %"
    return f"{mean:.1f}" if success == 100 else f"{mean:.1f} ({known})"


def returns(method: str, robot: str) -> tuple[float, float, float] | None:
    """Mean return, spread and success of a row on a robot, or None if the paper gives no figure."""
    return RETURNS[method][ROBOTS.index(robot)] if method in RETURNS and robot in ROBOTS else None


def rewards(method: str, robot: str) -> tuple[Number, Number] | None:
    """State and action reward of a row on a robot, or None if the paper gives no figure."""
    return REWARDS[method][ROBOTS.index(robot)] if method in REWARDS and robot in ROBOTS else None


Row = TypeVar("Row")
Content = TypeVar("Content")

NONE = "–"  # cell without a number
#: Page of every experiment, and heading of its section there.
SECTIONS = {
    "gallery": ("gallery", "Every robot with the default settings"),
    "fig-parameters": ("robustness", "Wrong parameters"),
    "fig-robustness": ("robustness", "Over the mass"),
    "certificates": ("robustness", "Bounds on failures"),
    "table1": ("paper", "Table 1"),
    "fig-learning": ("paper", "Learning curves"),
    "fig-value": ("paper", "Value functions"),
    "fig-ablation": ("paper", "Ablation"),
}


class Page:
    """Section of a Markdown page, under construction. Figures are written at once, the text by `write`."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.plan, self.out = plan, out
        self.name = f"{plan.experiment}-{plan.budget_name}"  # of the section and of its files
        self.stem, heading = SECTIONS[plan.experiment]
        self.lines: list[str] = [f"## {heading}", ""]
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
        path = save_figure(figure, self.out / f"{self.name}{suffix}.png")
        self.files.append(path)
        self.say(f"![{caption}]({path.relative_to(self.out).as_posix()})")

    def data(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write a table as the CSV file of the section."""
        csv.writer(text := io.StringIO(), lineterminator="\n").writerows([header, *rows])
        self.keep(text.getvalue(), ".csv")

    def keep(self, content: Any, suffix: str) -> None:
        """Write another file with the name of the page and a suffix: a text, or data as JSON."""
        path = self.out / f"{self.name}{suffix}"
        write_text(path, content if isinstance(content, str) else json.dumps(content, indent=1, allow_nan=False) + "\n")
        self.files.append(path)

    def write(self) -> list[Path]:
        """Write the section into its page. Returns all paths, the page first.

        Raises SolverError for a page whose section has no end.
        """
        path = self.out / f"{self.stem}.md"
        begin, end = f"<!-- made by solver reproduce: {self.name} -->", f"<!-- end of {self.name} -->"
        text = path.read_text(encoding="utf-8") if path.is_file() else f"# Results: {self.stem}\n"
        before, found, rest = text.partition(begin)
        if found and end not in rest:
            raise SolverError(f"{path} lacks the line '{end}' below '{begin}'; write it where the section ends")
        after = rest.partition(end)[2].lstrip("\n") if found else ""
        gap = "\n" if after else ""
        section = "\n".join([begin, *self.lines]).rstrip()
        write_text(path, f"{before.rstrip()}\n\n{section}\n{end}\n{gap}{after}")
        return [path, *self.files]


def head(page: Page, runs: Runs, command: str, known: set[tuple[str, str, int]]) -> None:
    """Append the head: command, seeds, lengths of the baselines' trainings, and missing runs.

    known: method, robot and seed of the runs that an earlier call measured.
    """
    plan = page.plan
    count, theirs = len(plan.seeds), SEEDS
    less = f"**fewer than the paper's {theirs}**" if count < theirs else f"the paper has {theirs}"
    seeds = f"{count} {'seed' if count == 1 else 'seeds'} ({', '.join(map(str, plan.seeds))})"
    page.say(f"Made by `{command}`: {seeds}, {less}. Preset of our methods: `{PRESET}`.")
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
    algorithms: dict[str, list[str]] = {}
    for (algorithm, steps, hold, usual), robots in sorted(lengths.items()):
        line = (
            f"{steps:,} actions of {f'{hold} control periods' if hold else 'a quarter of the time scale'} on "
            f"{', '.join(robots)}{f', **shorter than the {usual:,} of `solver baseline`**' if steps < usual else ''}."
        )
        algorithms.setdefault(line, []).append(algorithm.upper())
    return [f"- {', '.join(names)}: {line}" for line, names in algorithms.items()]


def _missing(plan: Plan, runs: Runs, known: set[tuple[str, str, int]]) -> list[str]:
    """Lines on runs without a result."""
    failed = {(failure.training.robot, failure.training.settings) for failure in runs.failures}
    found = (t for t in plan.trainings if t not in runs.folders and (t.method, t.robot, t.seed) not in known)
    return missing((t, "failed" if (t.robot, t.settings) in failed else "not trained to the end") for t in found)


def missing(trainings: Iterable[tuple[PlannedRun, str]]) -> list[str]:
    """Lines on trainings without a result, with their reasons. Robots and methods with equal seeds share a line."""
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for training, why in trainings:
        seeds.setdefault((training.robot, training.method, why), []).append(str(training.seed))
    methods: dict[tuple[str, str, str], list[str]] = {}
    for (robot, method, why), some in seeds.items():
        word = f"{'seed' if len(some) == 1 else 'seeds'} {', '.join(some)}"
        methods.setdefault((robot, word, why), []).append(method)
    robots: dict[str, list[str]] = {}
    for (robot, word, why), names in methods.items():
        robots.setdefault(f"{word}, {why}: {'; '.join(names)}", []).append(robot)
    return [f"- **Missing:** {', '.join(names)}, {rest}." for rest, names in robots.items()]


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
