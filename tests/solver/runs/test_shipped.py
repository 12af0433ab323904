"""Policies that ship with the package: found by name, weights only, with their figures."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.cli import main
from solver.errors import SolverError
from solver.oracles import limit
from solver.oracles.search import search
from solver.oracles.trajectory import PlannedMotion
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import load_rollout_policy
from solver.training import lifecycle
from solver.training.solution import RUN, load_run

Capture = pytest.CaptureFixture[str]
NAME = "pendulum-rfvi"


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of shipped policies without any, and another one to work in."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    return tmp_path / "shipped"


FIGURES = shipped.Figures(
    "pendulum", "rfvi", 0, -33.0, 0.5, 1.0, -30.0, -50.0, 3.0, 15.0, commit="abc1234", date="2026-01-02"
)


@pytest.fixture
def one(empty: Path, gallery_run: Path) -> Path:
    """The tiny run as a shipped policy."""
    assert lifecycle.ship(gallery_run, FIGURES) == NAME
    return empty / NAME


@pytest.mark.slow
def test_a_name_stands_for_the_same_policy(one: Path, gallery_run: Path) -> None:
    """In half the bytes or less, without optimisers and visited states."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 2)).astype(np.float32)
    assert np.array_equal(solver.load_policy(NAME)(x), solver.load_policy(gallery_run)(x))
    for got, expected in zip(solver.load_value(NAME)(x), solver.load_value(gallery_run)(x), strict=True):
        assert np.array_equal(got, expected)
    content = torch.load(one / CHECKPOINT, weights_only=True)
    assert "visited" not in content
    assert content["optimisers"] == []
    assert (one / CHECKPOINT).stat().st_size < 0.5 * (gallery_run / CHECKPOINT).stat().st_size
    assert load_rollout_policy(NAME)[2] == load_rollout_policy(gallery_run)[2]  # the label
    assert load_run(one) == load_run(gallery_run)


@pytest.mark.slow
def test_commands_take_a_name(one: Path, capsys: Capture) -> None:
    for words in (["evaluate", NAME, "--episodes", "2"], ["plot", NAME], ["animate", NAME]):
        assert main(words) == 0, words
    assert sorted(path.name for path in Path("runs", NAME, "figures").iterdir()) == [
        "rollouts.png",
        "value_and_policy.png",
    ]
    assert Path("pendulum.gif").is_file()
    assert sorted(path.name for path in one.iterdir()) == [CHECKPOINT, "figures.json", RUN]  # nothing was added
    assert capsys.readouterr().out


