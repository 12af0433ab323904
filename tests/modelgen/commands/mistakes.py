"""Mistakes of a user."""

from __future__ import annotations

import pytest

from modelgen.cli import main


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The command returns 2 and prints one line of error, which is returned."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err
