"""Certificates of the paper's robots: cFVI, rFVI and the baselines under the same distributions, a row for each.

The page and a JSON file with its rows stand beside the specifications, which `solver certify RUN FILE` reads too. Rows
are written as soon as their run is trained; later calls keep those of runs and specifications that have not changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean

from solver.certification.bound import episodes_for
from solver.certification.certificate import prove
from solver.certification.experiment import Experiment
from solver.certification.worst import worst_case
from solver.jobs.portions import policy
from solver.lab.reproduction.experiments import Plan, Training
from solver.lab.reproduction.page import Origin, Page
from solver.lab.reproduction.rows import read_rows
from solver.problem.robots import load_robot
from solver.runs.origin import commit, machine

PROBABILITY, CONFIDENCE = 0.01, 0.95
EPISODES = episodes_for(PROBABILITY, CONFIDENCE, 0)
CHANGE = 0.15  # of every parameter that the model file gives a tolerance, up or down
SEED = 0
NOMINAL, CHANGED, HARSH, OBSERVED = "nominal", "parameters", "harsh", "harsh, observer"


@dataclass(frozen=True)
class Row:
    """What one run came to under one specification."""

    robot: str
    method: str
    seed: int
    distribution: str
    failures: int
    failure_bound: float
    return_mean: float
    worst_return: float
    worst_success: bool
    random_return: float  # of the worst of as many random samples
    machine: str
    commit: str
    checkpoint: str  # sha256
    specification: str  # word for word

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What a table has one row of."""
        return self.robot, self.distribution, self.method, self.seed


class Certificates:
    """The page and its JSON file, written anew with every row.

    Raises SolverError for a JSON file of another content.
    """

    def __init__(self, plan: Plan, out: Path, origin: Origin, announce: Callable[[str], None]) -> None:
        self.plan, self.out, self.origin, self.announce = plan, out, origin, announce
        self.rows = {row.key: row for row in read_rows(out / "certificates.json", Row)}
        self.texts = {robot: dict(specifications(robot, plan.generated)) for robot in plan.robots}

    def add(self, training: Training, folder: Path) -> None:
        """Certify a finished run under every specification of its robot, unless that is known, and write the page."""
        told = policy(folder, self.plan.generated)
        for distribution, text in self.texts[training.robot].items():
            key = (training.robot, distribution, training.method, training.seed)
            before = self.rows.get(key)
            if before is None or (before.checkpoint, before.specification) != (told.checkpoint, text):
                self.announce(f"certifying {', '.join(map(str, key))}")
                self.write()  # the file with the specification
                experiment = Experiment(told, self._file(training.robot, distribution))
                bound, worst = prove(experiment, SEED), worst_case(folder, experiment, SEED)
                self.rows[key] = Row(
                    *(training.robot, training.method, training.seed, distribution),
                    *(bound.failures, bound.failure_bound, bound.return_mean),
                    *(worst.found.total, worst.found.success, worst.random.total),
                    *(machine(), commit(), told.checkpoint, text),
                )
                self.write()

    def write(self) -> list[Path]:
        """The page, the specifications and the JSON file; returns their paths."""
        page = Page(self.plan, self.out)
        page.name = "certificates"
        page.say("# Certificates of the paper's robots")
        page.say(
            f"Made by `{self.origin.command}`. {EPISODES} independent rollouts of every run under every distribution; "
            f"with 0 failures they show that at most {100 * PROBABILITY:g} % fail, at confidence {CONFIDENCE:g}. "
            "`bound` is the one of Clopper and Pearson from the failures that came. `worst found` is the lowest return "
            "of a search over starts, parameters and the plant's noise, and `random` that of as many random samples; a "
            "star marks a failure. One distribution is one specification: the file's name is under each heading, for "
            "`solver certify RUN FILE`."
        )
        page.say("## Over the seeds", "", "The bound is that of the worst seed, and the worst case the worst of all.")
        header = ["robot", "distribution", "policy", "seeds", "failures", "bound", "mean return", "worst found"]
        names = [(robot, distribution) for robot, texts in self.texts.items() for distribution in texts]
        groups = [list(rows) for name in names for _, rows in groupby(self._of(*name), lambda row: row.method)]
        page.table(header, [_over_seeds(rows) for rows in groups])
        for robot, texts in self.texts.items():
            page.say(f"## {robot}")
            for distribution, text in texts.items():
                page.keep(text, f"-{_name(robot, distribution)}.toml")
                self._table(page, robot, distribution)
        rows = [dataclasses.asdict(self.rows[key]) for key in sorted(self.rows)]
        page.keep(json.dumps({"rows": rows}, indent=1, allow_nan=False) + "\n", ".json")
        return page.write()

    def _file(self, robot: str, distribution: str) -> Path:
        return self.out / f"certificates-{_name(robot, distribution)}.toml"

    def _table(self, page: Page, robot: str, distribution: str) -> None:
        page.say(f"### {MEANING[distribution]}", "", f"`{self._file(robot, distribution).name}`")
        header = ["policy", "seed", "failures", "bound", "mean return", "worst found", "random"]
        header += ["machine", "commit"]
        page.table(header, [_cells(row) for row in self._of(robot, distribution)])

    def _of(self, robot: str, distribution: str) -> list[Row]:
        """The rows of a robot under a distribution: by method, in the order of the plan, and seed."""
        order = [method.name for method in self.plan.methods]
        found = (row for row in self.rows.values() if (row.robot, row.distribution) == (robot, distribution))
        return sorted(found, key=lambda row: ([*order, row.method].index(row.method), row.method, row.seed))


