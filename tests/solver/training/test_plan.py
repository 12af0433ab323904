"""Plan of a training: the artifact that it opens, and the run that it begins with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import solver
from modelgen.artifact import folder as artifact
from modelgen.artifact.manifest import Manifest
from solver.cli import main
from solver.commands.train import defaults
from solver.problem.identified import IdentifiedSet
from solver.runs.metrics import read_metrics
from solver.training.lifecycle import plan
from solver.training.solution import load_run, load_run_checkpoint, load_solution
from tests.solver.conftest import TINY

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_training_opens_its_artifact_once(short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets, checks, preview, basin and training share one robot."""
    opened: list[Path] = []

    def open_artifact(name: str | Path, directory: str | Path | None = None) -> tuple[Path, Manifest]:
        folder, manifest = artifact.opened(name, directory)
        opened.append(folder)
        return folder, manifest

    monkeypatch.setattr("modelgen.loader.opened", open_artifact)
    small: dict[str, Any] = {**TINY, "iterations": 1, "basin": True}
    with warnings.catch_warnings(action="ignore"):
        solver.train("pendulum", generated=short, out=tmp_path / "run", preview=0.1, **small)
    assert opened == [Path(short) / "pendulum"]


@pytest.mark.slow
def test_warm_start_begins_with_the_best_weights_and_their_metric(
    train_tiny: Callable[..., None], tmp_path: Path, tiny_options: list[str]
) -> None:
    first = tmp_path / "first"
    train_tiny(first, basin=True)
    given = [*tiny_options, "--iterations", "1", "--learning-rate", "1e-12", "--basin"]
    given += ["--reaction-periods", "0"]  # the basin is of the policy, and the first run has the settings' own
    words = ["train", "pendulum", "--start-from", str(first), "--out", str(tmp_path / "warm"), *given]
    assert main(words) == 0
    before = load_solution(first).ensemble.state_dict()
    after = load_run_checkpoint(tmp_path / "warm")["ensemble"]
    for name, value in before.items():
        assert torch.allclose(after[name], value, atol=1e-6), name
    assert float(before["bend"]) > 0.0
    assert load_run(tmp_path / "warm").warm_from == str(first)


def test_warm_start_has_the_network_of_the_other_run(finished_run: Path, capsys: Capture) -> None:
    assert main(["train", "pendulum", "--start-from", str(finished_run), "--help-all"]) == 0
    text = capsys.readouterr().out
    other, usual = load_run(finished_run).settings, 80
    assert f"(default: {other.width})" in text
    assert f"(default: {usual // 4})" in text


def test_command_and_python_train_a_family_with_the_same_settings() -> None:
    words = defaults({"robot": "pendulum", "given": ["mass=0.8:1.2"]})
    family = plan("pendulum", given={"mass": (0.8, 1.2)})[1].settings
    assert words.settings == family
    assert family.width > plan("pendulum")[1].settings.width  # V varies with more than the states


def test_warm_start_from_another_robots_run_is_an_error(finished_run: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["train", "slider", "--start-from", str(finished_run), "--out", str(tmp_path / "no")]) != 0
    capsys.readouterr()
    assert main(["train", "cartpole", "--start-from", str(finished_run), "--out", str(tmp_path / "no")]) == 2
    (line,) = capsys.readouterr().err.splitlines()  # a preview would print lines before it
    assert "is a run of pendulum" in line
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_warm_start_with_another_width_is_an_error(
    finished_run: Path, tmp_path: Path, tiny_options: list[str], capsys: Capture
) -> None:
    words = ["train", "pendulum", "--start-from", str(finished_run), "--out", str(tmp_path / "no"), *tiny_options]
    assert main([*words, "--width", "9"]) == 2
    assert "--width" in capsys.readouterr().err


@pytest.mark.slow
def test_warm_start_can_be_resumed(finished_run: Path, tmp_path: Path, tiny_options: list[str]) -> None:
    folder = tmp_path / "warm"
    assert main(["train", "pendulum", "--start-from", str(finished_run), "--out", str(folder), *tiny_options]) == 0
    assert main(["train", "--resume", str(folder)]) == 0
    assert len(read_metrics(folder)) == load_run(folder).settings.iterations


def test_no_adversaries_are_none_on_an_identified_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    radii = {"state": (0.1, 0.1), "action": (0.2,), "observation": (0.1, 0.1)}
    known = IdentifiedSet("file", "hash", (1.0, 1.0), ((0.01, 0.0), (0.0, 0.01)), (1.0, 1.0), radii)
    monkeypatch.setattr("solver.training.lifecycle.read_identified", lambda *_: known)
    none = plan("pendulum", identified="file", adversaries=[])[1].settings
    some = plan("pendulum", identified="file", adversaries={"action": 0.3})[1].settings
    assert none.algorithm == "cfvi"
    assert some.adversaries == {"parameters": 1.0, "state": 0.1, "action": 0.3, "observation": 0.1}