@pytest.mark.slow
def test_the_limit_takes_a_name(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the search: the motions of the policy, one a start, are the first guesses."""
    guesses = []

    def stop(*about: Any) -> None:
        guesses.extend(inspect.signature(search).bind(*about).arguments["own"])
        raise KeyError

    monkeypatch.setattr(limit, "search", stop)
    with pytest.raises(KeyError):
        limit.find_limit(NAME, {}, 0, 0)
    assert len(guesses) == 5
    with pytest.raises(SolverError, match=f"`{NAME}`"):
        limit.find_limit("pendulum-rfv", {}, 0, 0)
    assert one.is_dir()


@pytest.mark.slow
def test_the_table_and_its_json(one: Path, capsys: Capture) -> None:
    assert main(["policies"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["policy", "return", "success", "limit", "gap", "seed", "commit", "date"]
    assert re.split(" {2,}", row) == [
        *(NAME, "-33.00 +- 0.50", "100 %", "-30.00", "3.00 (15.0 %)", "0", "abc1234", "2026-01-02")
    ]
    assert main(["policies", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[NAME]["gap_percent"] == 15.0
    (one / "figures.json").write_text(json.dumps({**vars(FIGURES), "limit": "far"}))
    assert main(["policies"]) == 2
    assert "figures.json is damaged" in capsys.readouterr().err


def test_a_version_without_policies_lists_none(empty: Path, capsys: Capture) -> None:
    assert main(["policies"]) == 0
    assert "no policies ship with this version" in capsys.readouterr().out
    assert not empty.exists()


@pytest.mark.slow
def test_ship_measures_the_run(
    empty: Path, gallery_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    start = np.array([np.pi, 0.0])
    best = PlannedMotion(np.zeros((2, 2)), np.zeros((1, 1)), -30.0, "a guess")
    found = limit.StartLimit(start, best, 1, 1, True, idle_return=-50.0, run_return=-33.0)
    asked: list[int] = []

    def search(_: str, __: list[str], guesses: int, **___: int) -> limit.Limit:
        asked.append(guesses)
        return limit.Limit("pendulum", ("a", "b"), {}, (found,), "run")

    monkeypatch.setattr(limit, "find_limit", search)
    assert main(["policies", "--ship", str(gallery_run), "--guesses", "3"]) == 0
    assert asked == [3]
    assert NAME in capsys.readouterr().out
    figures = shipped.read_figures(NAME)
    assert (figures.limit, figures.gap, figures.gap_percent) == (-30.0, 3.0, pytest.approx(15.0))
    assert main(["evaluate", str(gallery_run), "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert figures.return_mean == evaluated["return_mean"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", figures.date)
    assert load_run(empty / NAME).generated is None


def test_a_policy_whose_figures_cannot_be_written_does_not_ship(empty: Path, gallery_run: Path) -> None:
    (empty / NAME / "figures.json").mkdir(parents=True)
    with pytest.raises(SolverError, match=r"figures\.json"):
        lifecycle.ship(gallery_run, FIGURES)
    assert [path.name for path in (empty / NAME).iterdir()] == ["figures.json"]


@pytest.mark.slow
def test_only_changed_code_marks_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a page of results, nor a policy, which the row before may have written."""
    places = ["docs/results/README.md", "solver/shipped/pendulum-rfvi/run.json", "solver/game.py"]
    for place in places:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("before")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.setattr(shipped, "ROOT", tmp_path)
    marks = []
    for place in places:
        (tmp_path / place).write_text("after")
        marks.append(shipped.commit().endswith("+"))
    assert marks == [False, False, True]


def test_unknown_policy_suggests_the_nearest_and_a_shipped_one_cannot_resume(one: Path, capsys: Capture) -> None:
    assert main(["evaluate", "pendulum-rfv"]) == 2
    assert f"Did you mean `{NAME}`?" in capsys.readouterr().err
    assert main(["train", "--resume", NAME]) == 2
    assert f"{NAME} is a shipped policy" in capsys.readouterr().err
    assert one.is_dir()


def test_folder_of_the_user_has_priority_over_a_shipped_policy(one: Path, gallery_run: Path) -> None:
    shutil.copytree(gallery_run, NAME)
    assert shipped.run_folder(NAME) == Path(NAME)
    assert shipped.run_folder(f"elsewhere/{NAME}") == Path(f"elsewhere/{NAME}")
    shutil.rmtree(NAME)
    assert shipped.run_folder(NAME) == one


def test_large_unfinished_or_foreign_run_cannot_ship(empty: Path, gallery_run: Path, tmp_path: Path) -> None:
    run_copy = Path(shutil.copytree(gallery_run, tmp_path / "run"))
    with pytest.raises(SolverError, match="1000"):
        lifecycle.ship(run_copy, FIGURES, largest=1000)
    content = json.loads((run_copy / RUN).read_text())
    content["settings"]["iterations"] += 1
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match="iterations is 6"):
        lifecycle.ship(run_copy, FIGURES)
    content["artifact_hash"] = "0" * 64
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=r"0{12} of pendulum"):
        lifecycle.ship(run_copy, FIGURES)
    assert not empty.exists()


@pytest.mark.slow
def test_shipped_policies_load_and_are_small() -> None:
    """On the shipped artifacts, under the names of their robots and algorithms, and small."""
    for name in shipped.names():
        run, figures = load_run(shipped.FOLDER / name), shipped.read_figures(name)
        assert name == f"{run.robot}-{run.settings.algorithm}" == f"{figures.robot}-{figures.algorithm}"
        assert (shipped.FOLDER / name / CHECKPOINT).stat().st_size <= lifecycle.LARGEST
        load_rollout_policy(shipped.FOLDER / name)


def test_refusals_name_a_shipped_policy_and_no_path(tmp_path: Path) -> None:
    told: dict[str, Any] = {"told": {"mass": 1.2}}
    with pytest.raises(SolverError, match=f"^the policy of {NAME} cannot be told mass"):
        solver.load(NAME).export(tmp_path, "c", **told)
    with pytest.raises(SolverError, match=f"^the policy of {NAME} cannot be told mass"):
        load_rollout_policy(NAME, **told)
