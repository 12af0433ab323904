"""The gallery: rows that come with the runs, and what a later call keeps of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from modelgen.artifact.folder import SHIPPED, known
from solver.cli import main
from solver.commands.reproduce import Options, carry_out
from solver.errors import SolverError
from solver.fvi.presets import make_settings
from solver.fvi.run import load_run
from solver.plants.outcome import summary
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.robots import load_robot
from solver.reproduction import gallery
from solver.reproduction.experiments import Choice, Plan, make_plan
from solver.reproduction.gallery import Gallery
from solver.reproduction.page import Origin
from solver.reproduction.processes import _arguments
from solver.reproduction.runs import run_plan
from solver.runs.kinds import load_controller
from solver.streams import EVALUATION_SEED
from tests.solver.reproduction.small_plans import NEVER, choice, quiet, train_here

Capture = pytest.CaptureFixture[str]
START = {"angle": 3.1, "angle_rate": 0.0}


def store_limit(out: Path) -> None:
    """A limit of the pendulum, as an earlier call wrote it."""
    artifact = load_robot("pendulum", "cpu", None).hash
    limit = {"artifact": artifact, "limit": -30.0, "idle_return": -50.0, "starts": [{"start": START}]}
    out.mkdir(parents=True, exist_ok=True)
    (out / "gallery.json").write_text(json.dumps({"limits": {"pendulum": limit}, "rows": []}))


def rows(out: Path) -> list[dict[str, Any]]:
    return list(json.loads((out / "gallery.json").read_text())["rows"])


def small(**more: Any) -> Choice:
    return choice(robots=("pendulum",), seeds=(0,), **more)


def test_all_robots_with_default_settings() -> None:
    """Both algorithms on every shipped robot; the command line has no setting but algorithm, seed and threads."""
    plan = make_plan("gallery", "small", Choice(threads=2))
    assert list(plan.robots) == known(SHIPPED)
    assert [(t.robot, t.method) for t in plan.trainings] == [(r, m) for r in plan.robots for m in ("cfvi", "rfvi")]
    training = plan.trainings[-1]
    robot = load_robot(training.robot, "cpu", None)
    assert training.settings == make_settings("fast", robot, algorithm="rfvi", seed=0, threads=2)
    words = _arguments(training, Path("out"), None)
    assert {word for word in words if word.startswith("--")} <= {
        "--out",
        "--algorithm",
        "--preset",
        "--seed",
        "--threads",
    }


def test_the_page_holds_what_the_rollouts_give(tmp_path: Path, capsys: Capture) -> None:
    store_limit(tmp_path)
    train_here(make_plan("gallery", "small", small()), tmp_path / "runs")
    options = Options("gallery", robots=["pendulum"], seeds=[0], runs=tmp_path / "runs", out=tmp_path, jobs=1)
    assert carry_out(options, small()) == 0
    assert capsys.readouterr().out.splitlines()[0] == "0 trained, 2 reused"
    text = (tmp_path / "gallery.md").read_text()
    assert "`solver reproduce gallery --budget small --robots pendulum --seeds 0 --jobs 1`" in text
    assert "Missing" not in text
    folders = {load_run(path).settings.algorithm: path for path in (tmp_path / "runs").glob("pendulum-*")}
    for row in rows(tmp_path):
        problem, act, _ = load_controller(folders[row["algorithm"]])
        expected = summary(rollouts(problem, act, sample_starts(problem, 3, EVALUATION_SEED)))
        assert {name: row[name] for name in ("return_mean", "success_rate", "limit_rate")} == pytest.approx(
            {name: expected[name] for name in ("return_mean", "success_rate", "limit_rate")}
        )
        start = problem.target.new_tensor([list(START.values())])
        gap = -30.0 - float(rollouts(problem, act, start).returns[0])
        assert row["gap"] == pytest.approx(gap, abs=1e-3)
        assert row["gap_percent"] == pytest.approx(gap / 20.0 * 100.0, abs=1e-2)
        cells = f"| {row['return_mean']:.2f} ± {row['return_spread']:.2f} | -30.00 | -50.00 | {gap:.2f} |"
        assert cells in text
    before = (tmp_path / "gallery.json").read_text()
    edited = json.loads(before)
    edited["rows"][0]["machine"] = "another"  # kept, since the run is the same
    (tmp_path / "gallery.json").write_text(json.dumps(edited))
    carry_out(options, small())
    assert [row["machine"] == "another" for row in rows(tmp_path)] == [True, False]


def test_a_row_is_written_before_the_next_training_ends(tmp_path: Path) -> None:
    """And a training that fails is named as missing."""
    store_limit(tmp_path)
    plan = make_plan("gallery", "small", small())
    train_here(Plan(**{**vars(plan), "trainings": plan.trainings[:1]}), tmp_path / "runs")
    made = Gallery(plan, tmp_path, Origin("solver reproduce gallery", 1, 1), quiet)
    runs = run_plan(plan, tmp_path / "runs", 1, quiet, command=NEVER, finished=made.add)
    assert len(runs.failures) == 1
    assert [row["algorithm"] for row in rows(tmp_path)] == ["cfvi"]  # by add alone
    assert "**Missing:** pendulum, rfvi, seed 0" in (tmp_path / "gallery.md").read_text()


def test_a_limit_is_computed_once_and_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def none_found(robot: str, *_: object) -> None:
        calls.append(robot)
        raise SolverError("no motion")

    monkeypatch.setattr(gallery, "find_limit", none_found)
    plan = make_plan("gallery", "small", small())
    train_here(plan, tmp_path / "runs")
    made = Gallery(plan, tmp_path, Origin("solver reproduce gallery", 1, 1), quiet)
    run_plan(plan, tmp_path / "runs", 1, quiet, command=NEVER, finished=made.add)
    assert calls == ["pendulum"]
    assert [row["gap"] for row in rows(tmp_path)] == [None, None]
    assert "pendulum has no limit: no motion" in (tmp_path / "gallery.md").read_text()


def test_mistakes(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "gallery.json").write_text("{}")
    words = ["reproduce", "gallery", "--robots", "pendulum", "--methods", "rfvi", "--report-only"]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    assert "gallery.json is damaged or from another version" in capsys.readouterr().err
