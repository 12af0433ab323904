"""A working folder with model files."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an empty models/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    return tmp_path
