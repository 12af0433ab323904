"""What the runs of a sweep came to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from solver.lab.reproduction.runs import Runs
from solver.plants.outcome import decimals
from solver.runs.folder import write_text
from solver.runs.metrics import read_metrics

FIGURES = ("return_mean", "success_rate")  # of the last evaluation of a training


def rows(runs: Runs) -> list[dict[str, Any]]:
    """One row a finished run: robot, settings, seed, folder, and the figures of its last evaluation."""
    found = []
    for training, folder in runs.folders.items():
        last = read_metrics(folder, FIGURES)[-1:]
        figures = {name: last[0][name] if last else None for name in FIGURES}
        found.append(
            {
                "robot": training.robot,
                "settings": training.method,
                "seed": training.seed,
                "artifact": training.run.artifact_hash,
                "folder": folder.name,
                **figures,
            }
        )
    return sorted(found, key=lambda row: (row["robot"], row["settings"], row["seed"]))


def save(path: Path, found: Sequence[dict[str, Any]]) -> None:
    """Write the rows as JSON."""
    write_text(path, json.dumps(list(found), indent=1, allow_nan=False) + "\n")


def lines(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line for all seeds of a robot and its settings: the mean return, its range, the mean success."""
    for (robot, name), group in groupby(found, lambda row: (row["robot"], row["settings"])):
        evaluated = [row for row in group if row["return_mean"] is not None]
        if evaluated:
            returns = [row["return_mean"] for row in evaluated]
            success = 100.0 * mean(row["success_rate"] for row in evaluated)
            seeds = f"{len(returns)} {'seed' if len(returns) == 1 else 'seeds'}"
            digits = decimals(mean(returns))
            low, middle, high = (f"{each:.{digits}f}" for each in (min(returns), mean(returns), max(returns)))
            text = f"return {middle} [{low}, {high}], success {success:.0f} %"
            yield f"{robot}, {name}, {seeds}: {text}"
