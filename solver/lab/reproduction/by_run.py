"""Pages that are written run by run: the gallery, and certificates.

A row is written as soon as its run is trained. Later calls keep rows of unchanged runs and specifications, and of other
robots.
"""

from __future__ import annotations

import dataclasses
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch

from solver.certification import prove
from solver.certification.experiment import Experiment, episodes_for
from solver.certification.worst import worst_case
from solver.errors import SolverError
from solver.jobs.engines import policy_reference
from solver.lab.reproduction.experiments import Plan, PlannedRun
from solver.lab.reproduction.results_page import NONE, Page, missing, read_rows
from solver.lab.reproduction.runs import settings_hash
from solver.oracles.limit import find_limit, percent_of_gain
from solver.plants.outcome import Controller, rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import load_rollout_policy
from solver.runs.metrics import training_seconds
from solver.runs.shipped import commit, machine
from solver.streams import EVALUATION_SEED

SEED = 0  # of the searches


class PageByRun(ABC):
    """Page and JSON file. Raises SolverError for a JSON file with other content."""

    def __init__(self, plan: Plan, out: Path, command: str, announce: Callable[[str], None]) -> None:
        self.plan, self.out, self.command, self.announce = plan, out, command, announce

    @abstractmethod
    def add(self, training: PlannedRun, folder: Path, anew: bool = False) -> None:
        """Measure a finished run and write the page, unless its rows exist. anew: even then."""

    @abstractmethod
    def write(self) -> list[Path]:
        """Write the page and its files. Returns their paths."""


ALGORITHMS = ("cfvi", "rfvi")
GUESSES, STARTS = 24, 5  # of the searches for the limits, as in `solver limit`


@dataclass(frozen=True)
class GalleryRow:
    """Results of one run, and how they were made."""

    robot: str
    algorithm: str
    seed: int
    success_rate: float
    limit_rate: float
    return_mean: float
    return_spread: float
    chosen_return: float | None  # mean from the starts of the limit; None without a limit
    minutes: float  # of training, without evaluations
    threads: int
    machine: str
    commit: str
    artifact: str
    checkpoint: str  # sha256
    settings: str = ""  # of the training, `settings_hash`

    @property
    def key(self) -> tuple[str, str, int]:
        """Key of a row: robot, algorithm and seed."""
        return self.robot, self.algorithm, self.seed


