"""A URDF in the working folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A function written(*parts): the path of a URDF with these parts, in the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(*parts: str) -> Path:
        path = tmp_path / "machine.urdf"
        path.write_text(f'<?xml version="1.0"?><robot name="machine">{"".join(parts)}</robot>')
        return path

    return write
