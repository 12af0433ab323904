"""`solver baseline`: its options, mistakes, and what it says without its extra."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import solver
from solver.cli import main
from solver.errors import SolverError
from solver.lab.baselines.settings import baseline_settings, load_baseline, new_run
from solver.problem.robots import load_robot
from solver.runs.folder import METRICS
from tests.solver.lab.baselines.small_runs import words

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def test_baseline_replaces_a_run_only_with_overwrite(
    short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    ppo = ["--algorithm", "ppo"]
    assert main(["baseline", "pendulum", "--randomize", *words(short, seed=3), *ppo]) == 0
    folder = Path("runs/pendulum-ppo-angle-randomized-seed3")
    assert f"solver evaluate {folder}" in capsys.readouterr().out
    assert load_baseline(folder).settings.randomize
    assert main(["baseline", "pendulum", *words(short), "--out", str(folder)]) == 2
    assert "already holds a run" in capsys.readouterr().err
    (folder / "notes.txt").write_text("mine")
    refused = ["baseline", "pendulum", *words(short, evaluate_every=1), "--out", str(folder), "--overwrite"]
    assert main(refused) == 2
    assert "give at least 20" in capsys.readouterr().err
    assert load_baseline(folder).settings.seed == 3  # a run that cannot start replaces nothing
    assert main(["baseline", "pendulum", *words(short), *ppo, "--out", str(folder), "--overwrite"]) == 0
    assert load_baseline(folder).settings.seed == 0
    assert (folder / "notes.txt").read_text() == "mine"
    assert main(["baseline", "--resume", str(folder)]) == 0
    assert len((folder / METRICS).read_text().splitlines()) == 2


def test_ppo_has_its_own_defaults() -> None:
    ppo = baseline_settings("ppo", seed=4, randomize=True)
    assert (ppo.episode_share, baseline_settings("sac").episode_share) == (0.125, 1.0)


def test_label_has_the_start_distribution_and_the_randomisation_unless_they_are_the_defaults() -> None:
    robot = load_robot("pendulum", "cpu", None)
    labels = [
        new_run(robot, None, baseline_settings("sac", **changes)).label
        for changes in ({}, {"start": "gaussian"}, {"randomize": True, "steps": 10})
    ]
    assert labels == ["pendulum-sac", "pendulum-sac-gaussian", "pendulum-sac-randomized"]


def test_newer_setting_is_in_the_identity_only_if_it_changes_the_run() -> None:
    robot = load_robot("pendulum", "cpu", None)
    identities = [
        new_run(robot, None, baseline_settings("sac", episode_share=share)).identity() for share in (1.0, 0.5)
    ]
    assert "episode_share" not in identities[0]
    assert identities[1] == {**identities[0], "episode_share": 0.5}


@pytest.mark.parametrize(("robot", "actions"), [("pendulum", 200_000), ("cartpole", 400_000)])
def test_number_of_actions_of_sac_and_ddpg_follows_the_state(robot: str, actions: int) -> None:
    loaded = load_robot(robot, "cpu", None)
    usual = new_run(loaded, None, baseline_settings()).settings
    assert usual.steps == actions
    shorter = new_run(loaded, None, baseline_settings(steps=1000)).settings
    assert shorter.steps == 1000
    assert new_run(loaded, None, baseline_settings("ddpg")).settings.steps == actions
    assert new_run(loaded, None, baseline_settings("ppo", steps=0)).settings.steps == 1_000_000


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["baseline"], "name a robot"),
        (["baseline", "pendulm"], "Did you mean `pendulum`"),
        (["baseline", "--resume", "nowhere"], "nowhere is not a run folder"),
        (["baseline", "pendulum", "--steps", "-1"], "--steps INT 0.."),
        (["baseline", "pendulum", "--randomize-share", "1"], "--randomize-share"),
        (["baseline", "pendulum", "--learning-rate", "-1"], "--learning-rate"),
        (["baseline", "pendulum", "--lookahead", "0"], "lookahead"),
        (["baseline", "pendulum", "--rate-scale", "0"], "rate_scale"),
        (["baseline", "pendulum", "--evaluate-every", "100"], "give at least 5056"),
        (["baseline", "--resume", "x", "--seed", "1"], "keeps its own"),
    ],
)
def test_mistake_in_a_baseline_command_exits_2(command: list[str], message: str, capsys: Capture) -> None:
    assert main(command) == 2
    assert message in capsys.readouterr().err


def test_unknown_algorithm_is_an_error(capsys: Capture) -> None:
    assert main(["baseline", "pendulum", "--algorithm", "td3"]) == 2
    assert "ppo" in capsys.readouterr().err
    with pytest.raises(SolverError, match="sac, ddpg, ppo"):
        baseline_settings("td3")
    with pytest.raises(SolverError, match="`width`"):
        baseline_settings("sac", widht=3)
    with pytest.raises(SolverError, match="sac takes no given and no preset"):
        solver.train("pendulum", algorithm="sac", preset="paper", given=["mass"])


def test_command_without_the_extra_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a program that has imported neither package, nor a module of ours that does."""
    ours = ("solver.gym", "solver.lab.baselines.lifecycle", "solver.lab.baselines.stable_baselines")
    for name in [name for name in sys.modules if name.startswith(ours)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(solver, "gym", solver.gym)  # the one that is imported again takes its place
    for missing, extra in (("gymnasium", "[gym]"), ("stable_baselines3", "[baselines]")):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, missing, None)
            assert main(["baseline", "pendulum"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert extra in line
