"""Mistakes of a user."""

from __future__ import annotations

import pytest

from modelgen.cli import main


def mistake(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The command returns 2 and prints a message, which is returned."""
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err
