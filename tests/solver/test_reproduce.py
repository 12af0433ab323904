"""Tables and figures by command: what is trained, what is reused, and what stands in the text."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.baselines.settings import baseline_settings
from solver.cli import main
from solver.commands.reproduce import Options, carry_out
from solver.errors import SolverError
from solver.evaluation import rollouts, sample_starts
from solver.policy import load_controller
from solver.presets import fast
from solver.reproduction import paper_results
from solver.reproduction.experiments import BUDGETS, Choice, Plan, make_plan
from solver.reproduction.runs import LOG, _arguments, _folder, _key, run_plan
from solver.run_folder import CHECKPOINT, RUN, load_checkpoint, load_run, read_metrics
from solver.settings import Settings
from solver.training import EVALUATION_SEED, load_robot, start

TINY: dict[str, Any] = {"iterations": 3, "states": 96, "epochs": 1, "minibatch": 48, "trace_decay": 0.8}
TINY |= {"trace_floor": 0.1, "holds": (2, 1), "members": 2, "layers": 1, "width": 8, "evaluate_every": 2}
TINY |= {"episodes": 3, "chunk": 48, "rollouts": 2}
SMALL = dataclasses.replace(BUDGETS["small"], episodes=3)
NEVER = (sys.executable, "-c", "raise SystemExit(9)")
Capture = pytest.CaptureFixture[str]


def quiet(_: object) -> None:
    """Say nothing."""


def choice(seeds: tuple[int, ...] = (0, 1), overrides: dict[str, Any] | None = None, **more: Any) -> Choice:
    return Choice(seeds=seeds, overrides={"solver": {**TINY, **(overrides or {})}}, budget=SMALL, **more)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four rows of table 1 with two seeds; tests must not change it."""
    parent = tmp_path_factory.mktemp("reproduce")
    train_here(make_plan("table1", "small", choice()), parent)
    return parent


def train_here(plan: Plan, parent: Path) -> None:
    """Train what is missing in this process, where starting costs nothing."""
    for training in plan.trainings:
        assert isinstance(training.settings, Settings)
        folder = _folder(parent, training, _key(training.robot, training.artifact_hash, training.settings))
        if not folder.exists():
            start(training.robot, "fast", training.settings, folder, None, quiet)


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "runs"))


def state(parent: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in parent.glob(f"*/{CHECKPOINT}")}


def test_runs_have_the_settings_of_their_methods(trained: Path) -> None:
    runs = {
        (run.settings.algorithm, run.settings.on_policy_share, run.settings.seed): run.settings
        for run in all_runs(trained)
    }
    assert len(runs) == 8
    assert set(runs) == {
        (algorithm, share, seed) for algorithm in ("cfvi", "rfvi") for share in (0, 1) for seed in (0, 1)
    }
    usual = fast(load_robot("pendulum", "cpu", None))
    for (_, share, _), settings in runs.items():
        assert {name: getattr(settings, name) for name in TINY} == TINY
        assert settings.start_share == (0.0 if share else 0.05)
        for name in ("alpha_state", "alpha_action", "alpha_observation", "alpha_parameters", "adversary_ramp"):
            assert getattr(settings, name) == usual[name]


def all_runs(parent: Path) -> list[Any]:
    return [load_run(path.parent) for path in parent.glob(f"*/{RUN}")]


def test_a_second_call_trains_nothing(copied: Path) -> None:
    before = state(copied)
    runs = run_plan(make_plan("table1", "small", choice()), copied, 2, quiet, command=NEVER)
    assert (runs.trained, runs.failures, len(runs.folders)) == (0, (), 8)
    assert state(copied) == before


def test_another_experiment_reuses_the_runs_it_shares(copied: Path) -> None:
    for experiment, shared in (("fig-learning", 8), ("fig-value", 2), ("fig-robustness", 4)):
        plan = make_plan(experiment, "small", choice())  # type: ignore[arg-type]
        assert len(run_plan(plan, copied, 1, quiet, command=NEVER).folders) == shared
    plan = make_plan("fig-ablation", "small", choice())
    runs = run_plan(plan, copied, 1, quiet, train=False)
    missing = {training.method for training in plan.trainings} - {training.method for training in runs.folders}
    at_once = (("DP", 1), ("RTDP", 0), ("RTDP", 1))
    assert missing == {f"{source}, full adversary at once, {share}" for source, share in at_once}