MEANING = {
    NOMINAL: "The robot of the model file",
    CHANGED: f"Every parameter with a tolerance within {100 * CHANGE:g} %",
    HARSH: "Harsh plant, rates by differences",
    OBSERVED: "Harsh plant, states of the observer",
}


def specifications(robot: str, generated: str | None) -> Iterator[tuple[str, str]]:
    """The distributions of a robot, by name, as the text of a TOML file."""
    parameters = load_robot(robot, "cpu", generated).metadata.parameters
    change = [f"{each.name} = [{1 - CHANGE:g}, {1 + CHANGE:g}]" for each in parameters if each.lower < each.upper]
    bound = [f"failure_probability = {PROBABILITY:g}", f"confidence = {CONFIDENCE:g}"]
    yield NOMINAL, "\n".join([*bound, ""])
    yield CHANGED, "\n".join([*bound, "", "[parameters.relative]", *change, ""])
    yield HARSH, "\n".join([*bound, 'plant = "harsh"', ""])
    yield OBSERVED, "\n".join([*bound, 'plant = "harsh"', "observer = true", ""])


def _name(robot: str, distribution: str) -> str:
    return f"{robot}-{distribution.replace(', ', '-')}"


def _over_seeds(rows: Sequence[Row]) -> list[str]:
    """One line for the rows of a method."""
    first, worst = rows[0], min(rows, key=lambda row: row.worst_return)
    return [
        *(first.robot, first.distribution, first.method, ", ".join(str(row.seed) for row in rows)),
        f"{sum(row.failures for row in rows)} of {len(rows) * EPISODES}",
        f"{100 * max(row.failure_bound for row in rows):.1f} %",
        f"{fmean(row.return_mean for row in rows):.2f}",
        _worst(worst),
    ]


def _worst(row: Row) -> str:
    return f"{row.worst_return:.2f}{'' if row.worst_success else ' *'}"


def _cells(row: Row) -> list[str]:
    return [
        *(row.method, str(row.seed), f"{row.failures} of {EPISODES}", f"{100 * row.failure_bound:.1f} %"),
        *(f"{row.return_mean:.2f}", _worst(row)),
        *(f"{row.random_return:.2f}", row.machine, row.commit),
    ]
