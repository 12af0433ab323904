"""Finished baselines: what reads them, and which are refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from solver.cli import main
from solver.errors import SolverError
from solver.lab.baselines.lifecycle import load_rollout_policy
from solver.lab.baselines.settings import BASELINE, MODEL, load_baseline
from solver.plants.episodes import features
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.plants.plant import Nominal
from solver.runs import kinds
from solver.runs.folder import CHECKPOINT, RUN, load_checkpoint
from solver.training.solution import load_run

Capture = pytest.CaptureFixture[str]


@pytest.mark.slow
def test_model_zip_loads_in_stable_baselines(finished: Path) -> None:
    from stable_baselines3 import SAC

    model = SAC.load(finished / MODEL, device="cpu")
    problem, act, _ = load_rollout_policy(finished)
    x = sample_starts(problem, 4, 0)
    action = model.predict(features(problem, x).numpy(), deterministic=True)[0]
    np.testing.assert_allclose(act(x)[0].numpy(), 0.85 * 2.5 * action, rtol=1e-6)


@pytest.mark.slow
def test_checkpoint_of_another_run_is_an_error(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = torch.load(folder / CHECKPOINT, weights_only=True)
    torch.save(content | {RUN: content[RUN] | {"artifact_hash": "another"}}, folder / CHECKPOINT)
    with pytest.raises(SolverError, match="artifact_hash"):
        load_rollout_policy(folder)


@pytest.mark.slow
def test_model_zip_is_never_unpickled(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    (folder / MODEL).write_bytes(b"anything")
    problem, act, _ = load_rollout_policy(folder)
    x = sample_starts(problem, 4, 0)
    assert torch.equal(act(x)[0], load_rollout_policy(finished)[1](x)[0])


@pytest.mark.slow
def test_solver_evaluate_evaluates_a_baseline(finished: Path, capsys: Capture) -> None:
    assert main(["evaluate", str(finished), "--episodes", "3", "--set", "mass=1.3x", "--json"]) == 0
    problem, act, _ = load_rollout_policy(finished)
    theta = problem.theta * torch.tensor([1.3, 1.0])
    expected = summary(rollouts(problem, act, sample_starts(problem, 3, 20210725), Nominal(problem, theta)))
    content = json.loads(capsys.readouterr().out)
    assert content["return_mean"] == pytest.approx(expected["return_mean"], rel=1e-6)
    assert content["parameters"]["mass"] == pytest.approx(1.3)
    words = ["evaluate", str(finished), "--episodes", "3", "--plant", "harsh", "--json"]
    returns = []
    for more in ([], ["--observer"]):
        assert main([*words, *more]) == 0
        returns.append(json.loads(capsys.readouterr().out)["return_mean"])
    assert returns[0] != returns[1]


@pytest.mark.slow
def test_functions_of_a_value_function_refuse_a_baseline(finished: Path) -> None:
    with pytest.raises(SolverError, match=r"`solver baseline`.*`solver train`"):
        load_run(finished)
    with pytest.raises(SolverError, match="reaction_periods"):
        kinds.load_rollout_policy(finished, reaction_periods=1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"artifact_hash": "ab" * 32}, "trained on artifact abababababab"),
        ({"settings": {"width": 9}}, "width is 9 "),
        ({"settings": {"widht": 9}}, "is damaged or from another version"),
        ({"settings": {"seed": 2**32}}, "setting seed is 4294967296"),
        ({"artifact_hash": None}, "is damaged or from another version"),
        ({"robot": 5}, "is damaged or from another version"),
        ({"generated": 5}, "is damaged or from another version"),
    ],
)
def test_edited_baseline_is_an_error(change: dict[str, Any], message: str, finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((folder / BASELINE).read_text())
    settings = {**content["settings"], **change.pop("settings", {})}
    (folder / BASELINE).write_text(json.dumps({**content, **change, "settings": settings}))
    with pytest.raises(SolverError, match=message):
        load_rollout_policy(folder)


def test_nan_state_gives_nan_input(finished: Path) -> None:
    _, act, _ = load_rollout_policy(finished)
    u, cost = act(torch.tensor([[3.0, 0.5], [torch.nan, 0.0], [0.0, torch.inf]]))
    assert torch.isfinite(u[:, 0]).tolist() == torch.isfinite(cost).tolist() == [True, False, False]


def test_baseline_of_a_version_with_fewer_settings_is_an_error(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = json.loads((folder / BASELINE).read_text())
    del content["settings"]["lookahead"]
    (folder / BASELINE).write_text(json.dumps(content))
    with pytest.raises(SolverError, match="lookahead"):
        load_baseline(folder)


def test_weights_that_are_not_finite_are_an_error(finished: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(finished, tmp_path / "run"))
    content = load_checkpoint(folder, keys=["parameters"])
    next(each for each in content["parameters"]["policy"].values() if each.is_floating_point())[:] = torch.nan
    torch.save(content, folder / CHECKPOINT)
    with pytest.raises(SolverError, match=CHECKPOINT):
        load_rollout_policy(folder)
