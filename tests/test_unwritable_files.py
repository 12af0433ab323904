"""A command finds an unwritable file before its work: here before it opens a run or a model that does not exist."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from modelgen.cli import main as modelgen
from solver.cli import main as solver


@pytest.mark.parametrize(
    "command",
    [
        "modelgen animate nothing --out file/below.gif",
        "modelgen export nothing --c file/below",
        "solver animate nothing --out file/below.gif",
        "solver certify nothing --out file/below.json",
        "solver certify nothing --html file/below.html",
        "solver export nothing --c file/below",
        "solver export nothing --onnx file/below.onnx",
        "solver prove nothing --out file/below.json",
        "solver page nothing --out file/below.html",
        "solver reproduce table1 --robots pendulum --out file/below",
        "solver robustness nothing --parameter mass --from 0.5x --to 1.5x --out file/below",
    ],
)
def test_a_command_refuses_a_file_that_it_cannot_write(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    program, *words = shlex.split(command)
    assert {"modelgen": modelgen, "solver": solver}[program](words) == 2
    assert "cannot write file/below" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
