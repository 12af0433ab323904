"""A user's own folder, and the template of `modelgen new` built in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from modelgen.cli import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def built(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The template of `modelgen new`, built."""
    assert main(["new", "crane"]) == 0
    assert main(["build", "crane"]) == 0
    capsys.readouterr()
    return folder