def test_the_number_of_threads_and_the_folder_do_not_matter(copied: Path) -> None:
    for k, path in enumerate(sorted(path.parent for path in copied.glob(f"*/{RUN}"))):
        path.rename(copied / f"mine{k}")
    runs = run_plan(make_plan("table1", "small", choice(threads=2)), copied, 1, quiet, command=NEVER)
    assert sorted(path.name for path in runs.folders.values()) == [f"mine{k}" for k in range(8)]


def test_the_adversary_does_not_matter_to_cfvi(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice(overrides={"alpha_action": 0.123}))
    runs = run_plan(plan, copied, 1, quiet, train=False)
    assert {training.method for training in runs.folders} == {"cFVI"}


def test_other_settings_get_a_folder_of_their_own(copied: Path) -> None:
    before = state(copied)
    plan = make_plan("fig-value", "small", choice(seeds=(0,), overrides={"width": 9}))
    runs = run_plan(plan, copied, 2, quiet)
    assert (runs.trained, runs.failures) == (2, ())
    after = state(copied)
    assert before.items() <= after.items()
    assert len(after) == 10
    assert {load_run(path).settings.width for path in runs.folders.values()} == {9}


def test_another_artifact_gets_a_folder_of_its_own(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice())
    changed = dataclasses.replace(
        plan, trainings=tuple(dataclasses.replace(training, artifact_hash="0" * 64) for training in plan.trainings)
    )
    assert not run_plan(changed, copied, 1, quiet, train=False).folders


def test_an_edited_run_is_refused(copied: Path) -> None:
    plan = make_plan("fig-value", "small", choice())
    folder = next(iter(run_plan(plan, copied, 1, quiet, train=False).folders.values()))
    content = json.loads((folder / RUN).read_text())
    content["settings"]["epochs"] = 2
    (folder / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=re.escape(str(folder)) + ".*edited or copied"):
        run_plan(plan, copied, 1, quiet, command=NEVER)


def test_an_unfinished_run_is_resumed_to_the_same_end(trained: Path, copied: Path) -> None:
    """Stopped by an exception after the second iteration; then bit for bit what was never stopped."""
    plan = make_plan("fig-value", "small", choice())
    finished = run_plan(plan, trained, 1, quiet, train=False).folders
    training, whole = next(iter(finished.items()))
    folder = copied / whole.name
    shutil.rmtree(folder)

    def stop(row: dict[str, float]) -> None:
        if row["iteration"] == 1:
            raise KeyboardInterrupt

    assert isinstance(training.settings, Settings)
    with pytest.raises(KeyboardInterrupt):
        start("pendulum", "fast", training.settings, folder, None, stop)
    assert load_checkpoint(folder)["iteration"] == 2
    runs = run_plan(plan, copied, 1, quiet)
    assert runs.trained == 1
    assert "--resume" in (folder / LOG).read_text()
    weights, expected = (load_checkpoint(each)["ensemble"] for each in (folder, whole))
    assert all((weights[name] == expected[name]).all() for name in expected)


def test_a_failed_training_stops_no_other(tmp_path: Path, capsys: Capture) -> None:
    """The second of two diverges; the table has the first, the message the log, and the command fails."""
    one = (
        sys.executable,
        "-c",
        "import sys\nif 'cfvi' in sys.argv: sys.exit('cannot')\nfrom solver.cli import main\nsys.exit(main())",
    )
    plan = make_plan("fig-value", "small", choice(seeds=(0,)))
    runs = run_plan(plan, tmp_path, 1, quiet, command=one)
    assert [failure.training.method for failure in runs.failures] == ["cFVI"]
    assert runs.failures[0].code == 1
    assert "cannot" in runs.failures[0].log.read_text()
    assert [training.method for training in runs.folders] == ["rFVI"]

    options = Options("fig-value", runs=tmp_path / "diverged", out=tmp_path / "out", jobs=2)
    bad = choice(seeds=(0,), overrides={"learning_rate": 1e30, "final_learning_rate": 1e30}, methods=("cFVI",))
    with pytest.raises(SystemExit) as stopped:
        carry_out(options, bad)
    assert stopped.value.code == 1
    assert re.search(rf"error: cFVI, pendulum, seed 0 failed \(1\): .*{LOG}", capsys.readouterr().err)
    text = (tmp_path / "out" / "fig-value-small.md").read_text()
    assert "**Missing:** cFVI, pendulum, seed 0 failed." in text


