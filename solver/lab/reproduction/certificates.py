"""Certificates of the paper's robots: cFVI, rFVI and the baselines under the same distributions.

The specifications lie beside the page and its JSON file; `solver certify RUN FILE` reads them too. A row is written as
soon as its run is trained. Later calls keep rows of unchanged runs and specifications.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from solver.certification.certificate import prove
from solver.certification.experiment import Experiment, episodes_for
from solver.certification.worst import worst_case
from solver.jobs.engines import policy_reference
from solver.lab.reproduction.experiments import Plan, PlannedRun
from solver.lab.reproduction.results_page import NONE, Page, read_rows
from solver.problem.robots import load_robot
from solver.runs.shipped import commit, machine

PROBABILITY, CONFIDENCE = 0.01, 0.95
EPISODES = episodes_for(PROBABILITY, CONFIDENCE, 0)
CHANGE = 0.15  # relative change of every parameter that has a tolerance in the model file
SEED = 0
NOMINAL, CHANGED, HARSH, OBSERVED = "nominal", "parameters", "harsh", "harsh, observer"


@dataclass(frozen=True)
class CertificateRow:
    """Result of one run under one specification."""

    robot: str
    method: str
    seed: int
    distribution: str
    failures: int
    failure_bound: float
    return_mean: float
    worst_return: float
    worst_success: bool
    random_return: float  # worst return of as many random samples
    machine: str
    commit: str
    checkpoint: str  # sha256
    specification: str  # text of the file

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Key of a row: robot, distribution, method and seed."""
        return self.robot, self.distribution, self.method, self.seed


class Certificates:
    """Page and JSON file, which are written again after every row.

    Raises SolverError for a JSON file with other content.
    """

    def __init__(self, plan: Plan, out: Path, command: str, announce: Callable[[str], None]) -> None:
        self.plan, self.out, self.command, self.announce = plan, out, command, announce
        self.rows = {row.key: row for row in read_rows(out / "certificates.json", CertificateRow)}
        self.texts = {robot: dict(specifications(robot, plan.generated)) for robot in plan.robots}

    def add(self, training: PlannedRun, folder: Path, anew: bool = False) -> None:
        """Certify a finished run under all specifications of its robot, unless the row exists, and write the page.

        anew: even then.
        """
        policy = policy_reference(folder, self.plan.generated)
        for distribution, text in self.texts[training.robot].items():
            key = (training.robot, distribution, training.method, training.seed)
            before = self.rows.get(key)
            same = before is not None and (before.checkpoint, before.specification) == (policy.checkpoint, text)
            if anew or not same:
                self.announce(f"certifying {', '.join(map(str, key))}")
                self.write()  # the file with the specification
                experiment = Experiment(policy, self._file(training.robot, distribution))
                bound, worst = prove(experiment, SEED), worst_case(folder, experiment, SEED)
                self.rows[key] = CertificateRow(
                    *(training.robot, training.method, training.seed, distribution),
                    *(bound.failures, bound.failure_bound, bound.return_mean),
                    *(worst.worst.total, worst.worst.success, worst.random.total),
                    *(machine(), commit(), policy.checkpoint, text),
                )
                self.write()

    def write(self) -> list[Path]:
        """Write the page, the specifications and the JSON file. Returns their paths."""
        page = Page(self.plan, self.out)
        page.name = "certificates"
        page.say(
            f"Made by `{self.command}`: `solver certify RUN FILE` with the file of the row, {EPISODES} independent "
            f"rollouts a seed. If none fails, at most {100 * PROBABILITY:g} % of rollouts fail, at confidence "
            f"{CONFIDENCE:g}. A cell: worst return of a search; failures/rollouts. A star: the worst case of a seed is "
            "a failure. In parentheses: the bound of Clopper and Pearson for the worst seed, if there are failures. A "
            "search is no proof. `certificates.json` has every seed."
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
        page.keep({"rows": rows}, ".json")
        return page.write()

    def _file(self, robot: str, distribution: str) -> Path:
        return self.out / "certificates" / f"{_name(robot, distribution)}.toml"

    def _cell(self, robot: str, distribution: str, method: str) -> str:
        """Worst case, failures and bound over the seeds of a method."""
        rows = [row for key, row in self.rows.items() if key[:3] == (robot, distribution, method)]
        if not rows:
            return NONE
        failures = sum(row.failures for row in rows)
        bound = f" ({100 * max(row.failure_bound for row in rows):.1f} %)" if failures else ""
        worst = f"{min(row.worst_return for row in rows):.1f}{'' if all(row.worst_success for row in rows) else ' *'}"
        return f"{worst}; {failures}/{len(rows) * EPISODES}{bound}"


def specifications(robot: str, generated: str | None) -> Iterator[tuple[str, str]]:
    """Names of a robot's distributions, each with the text of its TOML file."""
    parameters = load_robot(robot, "cpu", generated).metadata.parameters
    change = [f"{p.name} = [{1 - CHANGE:g}, {1 + CHANGE:g}]" for p in parameters if p.lower < p.upper]
    bound = [f"failure_probability = {PROBABILITY:g}", f"confidence = {CONFIDENCE:g}"]
    yield NOMINAL, "\n".join([*bound, ""])
    yield CHANGED, "\n".join([*bound, "", "[parameters.relative]", *change, ""])
    yield HARSH, "\n".join([*bound, 'plant = "harsh"', ""])
    yield OBSERVED, "\n".join([*bound, 'plant = "harsh"', "observer = true", ""])


def _name(robot: str, distribution: str) -> str:
    return f"{robot}-{distribution.replace(', ', '-')}"
