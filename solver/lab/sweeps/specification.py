"""What a sweep trains: every robot with every table of settings and every seed. Read from a TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from modelgen.errors import ModelError
from solver.certification.toml_table import TomlTable
from solver.errors import SolverError
from solver.lab.reproduction.experiments import Training
from solver.problem.robots import load_robot
from solver.runs.kinds import kind_that_trains
from solver.streams import require_seed

KEYS = ("robots", "seeds", "settings")
MOST_RUNS = 10_000


@dataclass(frozen=True)
class Sweep:
    """All runs of a sweep, in the order of the file, seed by seed."""

    trainings: tuple[Training, ...]
    generated: str | None


def read(path: Path, generated: str | None = None, threads: int = 1) -> Sweep:
    """The sweep in a file. threads: of every run whose settings do not name them.

    Raises SolverError, which names file and key, for a file that is no TOML, for unknown keys, robots and settings, and
    for what is named twice.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SolverError(f"cannot read the sweep {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SolverError(f"{path} is no TOML file in UTF-8: {str(error).splitlines()[0]}") from error
    table = TomlTable(str(path), "", content)
    table.require_keys(KEYS)
    robots, seeds = table.words("robots"), table.content.get("seeds", [0])
    if not robots:
        raise table.mistake("robots", 'names none; write for example robots = ["pendulum"]')
    if not isinstance(seeds, list) or not seeds or any(type(seed) is not int for seed in seeds):
        raise table.mistake("seeds", f"is {seeds!r}, and must be a list of whole numbers such as [0, 1, 2]")
    for key, given in (("robots", robots), ("seeds", seeds)):
        if len(set(given)) < len(given):
            raise table.mistake(key, f"is {given}, and names something twice")
    settings = table.inner("settings") if "settings" in content else TomlTable(str(path), "settings.", {"usual": {}})
    names = list(settings.content)
    if not names:
        raise table.mistake("settings", "holds no table; write for example [settings.usual]")
    if len(seeds) * len(robots) * len(names) > MOST_RUNS:
        raise SolverError(f"{path} asks for more than {MOST_RUNS} runs; split it")
    made = [
        _training(settings, seed, robot, name, generated, threads)
        for seed, robot, name in product(seeds, robots, names)
    ]
    return Sweep(tuple(made), generated)


def _training(settings: TomlTable, seed: int, robot: str, name: str, generated: str | None, threads: int) -> Training:
    """One run: the settings of the table `name`, checked by whoever trains with them."""
    given = settings.inner(name)
    for key in ("seed", "robot"):
        if key in given.content:
            raise given.mistake(key, f"stands in the key {key}s at the top of the file, for all settings")
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in given.content.items()
    }
    algorithm = given.content.get("algorithm", "rfvi")
    if not isinstance(algorithm, str):
        raise given.mistake("algorithm", f"is {algorithm!r}, and must be a name in quotes")
    for key, value in changes.items():
        if isinstance(value, Mapping) and key != "adversaries":
            raise given.mistake(key, "is a table, and must be a value")
    usual = {"algorithm": algorithm} | ({"preset": changes["preset"]} if "preset" in changes else {})
    try:
        require_seed(seed)
        kind, compiled = kind_that_trains(algorithm), load_robot(robot, "cpu", generated)
        if kind.command == "train":
            changes.setdefault("threads", threads)
        describe = kind.training.describe
        run = describe(compiled, generated, **usual | changes | {"seed": seed})
        return Training(name, kind, run, describe(compiled, generated, **usual).settings)
    except (ModelError, SolverError, TypeError) as error:
        raise SolverError(f"{given.file}, settings.{name}, robot {robot}, seed {seed}: {error}") from error
