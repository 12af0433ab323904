"""A sweep: all robots with all tables of settings and all seeds of a TOML file, and the table of its results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, product
from pathlib import Path
from statistics import mean
from typing import Any

from modelgen.errors import ModelError
from solver.certification.toml_table import TomlTable, read_toml
from solver.errors import SolverError
from solver.lab.reproduction.experiments import PlannedRun
from solver.lab.reproduction.runs import FIGURES, Runs
from solver.plants.outcome import decimals
from solver.problem.robots import load_robot
from solver.runs.folder import write_text
from solver.runs.kinds import kind_that_trains
from solver.runs.metrics import of_kept_policy, read_metrics
from solver.runs.shipped import everywhere
from solver.streams import require_seed

KEYS = ("robots", "seeds", "settings")
BEGINS = ("preset", "given", "start_from")  # on which the other defaults of a training depend
ELSEWHERE = {
    "seed": "`seeds` at the top of the file",
    "robot": "`robots` at the top of the file",
    "identified": "it to `solver train --identified`",
    "generated": "it to `solver sweep --generated`",
}
MOST_RUNS = 10_000


def read(path: Path, generated: str | None = None, threads: int = 1) -> tuple[PlannedRun, ...]:
    """Runs of a file, seed by seed and then in its order. threads: of every run whose settings give no threads.

    Raises SolverError with file and key for a file that is not TOML, for unknown keys, robots and settings, and for an
    entry that is repeated.
    """
    _, content = read_toml(path, "sweep")
    table = TomlTable(str(path), "", content)
    table.require_keys(KEYS)
    robots, seeds = table.words("robots"), table.content.get("seeds", [0])
    if not robots:
        raise table.mistake("robots", 'is empty; write for example robots = ["pendulum"]')
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int for seed in seeds):
        raise table.mistake("seeds", f"is {seeds!r}; write a list of whole numbers, for example [0, 1, 2]")
    for key, given in (("robots", robots), ("seeds", seeds)):
        if len(set(given)) < len(given):
            raise table.mistake(key, f"is {given} and repeats an entry")
    settings = table.inner("settings") if "settings" in content else TomlTable(str(path), "settings.", {"usual": {}})
    names = list(settings.content)
    if not names:
        raise table.mistake("settings", "is empty; write for example [settings.usual]")
    if len(seeds) * len(robots) * len(names) > MOST_RUNS:
        raise SolverError(f"{path} has more than {MOST_RUNS} runs; split it")
    every = product(seeds, robots, names)
    return tuple(_training(settings, seed, robot, name, generated, threads) for seed, robot, name in every)


def _training(settings: TomlTable, seed: int, robot: str, name: str, generated: str | None, threads: int) -> PlannedRun:
    """One run with the settings of the table `name`."""
    given = settings.inner(name)
    for key, place in ELSEWHERE.items():
        if key in given.content:
            raise given.mistake(key, f"is not a key of a table; give {place}")
    for key in ("algorithm", "start_from"):
        if not isinstance(given.content.get(key, ""), str):
            raise given.mistake(key, f"is {given.content[key]!r}; write text in quotes")
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in given.content.items()
    }
    algorithm = given.content.get("algorithm", "rfvi")
    if "start_from" in changes:
        changes["start_from"] = everywhere(changes["start_from"])
    for key, value in changes.items():
        if isinstance(value, Mapping) and key not in ("adversaries", "given"):
            raise given.mistake(key, "is a table; write a value")
    usual = {"algorithm": algorithm} | {key: changes[key] for key in BEGINS if key in changes}
    try:
        require_seed(seed)
        kind, compiled = kind_that_trains(algorithm), load_robot(robot, "cpu", generated)
        if kind.command == "train":
            changes.setdefault("threads", threads)
        describe = kind.training.describe
        run = describe(compiled, generated, **usual | changes | {"seed": seed})
        return PlannedRun(name, kind, run, describe(compiled, generated, **usual).settings)
    except (ModelError, SolverError, TypeError) as error:
        raise SolverError(f"{given.file}, settings.{name}, robot {robot}, seed {seed}: {error}") from error


def rows(runs: Runs) -> list[dict[str, Any]]:
    """Rows of the finished runs: robot, settings, seed, folder, and the figures of the kept policy."""
    table = []
    for training, folder in runs.folders.items():
        evaluated = read_metrics(folder, FIGURES)
        row = {"robot": training.robot, "settings": training.method, "seed": training.seed}
        row |= {"artifact": training.run.artifact_hash, "folder": folder.name}
        table.append(row | {name: of_kept_policy(evaluated)[name] if evaluated else None for name in FIGURES})
    return sorted(table, key=lambda row: (row["robot"], row["settings"], row["seed"]))


def save(path: Path, table: Sequence[dict[str, Any]]) -> None:
    """Write the rows as JSON."""
    write_text(path, json.dumps(list(table), indent=1, allow_nan=False) + "\n")


def lines(table: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of text, one for all seeds of a robot and its settings: mean return, its range, mean success."""
    for (robot, name), group in groupby(table, lambda row: (row["robot"], row["settings"])):
        evaluated = [row for row in group if row["return_mean"] is not None]
        if evaluated:
            returns = [row["return_mean"] for row in evaluated]
            success = 100.0 * mean(row["success_rate"] for row in evaluated)
            seeds = f"{len(returns)} {'seed' if len(returns) == 1 else 'seeds'}"
            digits = decimals(mean(returns))
            low, middle, high = (f"{value:.{digits}f}" for value in (min(returns), mean(returns), max(returns)))
            text = f"return {middle} [{low}, {high}], success {success:.0f} %"
            yield f"{robot}, {name}, {seeds}: {text}"
