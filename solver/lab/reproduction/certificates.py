"""Certificates of the paper's robots: cFVI, rFVI and the baselines under the same distributions, a row for each.

The page and a JSON file with its rows stand beside the specifications, which `solver certify RUN FILE` reads too. Rows
are written as soon as their run is trained; later calls keep those of runs and specifications that have not changed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from solver.certification.certificate import prove
from solver.certification.experiment import Experiment, episodes_for
from solver.certification.worst import worst_case
from solver.jobs.portions import policy
from solver.lab.reproduction.experiments import Plan, Training
from solver.lab.reproduction.page import NONE, Page
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

    def __init__(self, plan: Plan, out: Path, command: str, announce: Callable[[str], None]) -> None:
        self.plan, self.out, self.command, self.announce = plan, out, command, announce
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
                    *(worst.worst.total, worst.worst.success, worst.random.total),
                    *(machine(), commit(), told.checkpoint, text),
                )
                self.write()

    def write(self) -> list[Path]:
        """The page, the specifications and the JSON file; returns their paths."""
        page = Page(self.plan, self.out)
        page.name = "certificates"
        page.say("# Certificates of the paper's robots")
        page.say(
            f"Made by `{self.command}`. Every seed is certified by `solver certify RUN FILE` with the file of each "
            f"row and {EPISODES} independent rollouts. Without a failure they show that at most "
            f"{100 * PROBABILITY:g} % fail, at confidence {CONFIDENCE:g}. A cell holds the mean return over the seeds, "
            "the worst return that a search found, and the failures. A star: the worst case of a seed is a failure. "
            "In parentheses: the bound (Clopper and Pearson) of the worst seed, where there are failures. A search is "
            "no proof. Every seed by itself: `certificates.json`."
        )
        names = [method.name for method in self.plan.methods] + [row.method for row in self.rows.values()]
        methods = list(dict.fromkeys(names))
        table = []
        for robot, texts in self.texts.items():
            for distribution, text in texts.items():
                page.keep(text, f"/{_name(robot, distribution)}.toml")
                file = self._file(robot, distribution).relative_to(self.out).as_posix()
                cells = [self._cell(robot, distribution, method) for method in methods]
                table.append([f"[{robot}, {distribution}]({file})", *cells])
        page.table(["", *methods], table)
        rows = [dataclasses.asdict(self.rows[key]) for key in sorted(self.rows)]
        page.keep(json.dumps({"rows": rows}, indent=1, allow_nan=False) + "\n", ".json")
        return page.write()

    def _file(self, robot: str, distribution: str) -> Path:
        return self.out / "certificates" / f"{_name(robot, distribution)}.toml"

    def _cell(self, robot: str, distribution: str, method: str) -> str:
        """Mean return, worst case, failures and bound over the seeds of a method."""
        rows = [row for key, row in self.rows.items() if key[:3] == (robot, distribution, method)]
        if not rows:
            return NONE
        failures = sum(row.failures for row in rows)
        bound = f" ({100 * max(row.failure_bound for row in rows):.1f} %)" if failures else ""
        mean = f"{fmean(row.return_mean for row in rows):.1f}"
        worst = f"{min(row.worst_return for row in rows):.1f}{'' if all(row.worst_success for row in rows) else ' *'}"
        return f"{mean}; {worst}; {failures} of {len(rows) * EPISODES}{bound}"


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
