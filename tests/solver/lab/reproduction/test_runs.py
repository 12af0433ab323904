"""Which runs are trained, resumed and reused, and what stays when one fails or all are interrupted."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from solver.cli import main
from solver.commands import reproduce
from solver.commands.reproduce import Options, carry_out
from solver.errors import SolverError
from solver.jobs import LOG
from solver.lab.reproduction.experiments import Choice, make_plan
from solver.lab.reproduction.runs import run_plan, shipped_runs
from solver.problem.robots import load_robot
from solver.runs.folder import CHECKPOINT
from solver.training.settings import fast
from solver.training.solution import RUN, load_run
from tests.solver.lab.reproduction.small_plans import NEVER, SMALL, TINY, choice, quiet, train_here

pytestmark = pytest.mark.slow

Capture = pytest.CaptureFixture[str]


def state(parent: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in parent.glob(f"*/{CHECKPOINT}")}


def test_trained_runs_have_the_settings_of_their_methods(trained: Path) -> None:
    runs = {
        (run.settings.algorithm, run.settings.sampling, run.settings.seed): run.settings for run in all_runs(trained)
    }
    assert len(runs) == 8
    assert set(runs) == {
        (algorithm, sampling, seed)
        for algorithm in ("cfvi", "rfvi")
        for sampling in ("mixture", "spread-rollouts")
        for seed in (0, 1)
    }
    usual = fast(load_robot("pendulum", "cpu", None))
    for (algorithm, _, _), settings in runs.items():
        assert {name: getattr(settings, name) for name in TINY} == TINY
        assert settings.adversary_ramp == usual["adversary_ramp"]
        assert settings.adversaries == (usual["adversaries"] if algorithm == "rfvi" else {})


def all_runs(parent: Path) -> list[Any]:
    return [load_run(path.parent) for path in parent.glob(f"*/{RUN}")]


def test_second_call_trains_nothing(copied: Path) -> None:
    before = state(copied)
    runs = run_plan(make_plan("table1", "small", choice()).trainings, copied, 2, quiet, command=NEVER)
    assert (runs.trained, runs.failures, len(runs.folders)) == (0, (), 8)
    assert state(copied) == before


def test_another_experiment_reuses_shared_runs(copied: Path) -> None:
    for experiment, shared in (("fig-learning", 8), ("fig-value", 2), ("fig-robustness", 4)):
        plan = make_plan(experiment, "small", choice())  # type: ignore[arg-type]
        assert len(run_plan(plan.trainings, copied, 1, quiet, command=NEVER).folders) == shared
    plan = make_plan("fig-ablation", "small", choice())
    runs = run_plan(plan.trainings, copied, 1, quiet, train=False)
    missing = {training.method for training in plan.trainings} - {training.method for training in runs.folders}
    # The preset has states from rollouts, and so shares nothing with DP, nor its bare rollouts with RTDP at once.
    at_once = {f"{source}, full adversary at once, {share}" for source in ("DP", "RTDP") for share in (0, 1)}
    assert missing == at_once | {f"DP, adversary ramped up, {share}" for share in (0, 1)}


def test_runs_are_reused_with_other_threads_and_from_other_folders(copied: Path) -> None:
    for k, path in enumerate(sorted(path.parent for path in copied.glob(f"*/{RUN}"))):
        path.rename(copied / f"mine{k}")
    runs = run_plan(make_plan("table1", "small", choice(threads=2)).trainings, copied, 1, quiet, command=NEVER)
    assert sorted(path.name for path in runs.folders.values()) == [f"mine{k}" for k in range(8)]


def test_cfvi_runs_are_reused_with_other_adversary_settings(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice(overrides={"modulation": "wiener"}))
    runs = run_plan(plan.trainings, copied, 1, quiet, train=False)
    assert {training.method for training in runs.folders} == {"cFVI"}


def test_shipped_policies_are_reused_for_default_settings(tmp_path: Path) -> None:
    """Not for RTDP, which has settings of its own, nor for another seed."""
    plan = make_plan("table1", "small", Choice(robots=("pendulum", "furuta", "reaction_wheel"), seeds=(0, 7)))
    runs = run_plan(plan.trainings, tmp_path, 1, quiet, train=False, ready=shipped_runs(plan.trainings))
    found = {(training.robot, training.method, training.seed, path.name) for training, path in runs.folders.items()}
    robots = ("pendulum", "furuta", "reaction_wheel")
    assert found == {(robot, m, 0, f"{robot}-{m.lower()}") for robot in robots for m in ("cFVI", "rFVI")}


def test_another_artifact_gets_another_folder(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice())
    changed = dataclasses.replace(
        plan,
        trainings=tuple(
            dataclasses.replace(training, run=dataclasses.replace(training.run, artifact_hash="0" * 64))
            for training in plan.trainings
        ),
    )
    assert not run_plan(changed.trainings, copied, 1, quiet, train=False).folders


def test_edited_run_is_an_error(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice())
    folder = next(iter(run_plan(plan.trainings, copied, 1, quiet, train=False).folders.values()))
    content = json.loads((folder / RUN).read_text())
    content["settings"]["epochs"] = 2
    (folder / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=re.escape(str(folder)) + ".*edited or copied"):
        run_plan(plan.trainings, copied, 1, quiet, command=NEVER)


def test_failed_training_does_not_stop_the_others(copied: Path, tmp_path: Path, capsys: Capture) -> None:
    """The first of two ends; the second, of settings that no run has, gets a folder of its own beside the others."""
    before = state(copied)
    one = (
        sys.executable,
        "-c",
        "import shutil, sys\nfolder = sys.argv[-1]\nif 'cfvi' in folder: sys.exit('cannot')\n"
        f"shutil.copytree({str(tmp_path / 'trained')!r} + folder[len({str(copied)!r}):], folder, "
        "ignore=shutil.ignore_patterns('artifact'), dirs_exist_ok=True)",
    )
    plan = make_plan("fig-value", "small", choice(seeds=(0,), overrides={"width": 9}))
    train_here(plan.trainings, tmp_path / "trained")
    runs = run_plan(plan.trainings, copied, 1, quiet, command=one, preview=0.0)
    assert [failure.training.method for failure in runs.failures] == ["cFVI"]
    assert runs.failures[0].code == 1
    assert "cannot" in runs.failures[0].log.read_text()
    assert [(training.method, load_run(path).settings.width) for training, path in runs.folders.items()] == [
        ("rFVI", 9)
    ]
    assert before.items() <= state(copied).items()
    assert len(state(copied)) == 9

    options = Options("fig-value", runs=tmp_path / "diverged", out=tmp_path / "out", jobs=2)
    bad = choice(seeds=(0,), overrides={"learning_rate": 1e30}, methods=("cFVI",))
    assert carry_out(options, bad) == 1
    assert re.search(rf"error: cFVI, pendulum, seed 0 failed \(1\): .*{LOG}", capsys.readouterr().err)
    text = (tmp_path / "out" / "paper.md").read_text()
    assert "**Missing:** pendulum, seed 0, failed: cFVI." in text


def test_baseline_is_trained_and_reused(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    tiny = {
        "steps": 240,
        "hold": 25,
        "environments": 4,
        "evaluate_every": 120,
        "episodes": 3,
        "minibatch": 16,
        "width": 8,
    }
    budget = dataclasses.replace(SMALL, baselines=True)
    mine = Choice(budget=budget, methods=("SAC-N UDR",), overrides={"baseline": tiny}, baseline_steps=200)
    plan = make_plan("table1", "small", mine)
    words = tmp_path / "words.json"  # of the command that would train, which this process does
    tell = (sys.executable, "-c", f"import json, sys; json.dump(sys.argv[1:], open({str(words)!r}, 'w'))")
    runs = run_plan(plan.trainings, tmp_path / "runs", 1, quiet, command=tell)
    assert (runs.trained, runs.failures) == (1, ())
    assert main(json.loads(words.read_text())) == 0
    carry_out(Options("table1", runs=tmp_path / "runs", out=tmp_path, report_only=True), mine)
    text = (tmp_path / "paper.md").read_text()
    assert "SAC: 240 actions of 25 control periods on pendulum, **shorter than the 200,000" in text
    assert re.search(r"\| SAC-N UDR \| -[\d.]+[^|]* \| -[\d.]+[^|]* \| -32.9 \|", text)
    assert run_plan(plan.trainings, tmp_path / "runs", 1, quiet, command=NEVER).trained == 0


def test_trainings_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores among two at once: two threads each, for every library that starts some."""
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    chosen: list[Choice] = []
    monkeypatch.setattr(reproduce, "carry_out", lambda _, asked: chosen.append(asked))
    reproduce.run(Options("fig-value", jobs=2))
    assert chosen[0].threads == 2
    plan = make_plan("fig-value", "small", choice(seeds=(0,), threads=2, overrides={"threads": 2}))
    script = "import os; print(*(v for k, v in os.environ.items() if k.endswith('_NUM_THREADS'))); raise SystemExit(9)"
    runs = run_plan(plan.trainings, tmp_path, 1, quiet, command=(sys.executable, "-c", script))
    assert [failure.log.read_text().split()[-4:] for failure in runs.failures] == [["2"] * 4] * 2


def test_second_call_in_the_same_folder_is_an_error(tmp_path: Path) -> None:
    plan = make_plan("fig-value", "small", choice(seeds=(0,)))

    def meanwhile(_: str) -> None:
        with pytest.raises(SolverError, match=f"in {tmp_path}"):
            run_plan(plan.trainings, tmp_path, 1, quiet)
        raise KeyError

    with pytest.raises(KeyError):
        run_plan(plan.trainings, tmp_path, 1, meanwhile, command=NEVER)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_interrupted_call_ends_its_trainings(tmp_path: Path) -> None:
    """Ctrl-C while one of two sleeps: it is ended, the next is not started, and the lock is free."""
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    plan = make_plan("fig-value", "small", choice(seeds=(0,)))
    announced: list[str] = []

    def interrupt(text: str) -> None:
        announced.append(text)
        if "trainings, " in text:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan.trainings, tmp_path, 1, interrupt, command=sleeper)
    assert announced[-1] == "2 trainings, 1 at a time"
    assert not run_plan(plan.trainings, tmp_path, 1, quiet, train=False).folders
