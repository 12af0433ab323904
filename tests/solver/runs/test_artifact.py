"""The artifact of a training travels with the run folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import solver
from modelgen.errors import StaleArtifactWarning
from solver.cli import main
from solver.runs.artifact import keep
from solver.training.solution import load_run
from tests.solver.conftest import TINY

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def house(tmp_path: Path, short: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an artifact of a robot that ships under no such name, and a run on it."""
    folder = tmp_path / "generated" / "pendulum"
    shutil.copytree(Path(short) / "pendulum", folder)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_is_evaluated_where_there_is_no_such_robot(
    house: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.warns(UserWarning, match="iterations"):
        run = solver.train("pendulum", out="run", preview=0, **{**TINY, "iterations": 2})
    assert json.loads(Path("run/run.json").read_text())["generated"] is None
    before = run.evaluate(episodes=4).statistics
    inode = Path("generated/pendulum/manifest.json").stat().st_ino
    assert Path("run/artifact/pendulum/manifest.json").stat().st_ino == inode  # no copy
    away = house / "elsewhere"
    away.mkdir()
    shutil.move("run", away / "run")
    shutil.rmtree("generated")
    monkeypatch.setattr("modelgen.artifact.folder.SHIPPED", house / "nothing")
    assert main(["evaluate", "elsewhere/run", "--episodes", "4", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["return_mean"] == before["return_mean"]
    assert "built anew" not in said.err
    assert solver.load(away / "run").robot.name == "pendulum"


@pytest.mark.slow
def test_the_robot_of_the_training_is_used_after_another_build(run_copy: Path, house: Path) -> None:
    """The shipped pendulum has another hash than the short one of the run."""
    described = json.loads((run_copy / "run.json").read_text())
    (run_copy / "run.json").write_text(json.dumps({**described, "generated": None}))
    shutil.rmtree(house / "generated")
    with pytest.warns(StaleArtifactWarning, match="pendulum"):
        found = load_run(run_copy)
    assert found.generated == str(run_copy / "artifact")


def test_another_artifact_replaces_the_one_in_the_folder(house: Path, tmp_path: Path) -> None:
    keep(house / "generated" / "pendulum", tmp_path / "run")
    shutil.copytree(house / "generated" / "pendulum", house / "generated" / "other")
    keep(house / "generated" / "other", tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "artifact").iterdir()] == ["other"]
    keep(tmp_path / "run" / "artifact" / "other", tmp_path / "run")  # a training of the run's own robot
    assert (tmp_path / "run" / "artifact" / "other" / "manifest.json").is_file()
