"""Files of `solver sweep`: their runs, mistakes in them, finished runs, results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from solver.cli import main
from solver.lab.reproduction.runs import Runs, run_key, run_plan
from solver.lab.sweeps import read, rows
from solver.problem.context import Given
from solver.runs.folder import METRICS
from solver.training.solution import RunDescription, load_run
from tests.solver.jobs.test_cluster import SPEC
from tests.solver.lab.reproduction.small_plans import train_here

Capture = pytest.CaptureFixture[str]


def test_sweep_has_all_robots_with_all_settings_and_seeds(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    (tmp_path / "s.toml").write_text(
        'robots = ["pendulum", "cartpole"]\nseeds = [3, 4]\n[settings.a]\nwidth = 8\nthreads = 2\n'
        '[settings.b]\nalgorithm = "sac"\nrandomize = true\n'
    )
    planned = [(t.seed, t.robot, t.method, t.kind.command, t.threads) for t in read(tmp_path / "s.toml", threads=5)]
    assert planned == [
        (seed, robot, *rest)
        for seed in (3, 4)
        for robot in ("pendulum", "cartpole")
        for rest in (("a", "train", 2), ("b", "baseline", 1))
    ]


def test_description_of_a_run_is_what_its_table_says(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told parameters, and the run that it begins with, too; for a worker in another folder."""
    start = finished_run.name
    text = f'robots = ["pendulum"]\n[settings.a]\ngiven = ["mass"]\n[settings.b]\nstart_from = "{start}"\n'
    text += "iterations = 100\n[settings.c]\ngiven = {mass = [0.6, 1.2]}\n"
    (tmp_path / "s.toml").write_text(text)
    monkeypatch.chdir(finished_run.parent)
    family, warm, narrow = read(tmp_path / "s.toml")
    monkeypatch.chdir(tmp_path)
    planned = family, warm, narrow
    nothing = run_plan(planned, tmp_path, 1, lambda _: None, command=(sys.executable, "-c", ""), preview=0.0)
    described = [load_run(nothing.folders[training]) for training in planned]
    assert [*map(run_key, described)] == [run_key(training.run) for training in planned]
    assert [run.warm_from for run in described] == ["", str(finished_run), ""]
    assert isinstance(family.run, RunDescription)
    assert family.run.told_names == ("mass",)
    assert isinstance(narrow.run, RunDescription)
    assert narrow.run.given == (Given("mass", 0.6, 1.2),)


def test_row_of_a_run_has_the_figures_of_its_kept_policy(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('robots = ["pendulum"]\n')
    (planned,) = read(tmp_path / "s.toml")
    logged = [
        {"iteration": k, "kept": kept, "return_mean": -k, "success_rate": success}
        for k, kept, success in ((4, 5, 0.2), (9, 10, 0.9), (14, 10, 0.1))
    ]
    (tmp_path / METRICS).write_text("".join(json.dumps(row) + "\n" for row in logged))
    (row,) = rows(Runs({planned: tmp_path}, 1, ()))
    assert (row["return_mean"], row["success_rate"]) == (-9, 0.9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("robots = [", "TOML"),
        ("seeds = [1]", 'robots = ["pendulum"]'),
        ('robots = ["pendulum"]\nseed = [1]', "`seeds`"),
        ('robots = ["pendulum"]\nseeds = [1, 1]', "seeds is [1, 1]"),
        ('robots = ["pendulum"]\nseeds = [true]', "seeds is [True]"),
        ('robots = ["pendulun"]', "settings.usual, robot pendulun, seed 0: There is no artifact 'pendulun'"),
        ('robots = ["pendulum"]\nseeds = [-1]', "seed -1: "),
        ('robots = ["pendulum"]\n[settings]', "[settings.usual]"),
        ('robots = ["pendulum"]\nsettings = 3', "settings is 3"),
        ('robots = ["pendulum"]\n[settings.a]\nseed = 1', "settings.a.seed"),
        ('robots = ["pendulum"]\n[settings.a]\nwidht = 1', "unknown setting 'widht'. Did you mean `width`?"),
        ('robots = ["pendulum"]\n[settings.a]\nwidth = "x"', "settings.a, robot pendulum, seed 0: "),
        ('robots = ["pendulum"]\n[settings.a]\nepochs = 1.5', "settings.a, robot pendulum, seed 0: "),
        ('robots = ["pendulum"]\n[settings.a]\npreset = [1]', "settings.a, robot pendulum, seed 0: "),
        ('robots = ["pendulum"]\n[settings.a]\nalgorithm = "td3"', "unknown algorithm 'td3'"),
        ('robots = ["pendulum"]\n[settings.a]\nalgorithm = 3', "settings.a.algorithm is 3"),
        ('robots = ["pendulum"]\n[settings.a]\nstart_from = 3', "settings.a.start_from is 3"),
        ('robots = ["pendulum"]\n[settings.a]\ngenerated = "x"', "settings.a.generated is not a key"),
        ('robots = ["pendulum"]\n[settings.a.b]\nc = 3', "settings.a.b is a table"),
        ('robots = ["pendulum"]\n[settings.a]\nidentified = "x.json"', "settings.a.identified is not a key"),
    ],
)
def test_mistake_in_a_sweep_file_names_file_and_key(text: str, message: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    assert main(["sweep", str(path), "--out", str(tmp_path / "runs")]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert str(path) in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_finished_runs_of_a_sweep_need_resume_and_stay(short: str, tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "s.toml", tmp_path / "runs"
    path.write_text(SPEC.replace("= 24", "= 2"))
    train_here(read(path, short), out)
    sweep = ["sweep", str(path), "--out", str(out), "--generated", short]
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.pt")}
    assert main(sweep) == 2
    assert f"{out} already holds runs" in capsys.readouterr().err
    assert main([*sweep, "--resume"]) == 0
    assert "0 trained, 1 reused" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.pt")} == before
    (row,) = json.loads((out / "sweep.json").read_text())
    assert (row["robot"], row["settings"], row["seed"]) == ("pendulum", "tiny", 0)
    assert row["return_mean"] < 0.0
