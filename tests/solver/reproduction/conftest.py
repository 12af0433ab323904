"""One set of finished runs for the tests of reproduction."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from solver.reproduction.experiments import make_plan
from tests.solver.reproduction.small_plans import choice, train_here


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four rows of table 1 with two seeds; tests must not change it."""
    parent = tmp_path_factory.mktemp("reproduce")
    train_here(make_plan("table1", "small", choice()), parent)
    return parent


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))
