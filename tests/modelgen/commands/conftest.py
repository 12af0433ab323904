"""A user's own folder, and the template of `modelgen new` built in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from modelgen.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def crane(made_once: Callable[..., Path]) -> Path:
    """The template of `modelgen new`, built; tests must not change it."""

    def make(parent: Path) -> None:
        parent.mkdir()
        with chdir(parent):
            assert main(["new", "crane"]) == 0
            assert main(["build", "crane"]) == 0

    return made_once("crane", make)


@pytest.fixture
def built(crane: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A copy of it, in which the test runs."""
    shutil.copytree(crane, folder, dirs_exist_ok=True)
    capsys.readouterr()
    return folder
