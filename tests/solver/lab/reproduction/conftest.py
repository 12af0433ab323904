"""One set of finished runs for the tests of reproduction, of the short pendulum."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from solver.lab.reproduction.experiments import make_plan
from tests.solver.lab.reproduction.small_plans import choice, train_here


@pytest.fixture(autouse=True)
def beside_the_short_pendulum(short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the pendulum wherever no folder of artifacts is named."""
    monkeypatch.chdir(Path(short).parent)


@pytest.fixture(scope="session")
def trained(short: str, made_once: Callable[..., Path]) -> Path:
    """The four rows of table 1 with two seeds; tests must not change it."""

    def make(parent: Path) -> None:
        with chdir(Path(short).parent):
            train_here(make_plan("table1", "small", choice()).trainings, parent)

    return made_once("reproduce", make)


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))
