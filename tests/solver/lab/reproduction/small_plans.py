"""Plans of trainings that take a second, for the tests of reproduction."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solver.lab.reproduction.experiments import BUDGETS, Choice, PlannedRun
from solver.lab.reproduction.runs import _folder, run_key
from solver.training.settings import Settings

TINY: dict[str, Any] = {"iterations": 3, "states": 96, "epochs": 1, "minibatch": 48, "trace_decay": 0.8}
TINY |= {"trace_floor": 0.1, "step_periods": (2, 1), "members": 2, "layers": 1, "width": 8, "evaluate_every": 2}
TINY |= {"episodes": 3, "basin": False, "reaction_periods": 0.0}
SMALL = dataclasses.replace(BUDGETS["small"], episodes=3)
NEVER = (sys.executable, "-c", "raise SystemExit(9)")


def quiet(_: object) -> None:
    """Say nothing."""


def choice(seeds: tuple[int, ...] = (0, 1), overrides: dict[str, Any] | None = None, **more: Any) -> Choice:
    own = {"train": {**TINY, **(overrides or {})}, "classical": {"tries": 1, "episodes": 3}}
    return Choice(seeds=seeds, overrides=own, budget=SMALL, **more)


def train_here(trainings: Sequence[PlannedRun], parent: Path) -> None:
    """Train what is missing in this process, where starting costs nothing."""
    for training in trainings:
        folder = _folder(parent, training, run_key(training.run))
        if not folder.exists():
            training.kind.training.start(training.run, folder, quiet)


def is_dp_rfvi(settings: Settings) -> bool:
    return settings.algorithm == "rfvi" and settings.sampling == "mixture"
