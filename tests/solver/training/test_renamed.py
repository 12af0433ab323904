"""Old names of settings: they still work, and say what the present name is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import modelgen
import solver
from solver.cli import main
from solver.runs.folder import CHECKPOINT
from solver.training.kind import resume
from solver.training.presets import make_settings
from solver.training.renamed import RENAMED
from solver.training.run import RUN, load_run
from solver.training.settings import Settings
from solver.training.solution import load_solution

OLD = {new: old for old, new in RENAMED.items()}


def test_every_new_name_is_a_setting_and_no_old_one_is() -> None:
    names = vars(Settings())
    assert set(RENAMED.values()) <= names.keys()
    assert not RENAMED.keys() & names.keys()


def test_from_python_with_a_warning() -> None:
    robot = modelgen.load("pendulum", parallel=False)
    with pytest.warns(DeprecationWarning, match="sampled is called reaction_periods now") as seen:
        settings = make_settings("fast", robot, sampled=1.5)
    assert settings.reaction_periods == 1.5
    assert seen[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="holds is called step_periods now"):
        assert make_settings("fast", robot, holds=(3, 1)).step_periods == (3, 1)


def test_load_policy(finished_run: Path) -> None:
    x = np.array([[2.0, 1.0], [0.3, -0.5]])
    with pytest.warns(DeprecationWarning, match="reaction_periods") as seen:
        old = solver.load_policy(finished_run, sampled=2.0)(x)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(old, solver.load_policy(finished_run, reaction_periods=2.0)(x))
    assert not np.array_equal(old, solver.load_policy(finished_run)(x))


def test_a_run_of_the_first_version_is_read_and_resumed(run_copy: Path) -> None:
    """Its run.json and its checkpoint have the old names."""
    before = load_run(run_copy)
    content = json.loads((run_copy / RUN).read_text())
    content["settings"] = {OLD.get(name, name): value for name, value in content["settings"].items()}
    assert "sampled" in content["settings"]
    (run_copy / RUN).write_text(json.dumps(content))
    checkpoint = torch.load(run_copy / CHECKPOINT, weights_only=True)
    checkpoint["settings"] = {OLD.get(name, name): value for name, value in checkpoint["settings"].items()}
    torch.save(checkpoint, run_copy / CHECKPOINT)
    assert load_run(run_copy) == before
    assert load_solution(run_copy).run == before
    resume(run_copy, lambda _: None)  # compares the settings of both files


def test_on_the_command_line_with_a_line_on_the_error_stream(
    tiny_options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*tiny_options, "--iterations", "1", "--sampled", "2", "--out", str(tmp_path)]
    words[words.index("--step-periods")] = "--holds"
    assert main(["train", "pendulum", *words]) == 0
    notices = capsys.readouterr().err
    assert "--sampled is now --reaction-periods" in notices
    assert "--holds is now --step-periods" in notices
    settings = load_run(tmp_path).settings
    assert (settings.reaction_periods, settings.step_periods) == (2.0, (2, 1))
