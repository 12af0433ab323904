"""What the tests of baselines share; without the extra there are none."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from solver.lab.baselines.settings import baseline_settings
from solver.runs.metrics import Report
from tests.solver.lab.baselines.small_runs import TINY, Train
from tests.solver.small_trainings import baseline, quiet

if not (find_spec("stable_baselines3") and find_spec("jax")):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def train(short: str) -> Train:
    """Train a small run of the short pendulum in a folder."""

    def train(folder: Path, report: Report = quiet, **changes: Any) -> None:
        baseline("pendulum", baseline_settings(**{**TINY, **changes}), folder, short, report)

    return train


@pytest.fixture(scope="session")
def finished(train: Train, made_once: Callable[..., Path]) -> Path:
    """A finished SAC run on randomised parameters; tests must not change it."""
    return made_once("sac", lambda folder: train(folder, randomize=True))
