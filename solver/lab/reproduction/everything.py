"""All results by one command: which rows are stale, how long they take, and every row written when it is made.

`made.json` beside the pages has a row for every run of every result. It is current while artifact, settings and code
are those of today. The code is that of trainings and evaluations, without comments and doc strings.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import io
import json
import math
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any

from modelgen.artifact import folder as artifacts
from solver.errors import SolverError
from solver.lab.reproduction.experiments import BUDGETS, BudgetName, Choice, ExperimentName, Plan, PlannedRun, make_plan
from solver.lab.reproduction.report import BY_RUN, Train, write_report
from solver.lab.reproduction.results_page import read_known, read_rows
from solver.lab.reproduction.runs import FIGURES, Failure, Runs, finished_runs, run_key, settings_hash
from solver.runs.folder import write_text
from solver.runs.metrics import of_kept_policy, read_metrics, training_seconds
from solver.runs.shipped import ROOT, commit, machine

Key = tuple[str, str, str, int]  # result, robot, method, seed
SEEDS = (0, 1, 2)
ON_ALL_PLANTS = ("cFVI", "rFVI", "SAC-U", "SAC-U UDR")
#: What the pages in docs/results are made of: experiment, budget, and methods (all if empty).
PARTS: tuple[tuple[ExperimentName, BudgetName, tuple[str, ...]], ...] = (
    ("gallery", "small", ()),
    ("table1", "full", ()),
    ("fig-learning", "small", ()),
    ("fig-value", "small", ()),
    ("fig-ablation", "small", ()),
    ("fig-robustness", "full", ON_ALL_PLANTS),
    ("fig-parameters", "full", ()),
    ("certificates", "full", ON_ALL_PLANTS),
)
#: How many of robot, method and seed name a row of a result: the others are made at once, from all their runs.
ROWS = {"gallery": 3, "certificates": 3, "table1": 2, "fig-robustness": 2, "fig-parameters": 1}
#: Rooms and files that decide on a number of a result.
MATTERS = (
    *("modelgen/arrays.py", "modelgen/backends", "modelgen/linear.py", "modelgen/loader.py", "modelgen/metadata.py"),
    *("modelgen/program", "modelgen/tangent.py"),
    *("solver/fvi", "solver/game", "solver/gym", "solver/local", "solver/observer", "solver/plants", "solver/problem"),
    *("solver/streams.py", "solver/training", "solver/value", "solver/lab/baselines"),
    *("solver/certification", "solver/evaluation", "solver/oracles"),
)
ORIGIN = ("artifact", "settings", "code")


@dataclass(frozen=True)
class Made:
    """A run of a result, and what it was made with."""

    result: str
    robot: str
    method: str
    seed: int
    artifact: str
    settings: str  # `settings_hash`
    code: str  # `code_hash`
    hours: float  # of training
    return_mean: float | None
    success_rate: float | None
    machine: str
    commit: str

    @property
    def key(self) -> Key:
        """Key of a row."""
        return self.result, self.robot, self.method, self.seed

    @property
    def origin(self) -> tuple[str, str, str]:
        """What makes a row current, as ORIGIN."""
        return self.artifact, self.settings, self.code


@cache
def code_hash() -> str:
    """Hash of the code that matters, the same on every machine."""
    content = hashlib.sha256()
    for name in MATTERS:
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            content.update(f"{file.relative_to(ROOT)}\n{substance(file.read_text(encoding='utf-8'))}\n".encode())
    return content.hexdigest()[:12]


def substance(source: str) -> str:
    """Python source without comments, doc strings and empty lines."""
    lines, left_out = source.splitlines(), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            left_out.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return "\n".join(line.rstrip() for k, line in enumerate(lines, 1) if k not in left_out and line.strip())


class Everything:
    """All results: their plans, and the rows of `made.json`.

    robots, methods: only rows that have these and no others, in capitals or not: the gallery's cfvi is cFVI elsewhere.
    plans: by default those of PARTS.

    Raises SolverError for names that no result has, and for a JSON file with other content.
    """

    def __init__(
        self,
        out: Path,
        choice: Choice,
        robots: Sequence[str] = (),
        methods: Sequence[str] = (),
        plans: Sequence[Plan] | None = None,
    ) -> None:
        self.out, self.file = out, out / "made.json"
        self.made = {row.key: row for row in read_rows(self.file, Made)}
        self.plans = list(_plans(choice) if plans is None else plans)
        known = [t for plan in self.plans for t in plan.trainings]
        for flag, given, names in (
            ("--robots", robots, {t.robot for t in known}),
            ("--methods", methods, {t.method for t in known}),
        ):
            if unknown := sorted(set(map(str.lower, given)) - set(map(str.lower, names))):
                raise SolverError(f"{flag} {' '.join(unknown)}: no result has it. Names: {', '.join(sorted(names))}")
        chosen = [set(map(str.lower, names)) for names in (robots, methods)]
        self.wanted = lambda t: all(not c or n.lower() in c for c, n in zip(chosen, (t.robot, t.method), strict=True))

    def rows(self, plan: Plan, anew: bool = False) -> dict[tuple[Any, ...], list[PlannedRun]]:
        """Runs of the stale rows of a plan, by row. anew: of all rows."""
        rows: dict[tuple[Any, ...], list[PlannedRun]] = {}
        for t in plan.trainings:
            rows.setdefault(_row(plan, t), []).append(t)
        chosen = {row: runs for row, runs in rows.items() if all(map(self.wanted, runs))}
        return {row: runs for row, runs in chosen.items() if anew or any(self.reason(plan, t) for t in runs)}

    def reason(self, plan: Plan, training: PlannedRun) -> str:
        """Why the row of a run is stale; empty for a current one."""
        before = self.made.get(_key(plan, training))
        if before is None:
            return "not made"
        changed = zip(ORIGIN, before.origin, _origin(training), strict=True)
        return ", ".join(name for name, then, now in changed if then != now)

    def lines(self, parent: Path, anew: bool = False) -> Iterator[str]:
        """One line for every stale row with its reasons and time, and the time of all.

        parent: of the run folders. A run that several rows share, or that is finished, has no time again.
        """
        known, seen = _hours(self.out, self.made.values()), finished_runs(parent / code_hash()).keys()
        usual, total, count, counted = median(known.values() or [math.nan]), 0.0, 0, set(seen)
        for plan in self.plans:
            for row, runs in self.rows(plan, anew).items():
                new = {run_key(t.run): t for t in runs if run_key(t.run) not in counted}
                counted |= new.keys()
                hours = sum(known.get((t.robot, t.method.lower()), usual) for t in new.values())
                reasons = dict.fromkeys(filter(None, (self.reason(plan, t) for t in runs))) or {"asked for": None}
                name = " ".join(map(str, (plan.experiment, *row)))
                yield f"{name}: {'; '.join(reasons)}; {len(new)} to train, {_time(hours)}"
                total, count = total + hours, count + len(new)
        yield f"{count} trainings one after the other, without evaluations: {_time(total)}"

    def make(self, train: Train, command: str, announce: Callable[[str], None], anew: bool = False) -> tuple[Runs, ...]:
        """Train and measure every stale row, and write its page and `made.json` as soon as its runs are finished."""
        return tuple(
            self._make(plan, rows, train, command, announce) for plan in self.plans if (rows := self.rows(plan, anew))
        )

    def _make(
        self, plan: Plan, rows: dict[tuple[Any, ...], list[PlannedRun]], train: Train, command: str, announce: Any
    ) -> Runs:
        folders: dict[PlannedRun, Path] = {}
        kind = BY_RUN.get(plan.experiment)
        writer = kind(plan, self.out, command, announce) if kind else None

        def finished(training: PlannedRun, folder: Path) -> None:
            folders[training] = folder
            runs = rows[_row(plan, training)]
            if not all(t in folders for t in runs):
                return
            if writer is not None:
                writer.add(training, folder, anew=True)
            else:
                write_report(plan, Runs({t: folders[t] for t in runs}, 0, ()), self.out, command, announce)
            self._keep(plan, {t: folders[t] for t in runs})

        return train([*chain.from_iterable(rows.values())], finished=finished)

    def _keep(self, plan: Plan, folders: Mapping[PlannedRun, Path]) -> None:
        """Write `made.json` with the rows of some runs."""
        for training, folder in folders.items():
            key, origin = _key(plan, training), _origin(training)
            evaluated, hours = read_metrics(folder, FIGURES), training_seconds(folder) / 3600.0
            kept: dict[str, float] = of_kept_policy(evaluated) if evaluated else {}
            figures = kept.get("return_mean"), kept.get("success_rate")
            self.made[key] = Made(*key, *origin, hours, *figures, machine(), commit())
        self._write()

    def declare_unchanged(self, old: str, parent: Path) -> int:
        """Give the rows and the finished runs of the code with the hash `old` that of today's; returns their number.

        Raises SolverError if no row has it.
        """
        rows = [key for key, row in self.made.items() if row.code == old]
        if not rows:
            known = ", ".join(sorted({row.code for row in self.made.values()}))
            raise SolverError(f"--unchanged {old}: no row of {self.file} has this hash; they have {known or 'none'}")
        for key in rows:
            self.made[key] = replace(self.made[key], code=code_hash())
        if (parent / old).is_dir() and not (parent / code_hash()).exists():
            (parent / old).rename(parent / code_hash())
        self._write()
        return len(rows)

    def _write(self) -> None:
        rows = [dataclasses.asdict(self.made[key]) for key in sorted(self.made)]
        write_text(self.file, json.dumps({"rows": rows}, indent=1, allow_nan=False) + "\n")


def failures(runs: Sequence[Runs]) -> list[Failure]:
    """Failures of all results."""
    return [failure for each in runs for failure in each.failures]


def _plans(choice: Choice) -> Iterator[Plan]:
    """Plans of PARTS whose robots have artifacts."""
    known = set(artifacts.known(choice.generated or artifacts.SHIPPED))
    for experiment, budget, methods in PARTS:
        if experiment == "gallery" or set(BUDGETS[budget].robots) <= known:
            yield make_plan(experiment, budget, replace(choice, seeds=SEEDS, methods=methods))


def _row(plan: Plan, training: PlannedRun) -> tuple[Any, ...]:
    return (training.robot, training.method, training.seed)[: ROWS.get(plan.experiment, 0)]


def _key(plan: Plan, training: PlannedRun) -> Key:
    return plan.experiment, training.robot, training.method, training.seed


def _origin(training: PlannedRun) -> tuple[str, str, str]:
    return training.run.artifact_hash, settings_hash(training.run), code_hash()


def _time(hours: float) -> str:
    if math.isnan(hours):
        return "unknown time"
    return f"{hours:.1f} h" if hours >= 1.0 else f"{60.0 * hours:.0f} min"


def _hours(out: Path, made: Any) -> dict[tuple[str, str], float]:
    """Hours of a training, by robot and method: of the rows in `made.json`, or else in the gallery and table 1."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in read_known(out / "gallery.json", lambda content: content["rows"]) or []:
        found.setdefault((row["robot"], row["algorithm"]), []).append(row["minutes"] / 60.0)
    for row in read_known(out / "table1-full.json", lambda content: content["rows"]) or []:
        if row["seconds"] is not None:
            found.setdefault((row["robot"], row["method"].lower()), []).append(row["seconds"] / 3600.0)
    latest: dict[tuple[str, str], list[float]] = {}
    for entry in made:
        latest.setdefault((entry.robot, entry.method.lower()), []).append(entry.hours)
    return {key: fmean(hours) for key, hours in {**found, **latest}.items()}
