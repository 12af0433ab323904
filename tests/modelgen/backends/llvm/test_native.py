"""Compiled kernels are kept for the next process, and made again where they are damaged or cannot be kept."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RUN = """
import sys, numpy as np, modelgen
from modelgen.backends import llvm
made, compiled = [], llvm._compiled
llvm._compiled = lambda *of: made.append(of) or compiled(*of)
robot = modelgen.load("pendulum", directory=sys.argv[1])
robot.dynamics(np.zeros((3, 2)), np.zeros((3, 1)))
print(len(made), robot.dynamics(np.ones((3, 2)), np.zeros((3, 1)))[0, 1])
"""


def _run_with(folder: Path, home: Path, **variables: str) -> tuple[int, str]:
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    compiled, value = done.stdout.split()
    assert float(value) == pytest.approx(1.5 * 9.81 * math.sin(1.0))
    return int(compiled), done.stderr


@pytest.fixture
def copied(artifacts: Path, tmp_path: Path) -> Path:
    """A folder with the pendulum's artifact and no machine code."""
    folder = tmp_path / "generated"
    (folder / "pendulum").mkdir(parents=True)
    for file in (artifacts / "pendulum").iterdir():
        if file.is_file():
            (folder / "pendulum" / file.name).write_bytes(file.read_bytes())
    return folder


def test_machine_code_is_kept_for_the_next_process(copied: Path, tmp_path: Path) -> None:
    assert _run_with(copied, tmp_path)[0] == 1
    assert _run_with(copied, tmp_path)[0] == 0


def test_damaged_machine_code_is_made_again(copied: Path, tmp_path: Path) -> None:
    _run_with(copied, tmp_path)
    (kept,) = (tmp_path / "cache" / "modelgen").glob("*.o")
    kept.write_bytes(kept.read_bytes()[:-40])
    assert _run_with(copied, tmp_path)[0] == 1
    assert _run_with(copied, tmp_path)[0] == 0


def test_machine_code_beside_an_artifact_is_not_used(copied: Path, tmp_path: Path) -> None:
    """An artifact may come from somebody else, and machine code of anybody would run unseen."""
    _run_with(copied, tmp_path)
    (kept,) = (tmp_path / "cache" / "modelgen").glob("*.o")
    (copied / "pendulum" / "__pycache__").mkdir()
    kept.rename(copied / "pendulum" / "__pycache__" / kept.name)
    assert _run_with(copied, tmp_path)[0] == 1


def test_where_no_folder_can_be_written_one_can_be_stated(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "none").write_text("not a folder either")
    compiled, errors = _run_with(copied, tmp_path / "none")
    assert compiled == 1
    assert "MODELGEN_CACHE" in errors
    assert not list(tmp_path.rglob(".*.o"))  # nothing half written
    stated = {"MODELGEN_CACHE": str(tmp_path / "stated")}
    assert _run_with(copied, tmp_path / "none", **stated) == (1, "")
    assert _run_with(copied, tmp_path / "none", **stated) == (0, "")