def test_table_1_is_what_the_rollouts_give(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    options = Options("table1", runs=trained, out=tmp_path, jobs=2, seeds=[0, 1])
    carry_out(options, choice())
    assert capsys.readouterr().out.splitlines()[0] == "0 trained, 8 reused"
    text = (tmp_path / "table1-small.md").read_text()
    assert "`solver reproduce table1 --budget small --seeds 0 1 --jobs 2`" in text
    assert "2 seeds (0, 1), **fewer than the paper's 5**" in text
    assert re.search(r"Machine: \d+ cores?, \d+ GiB of memory, \S", text)
    assert str(trained) not in text
    cells = [cell.strip() for cell in next(line for line in text.splitlines() if "| rFVI" in line).split("|")[1:-1]]

    folders = [p.parent for p in trained.glob(f"*/{RUN}") if is_dp_rfvi(load_run(p.parent).settings)]
    folders.sort(key=lambda folder: load_run(folder).settings.seed)
    returns, actions = [], []
    for folder in folders:
        game, act, _ = load_controller(folder)
        result = rollouts(game, act, sample_starts(game, 3, EVALUATION_SEED))
        returns.append(result.returns.double().numpy())
        actions.append(result.action_reward.double().numpy())
    pooled = np.concatenate(returns)
    assert len(pooled) == 6
    assert cells[1] == f"{pooled.mean():.1f} ± {1.96 * pooled.std(ddof=1):.1f}"
    assert cells[2] == "-32.7 ± 0.3"
    assert cells[3:5] == ["0.0 %", "100 %"]
    assert cells[7].startswith(f"{np.concatenate(actions).mean():.1f} ±")
    assert cells[9] == f"{-29.9 - pooled.mean():.1f}"
    assert cells[10] == ", ".join(f"{each.mean():.2f}" for each in returns)


def is_dp_rfvi(settings: Settings) -> bool:
    return settings.algorithm == "rfvi" and settings.on_policy_share == 0.0


@pytest.mark.parametrize(
    ("experiment", "figures"),
    [("fig-value", ["-pendulum.png"]), ("fig-learning", [".png"]), ("fig-robustness", ["-pendulum-nominal.png"])],
)
def test_figures(experiment: Any, figures: list[str], trained: Path, tmp_path: Path) -> None:
    carry_out(Options(experiment, runs=trained, out=tmp_path, jobs=1), choice())
    text = (tmp_path / f"{experiment}-small.md").read_text()
    for suffix in figures:
        name = f"{experiment}-small{suffix}"
        assert f"({name})" in text
        assert (tmp_path / name).stat().st_size > 20_000
    if experiment == "fig-learning":
        last = [
            read_metrics(p.parent)[-1]["return_mean"]
            for p in trained.glob(f"*/{RUN}")
            if is_dp_rfvi(load_run(p.parent).settings)
        ]
        assert f"| pendulum, rFVI | {np.mean(last):.1f} | {min(last):.1f} … {max(last):.1f} |" in text
    if experiment == "fig-robustness":
        found = json.loads((tmp_path / "fig-robustness-small-pendulum-nominal.json").read_text())
        assert [group["label"] for group in found["groups"]] == ["cFVI", "rFVI"]
        k = [round(change, 6) for change in found["axes"][0]["changes"]].index(1.5)
        assert f"{found['groups'][1]['statistics']['return_mean']['value'][k]:.1f} (0 %)" in text
        assert "| authors' rFVI |" in text
        assert "-48.4 (100 %)" in text


def test_the_ablation(copied: Path, tmp_path: Path) -> None:
    train_here(make_plan("fig-ablation", "small", choice(seeds=(0,))), copied)
    carry_out(Options("fig-ablation", runs=copied, out=tmp_path, jobs=2, seeds=[0]), choice(seeds=(0,)))
    text = (tmp_path / "fig-ablation-small.md").read_text()
    assert (tmp_path / "fig-ablation-small.png").stat().st_size > 20_000
    assert text.count("| pendulum, ") == 8
    row = {
        line.split("|")[1].strip(): line.split("|")[2] for line in text.splitlines() if line.startswith("| pendulum")
    }
    assert row["pendulum, DP, adversary ramped up, 0"] == row["pendulum, DP, full adversary at once, 0"]  # one run


def test_shares_scale_all_four_radii() -> None:
    plan = make_plan("fig-ablation", "full", Choice(robots=("furuta",), seeds=(3,)))
    found = {training.method: training.settings for training in plan.trainings}
    assert len(found) == 20
    whole, part = found["RTDP, full adversary at once, 1"], found["RTDP, full adversary at once, 0.25"]
    assert isinstance(whole, Settings)
    assert isinstance(part, Settings)
    for name in ("alpha_state", "alpha_action", "alpha_observation", "alpha_parameters"):
        assert getattr(part, name) == 0.25 * getattr(whole, name) > 0.0
    assert whole.adversary_ramp == (0.0, 0.0)
    assert (whole.on_policy_share, whole.on_policy_spread, whole.start_share, whole.seed) == (1.0, 0.0, 0.0, 3)
    remedied = found["RTDP, spread states, adversary ramped up, 1"]
    assert isinstance(remedied, Settings)
    assert remedied.on_policy_spread > 0.0
    assert remedied.adversary_ramp[1] > 0.0
    dp = found["DP, full adversary at once, 1"]
    assert isinstance(dp, Settings)
    assert dp.on_policy_share == 0.0
    assert found["DP, adversary ramped up, 0"].algorithm == "cfvi"


def test_the_full_table_has_every_row_of_the_papers() -> None:
    plan = make_plan("table1", "full", Choice(baseline_steps=1000))
    names = [method.name for method in plan.methods]
    assert set(names) == {*paper_results.RETURNS, "RTDP rFVI"}
    assert len(plan.trainings) == len(set(plan.trainings)) == 16 * 3 * 5
    uniform = next(t for t in plan.trainings if t.method == "PPO-U UDR" and t.robot == "cartpole" and t.seed == 2)
    assert uniform.settings == baseline_settings("ppo", start="uniform", randomize=True, seed=2, steps=1000)
    assert _arguments(uniform, Path("F"), None) == (
        ["baseline", "cartpole", "--out", "F", "--algorithm", "ppo", "--randomize", "--steps", "1000", "--seed", "2"]
    )


def test_a_baseline_runs_resumes_and_is_reused(tmp_path: Path) -> None:
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
    runs = run_plan(plan, tmp_path / "runs", 1, quiet)
    assert (runs.trained, runs.failures) == (1, ())
    carry_out(Options("table1", runs=tmp_path / "runs", out=tmp_path, report_only=True), mine)
    text = (tmp_path / "table1-small.md").read_text()
    assert "SAC is trained for 240 actions of 25 control periods each, **shorter than the 250,000" in text
    assert re.search(r"\| SAC-N UDR \| -[\d.]+ ± [\d.]+ \| -32.9 ± 0.6 \|", text)
    assert run_plan(plan, tmp_path / "runs", 1, quiet, command=NEVER).trained == 0


def test_two_calls_in_one_folder(tmp_path: Path) -> None:
    plan = make_plan("fig-value", "small", choice(seeds=(0,)))

    def meanwhile(_: str) -> None:
        with pytest.raises(SolverError, match="is at work in"):
            run_plan(plan, tmp_path, 1, quiet)
        raise KeyError

    with pytest.raises(KeyError):
        run_plan(plan, tmp_path, 1, meanwhile, command=NEVER)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background jobs start with Ctrl-C ignored; the test needs Python's own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_call_that_is_interrupted_leaves_no_training_behind(tmp_path: Path) -> None:
    """Ctrl-C while one of two sleeps: it is ended, the next is not started, and the lock is free."""
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    plan = make_plan("fig-value", "small", choice(seeds=(0,)))
    announced: list[str] = []

    def interrupt(text: str) -> None:
        announced.append(text)
        if len(announced) == 1:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path, 1, interrupt, command=sleeper)
    assert len(announced) == 1
    assert not run_plan(plan, tmp_path, 1, quiet, train=False).folders


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table1", "--methods", "SAC-U"], "table1 with --budget small has no method 'SAC-U'"),
        (["fig-learning", "--methods", "rFVl"], "Did you mean `rFVI`"),
        (["table1", "--seeds", "1", "1"], "--seeds 1 1 names something twice"),
        (["table1", "--seeds", "-1"], "setting seed is -1"),
        (["table1", "--robots", "pendulun"], "pendulum"),
        (["table1", "--jobs", "0"], "--jobs is 0"),
        (["fig-robustness", "--robots", "acrobot"], "mass ranges for pendulum, cartpole, furuta only"),
        (["table1", "--baseline-steps", "0", "--budget", "full"], "setting steps is 0"),
    ],
)
def test_mistakes(words: list[str], message: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["reproduce", *words, "--runs", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*/"))


def test_nothing_trained_and_nothing_found(tmp_path: Path, capsys: Capture) -> None:
    for experiment in ("table1", "fig-value", "fig-learning", "fig-robustness", "fig-ablation"):
        words = ["reproduce", experiment, "--report-only", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]
        assert main(words) == 0
        assert "0 trained, 0 reused" in capsys.readouterr().out
        assert "**Missing:** " in (tmp_path / "out" / f"{experiment}-small.md").read_text()
