"""Baselines that train in a second, for the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from solver.baselines.settings import baseline_settings
from tests.solver.training import baseline

TINY: dict[str, Any] = {"steps": 240, "hold": 25, "environments": 4, "evaluate_every": 120, "episodes": 3}
TINY |= {"minibatch": 16, "layers": 1, "width": 8}
ALGORITHMS = ["sac", "ddpg", "ppo"]


def quiet(_: dict[str, float]) -> None:
    """Report nothing."""


def train(folder: Path, report: Callable[[dict[str, float]], None] = quiet, **changes: Any) -> None:
    baseline("pendulum", baseline_settings(**{**TINY, **changes}), folder, report)


def words(**changes: Any) -> list[str]:
    return [word for name, value in {**TINY, **changes}.items() for word in ("--" + name.replace("_", "-"), str(value))]
