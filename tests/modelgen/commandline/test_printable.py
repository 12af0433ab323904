"""Names in an artifact from elsewhere do not steer the terminal that prints them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from modelgen.commandline.printable import printable

from modelgen.cli import main
from tests.modelgen.support.forgery import forged

STEERING = "\x1b]52;c;cm0=\x07\x1b[2Jgone\r\x9b31m\u202e\x7f\x00"


def test_control_characters_are_written_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    with printable():
        print(f"a\tb\nä {STEERING}")
        print(STEERING, file=sys.stderr)
        assert not sys.stdout.isatty()
    written = capsys.readouterr()
    escaped = r"\x1b]52;c;cm0=\x07\x1b[2Jgone\r\x9b31m\u202e\x7f\x00"
    assert written.out == f"a\tb\nä {escaped}\n"
    assert written.err == f"{escaped}\n"


@pytest.mark.parametrize("words", [[], ["--linearize"]])
def test_show_of_a_foreign_artifact(
    words: list[str], artifacts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Free text of every state, input, parameter and the description."""
    shutil.copytree(artifacts / "pendulum", tmp_path / "pendulum")

    def change(manifest: dict[str, dict[str, object]]) -> None:
        metadata = manifest["metadata"]
        metadata["description"] = STEERING
        for group in ("states", "inputs", "parameters"):
            for each in metadata[group]:  # type: ignore[attr-defined]
                each.update(meaning=STEERING, unit=STEERING)

    forged(tmp_path / "pendulum", change)
    main(["show", "pendulum", "--generated", str(tmp_path), *words])
    written = capsys.readouterr()
    text = written.out + written.err
    assert "gone" in text
    assert not set(STEERING) & set(text) - set("gone]52;c;cm0=[2J31m")
