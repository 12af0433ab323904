"""A training begins on the present model file only, and a build during it is named at the next iteration."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import solver
from modelgen.cli import main as modelgen
from modelgen.errors import StaleArtifactWarning
from modelgen.files import shipped
from solver.cli import main
from solver.errors import SolverError

MODEL = (shipped("models") / "pendulum.py").read_text()


@pytest.fixture
def house(tmp_path: Path, short: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with an artifact of the short pendulum and its model file."""
    shutil.copytree(Path(short) / "pendulum", tmp_path / "generated" / "pendulum")
    (tmp_path / "models").mkdir()
    shutil.copy(Path(short).parent / "pendulum.py", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["train", "baseline"])
def test_no_training_on_a_stale_artifact(
    house: Path, tiny_options: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if command == "baseline":
        pytest.importorskip("stable_baselines3")
    options = tiny_options[2:] if command == "train" else ["--steps", "1"]
    (house / "models" / "pendulum.py").write_text(MODEL)
    assert main([command, "pendulum", *options, "--out", "run"]) == 2
    assert "Run `modelgen build models/pendulum.py`" in capsys.readouterr().err
    assert not (house / "run" / "checkpoint.pt").exists()
    with pytest.raises(SolverError, match=r"modelgen build models/pendulum\.py"), pytest.warns(StaleArtifactWarning):
        solver.train("pendulum", algorithm="sac" if command == "baseline" else "rfvi", out="run")
    assert main(["evaluate", "pendulum-rfvi", "--episodes", "1"]) in (0, 2)  # of another artifact, and says so


@pytest.mark.slow
def test_a_build_during_a_training_is_named_at_the_next_iteration(
    house: Path, tiny: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[float] = []

    def edit(row: dict[str, float]) -> None:
        rows.append(row["iteration"])
        if len(rows) == 1:
            path = house / "models" / "pendulum.py"
            path.write_text(path.read_text().replace("horizon=1,", "horizon=2,"))
            assert modelgen(["build", "pendulum"]) == 0

    choices = {name: value for name, value in vars(tiny(iterations=3)).items() if name in ("width", "states", "epochs")}
    with pytest.warns(StaleArtifactWarning, match="pendulum"):
        solver.train("pendulum", out="run", callback=edit, preview=0, iterations=3, convergence=0.0, **choices)
    assert rows == [0.0, 1.0, 2.0]
    assert main(["evaluate", "run", "--episodes", "1"]) == 0  # on the robot of the training
    assert "pendulum was built anew" in capsys.readouterr().err
    shutil.rmtree(house / "run" / "artifact")
    assert main(["evaluate", "run", "--episodes", "1"]) == 2
    assert "was trained on artifact" in capsys.readouterr().err