class Gallery(PageByRun):
    """All robots trained with the default settings of `solver train`. gallery.json has the rows and the limits."""

    def __init__(self, plan: Plan, out: Path, command: str, announce: Callable[[str], None]) -> None:
        super().__init__(plan, out, command, announce)
        self.rows, self.limits = _read(out / "gallery.json")

    def add(self, training: PlannedRun, folder: Path, anew: bool = False) -> None:
        """Measure a finished run, unless the row exists."""
        checkpoint = hashlib.sha256((folder / CHECKPOINT).read_bytes()).hexdigest()
        key = (training.robot, training.settings.algorithm, training.seed)
        before = self.rows.get(key)
        if anew or before is None or before.checkpoint != checkpoint:
            self.announce(f"evaluating {', '.join(map(str, key))}")
            self.rows[key] = self._row(training, folder, checkpoint)
            self.write()

    def write(self) -> list[Path]:
        """Write the page and the JSON file."""
        page = Page(self.plan, self.out)
        page.name = "gallery"
        rows = [self.rows[key] for key in sorted(self.rows)]
        page.say(
            f"Made by `{self.command}`: `solver train ROBOT --seed K`, also with `--algorithm cfvi`, "
            f"{self.plan.budget.episodes} rollouts on the nominal robot. Returns are means over the seeds. Limit: "
            "mean of the best known returns from some starts, of `solver limit` and of the runs. Gap: limit minus "
            "return from the same starts, in % of limit minus the return without input. Success, gap and minutes are "
            "of the worst run. Held: a state was held at its limit. `gallery.json` has every run."
        )
        columns = (f"{algorithm}: {what}" for algorithm in ALGORITHMS for what in ("return", "gap, %"))
        cells = [self._cells(list(some)) for _, some in groupby(rows, lambda row: row.robot)]
        page.table(["robot", "success", *columns, "limit", "minutes"], cells)
        absent = [t for t in self.plan.trainings if (t.robot, t.settings.algorithm, t.seed) not in self.rows]
        if absent:
            page.say(*missing((training, "not trained to the end") for training in absent))
        for row in filter(self._is_older, rows):
            self.announce(f"{', '.join(map(str, row.key))}: trained with other settings than today's")
        for robot, limit in sorted(self.limits.items()):
            if "error" in limit:
                page.say(f"- {robot} has no limit: {limit['error']}")
        content = {"limits": self.limits, "rows": [dataclasses.asdict(row) for row in rows]}
        page.keep(content, ".json")
        return page.write()

    def _is_older(self, row: GalleryRow) -> bool:
        """Whether the settings of the row differ from the plan's."""
        same = (t.run for t in self.plan.trainings if (t.robot, t.settings.algorithm) == (row.robot, row.algorithm))
        return any(settings_hash(run) != row.settings for run in same)

    def _row(self, training: PlannedRun, folder: Path, checkpoint: str) -> GalleryRow:
        problem, act, _ = load_rollout_policy(folder, self.plan.generated)
        starts = sample_starts(problem, self.plan.budget.episodes, EVALUATION_SEED)
        statistics = summary(rollouts(problem, act, starts))
        chosen = self._limit(training.robot, folder, problem, act)
        return GalleryRow(
            training.robot,
            training.settings.algorithm,
            training.seed,
            statistics["success_rate"],
            statistics["limit_rate"],
            statistics["return_mean"],
            statistics["return_spread"],
            chosen,
            training_seconds(folder) / 60.0,
            getattr(training.kind.training.read(folder).settings, "threads", 1),
            machine(),
            commit(),
            problem.robot.hash,
            checkpoint,
            settings_hash(training.run),
        )

    def _limit(self, robot: str, folder: Path, problem: Problem, act: Controller) -> float | None:
        """Mean return of a run from the starts of the robot's limit, or None if no search found a motion.

        The limit is searched from the motions of the first run, and of every run that is better than the limit from
        some start: a search takes longer than a small training. The best known limit is kept.
        """
        before, artifact = self.limits.get(robot, {}), problem.robot.hash
        known = before if before.get("artifact") == artifact and "error" not in before else None
        if known:
            begin = torch.tensor([list(start["start"].values()) for start in known["starts"]])
            own = rollouts(problem, act, problem.confine(begin))
            best = own.returns.new_tensor([start["limit"] for start in known["starts"]])
            if not bool(((own.returns > best) & ~own.at_limit.any(1)).any()):
                return float(own.returns.mean())
        self.announce(f"searching the limit of {robot}")
        try:
            limit = self._search(folder, 0, len(known["starts"])) if known else self._search(folder, GUESSES)
            if known and not _same_starts(limit["starts"], known["starts"]):
                known, limit = None, self._search(folder, GUESSES)
        except SolverError as error:
            self.limits[robot] = known or {"artifact": artifact, "error": str(error)}
            return None
        if known is None:  # earlier rows have no gap to this limit
            for key, row in self.rows.items():
                self.rows[key] = dataclasses.replace(row, chosen_return=None) if row.robot == robot else row
        starts = [_best(start, known and known["starts"][k]) for k, start in enumerate(limit["starts"])]
        means = {name: float(np.mean([start[name] for start in starts])) for name in ("limit", "idle_return")}
        self.limits[robot] = {"artifact": artifact} | means | {"starts": starts}
        return float(limit["run_return"])

    def _search(self, folder: Path, guesses: int, starts: int = STARTS) -> dict[str, Any]:
        return find_limit(str(folder), {}, guesses, SEED, self.plan.generated, starts).results()

    def _cells(self, rows: Sequence[GalleryRow]) -> list[str]:
        """Cells of a robot."""
        limit, held = self.limits.get(rows[0].robot, {}), 100 * max(row.limit_rate for row in rows)
        success = f"{100 * min(row.success_rate for row in rows):.0f} %"
        cells = [rows[0].robot, success + (f", {held:.0f} % held" if held else "")]
        for algorithm in ALGORITHMS:
            some = [row for row in rows if row.algorithm == algorithm]
            cells += [f"{fmean(row.return_mean for row in some):.2f}", self._gap(some)] if some else [NONE, NONE]
        best = f"{limit['limit']:.2f}" if "limit" in limit else NONE
        return [*cells, best, f"{max(row.minutes for row in rows):.1f}"]

    def _gap(self, rows: Sequence[GalleryRow]) -> str:
        """Gap of the worst run to the limit, in percent of the gain of the limit over the idle robot."""
        limit = self.limits.get(rows[0].robot, {})
        returns = [row.chosen_return for row in rows if row.chosen_return is not None]
        if "limit" not in limit or not returns:
            return NONE
        percent = percent_of_gain(limit["limit"] - min(returns), limit["limit"], limit["idle_return"])
        return NONE if percent is None else f"{percent:.1f}"


def _same_starts(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> bool:
    """Whether starts are equal up to rounding, which differs between machines."""
    ours, theirs = (np.array([list(row["start"].values()) for row in rows]) for rows in (first, second))
    return ours.shape == theirs.shape and np.allclose(ours, theirs)


def _best(start: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Best known return from a start: of the searches, of the run, or of an earlier call.

    A run that the simulation held at a limit does not count, because the limit acted as a free brake.
    """
    kept = {name: start[name] for name in ("start", "idle_return", "limit", "guess")}
    if start["run_return"] > kept["limit"] and not start["run_held"]:
        kept |= {"limit": start["run_return"], "guess": "motion of a run"}
    return before if before is not None and before["limit"] > kept["limit"] else kept


def _read(path: Path) -> tuple[dict[tuple[str, str, int], GalleryRow], dict[str, dict[str, Any]]]:
    """Rows by key, and limits, of an earlier call."""
    limits: dict[str, dict[str, Any]] = {}

    def read_limits(content: dict[str, Any]) -> None:
        limits.update(content["limits"])
        if not all("artifact" in limit for limit in limits.values()):
            raise ValueError("a limit without its artifact")

    rows = read_rows(path, GalleryRow, read_limits)
    return {row.key: row for row in rows}, limits


PROBABILITY, CONFIDENCE = 0.01, 0.95
EPISODES = episodes_for(PROBABILITY, CONFIDENCE, 0)
CHANGE = 0.15  # relative change of every parameter that has a tolerance in the model file
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


class Certificates(PageByRun):
    """cFVI, rFVI and the baselines on the paper's robots under the same distributions.

    The specifications lie beside the page and its JSON file; `solver certify RUN FILE` reads them too.
    """

    def __init__(self, plan: Plan, out: Path, command: str, announce: Callable[[str], None]) -> None:
        super().__init__(plan, out, command, announce)
        self.rows = {row.key: row for row in read_rows(out / "certificates.json", CertificateRow)}
        self.texts = {robot: dict(specifications(robot, plan.generated)) for robot in plan.robots}

    def add(self, training: PlannedRun, folder: Path, anew: bool = False) -> None:
        """Certify a finished run under all specifications of its robot, unless the row exists."""
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
        """Write the page, the specifications and the JSON file."""
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
