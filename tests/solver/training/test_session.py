"""Runs: repeated bit for bit, interrupted, resumed, protected from edits and from a full disk."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.cli import main
from solver.errors import SolverError
from solver.interface import Callback
from solver.runs.folder import CHECKPOINT, METRICS, save_checkpoint
from solver.runs.metrics import MetricsLog, read_metrics
from solver.training import lifecycle, schedule, selection
from solver.training.lifecycle import resume
from solver.training.solution import RUN, load_run, load_run_checkpoint
from tests.solver.conftest import TINY, heeding_ctrl_c
from tests.solver.small_trainings import start, tensors

pytestmark = pytest.mark.slow

TrainTiny = Callable[..., None]
TIMES = {"seconds_targets", "seconds_fit", "seconds_evaluation"}
LONG = ["--iterations", "10", "--evaluate-every", "5"]


def identical(a: Path, b: Path) -> bool:
    """Whether two folders hold the same weights and optimiser state, bit for bit, and the same metrics."""
    first, second = (list(tensors(load_run_checkpoint(folder))) for folder in (a, b))
    assert len(first) == len(second) > 10
    rows = [[{k: v for k, v in row.items() if k not in TIMES} for row in read_metrics(folder)] for folder in (a, b)]
    return all(torch.equal(x, y) for x, y in zip(first, second, strict=True)) and rows[0] == rows[1]


@pytest.mark.parametrize("changes", [{}, {"threads": 3}])
def test_same_seed_gives_the_same_bits(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, changes: dict[str, int]
) -> None:
    train_tiny(tmp_path / "again", **changes)
    assert identical(finished_run, tmp_path / "again")


def test_another_seed_gives_another_run(train_tiny: TrainTiny, finished_run: Path, tmp_path: Path) -> None:
    train_tiny(tmp_path / "other", seed=1)
    assert not identical(finished_run, tmp_path / "other")


def test_a_callback_stops_a_training_that_resume_continues(short: str, tmp_path: Path) -> None:
    settings = {**TINY, "iterations": 4, "convergence": 0}
    rows: list[float] = []

    def stop(row: dict[str, float]) -> np.bool_:
        rows.append(row["iteration"])
        return np.float64(row["iteration"]) == 1

    def train(folder: str, callback: Callback) -> solver.Run:
        out = tmp_path / folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return solver.train("pendulum", out=out, generated=short, preview=0, callback=callback, **settings)

    run = train("stopped", stop)
    assert rows == [0, 1]
    assert "2 of 4 iterations" in repr(run)
    solver.resume(tmp_path / "stopped", callback=stop)
    assert len(rows) == 4
    train("whole", lambda _: None)
    assert identical(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.parametrize("done", [0, 4])
def test_interrupted_and_resumed_is_uninterrupted(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, done: int
) -> None:
    """KeyboardInterrupt in the first and in the last iteration; `test_resuming_other_settings` has one in between."""

    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == done:
            raise KeyboardInterrupt

    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tiny(folder, interrupt)
    assert load_run_checkpoint(folder)["iteration"] == done + 1
    resume(folder, lambda _: None)
    assert identical(finished_run, folder)


def test_interrupted_between_metrics_and_checkpoint(
    train_tiny: TrainTiny, finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def interrupted(folder: Path, checkpoint: dict[str, Any]) -> None:
        if checkpoint["iteration"] == 3:
            raise KeyboardInterrupt
        save_checkpoint(folder, checkpoint)

    monkeypatch.setattr(lifecycle, "save_checkpoint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "run")
    monkeypatch.undo()
    assert load_run_checkpoint(tmp_path / "run")["iteration"] == 2
    resume(tmp_path / "run", lambda _: None)
    assert identical(finished_run, tmp_path / "run")


def test_resuming_other_settings(train_tiny: TrainTiny, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"authors": False, "modulation": "stationary", "sampling": "mixture"}

    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    train_tiny(tmp_path / "whole", **changes)
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "parts", interrupt, **changes)
    resume(tmp_path / "parts", lambda _: None)
    assert identical(tmp_path / "whole", tmp_path / "parts")


def test_resuming_a_finished_run_changes_nothing(finished_run: Path, run_copy: Path) -> None:
    resume(run_copy, lambda _: None)
    assert identical(finished_run, run_copy)


def started(folder: Path, words: list[str], rows: int) -> subprocess.Popen[str]:
    """`solver train` in another process, once it has logged so many iterations."""
    command = heeding_ctrl_c(["train", "pendulum", *words, "--out", str(folder)])
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 300
    while len(read_metrics(folder)) < rows:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return process


def test_killed_and_resumed_is_uninterrupted(tiny_options: list[str], short: str, tmp_path: Path) -> None:
    process = started(tmp_path / "killed", [*tiny_options, *LONG], rows=2)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert 1 <= load_run_checkpoint(tmp_path / "killed")["iteration"] < 10
    assert main(["train", "--resume", str(tmp_path / "killed")]) == 0
    start("pendulum", "fast", load_run(tmp_path / "killed").settings, tmp_path / "whole", short, lambda _: None)
    assert identical(tmp_path / "whole", tmp_path / "killed")


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_no_run_are_kept(short: str, tmp_path: Path, overwrite: bool) -> None:
    """A folder of the user whose files have the names of a run's files."""
    for name in ("artifact/thesis.txt", "metrics.jsonl", "model.zip"):
        folder = tmp_path / name.replace("/", "_")
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("mine")
        with pytest.raises(SolverError, match=f"{name.partition('/')[0]} belongs to no run"):
            solver.train("pendulum", out=folder, generated=short, preview=0, iterations=1, overwrite=overwrite)
        assert (folder / name).read_text() == "mine"
        assert [path.name for path in folder.iterdir()] == [name.partition("/")[0]]


def test_a_folder_with_a_run_is_not_written_over(train_tiny: TrainTiny, run_copy: Path, finished_run: Path) -> None:
    with pytest.raises(SolverError, match=r"--resume.*overwrite"):
        train_tiny(run_copy)
    assert identical(finished_run, run_copy)


def test_full_disk_during_training_keeps_the_checkpoint(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = MetricsLog.write

    def full(log: Any, row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise OSError(28, "No space left on device")
        write(log, row)

    monkeypatch.setattr(MetricsLog, "write", full)
    with pytest.raises(SolverError, match=r"No space left on device.*--resume"):
        train_tiny(tmp_path)
    assert load_run_checkpoint(tmp_path)["iteration"] == 2


@pytest.mark.parametrize(("name", "value"), [("width", 9), ("trace_floor", 0.5), ("seed", 7), ("step_periods", [1])])
def test_run_json_edited_before_resuming(run_copy: Path, name: str, value: Any) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["settings"][name] = value
    (run_copy / RUN).write_text(json.dumps(content))
    with pytest.raises(SolverError, match=f"{name} is {re.escape(str(value))} "):
        resume(run_copy, lambda _: None)


def test_resuming_against_another_artifact_is_refused(run_copy: Path) -> None:
    content = json.loads((run_copy / RUN).read_text())
    content["artifact_hash"] = "0" * 64
    (run_copy / RUN).write_text(json.dumps(content))
    path = run_copy / CHECKPOINT
    torch.save(torch.load(path, weights_only=True) | {"artifact_hash": "0" * 64}, path)
    with pytest.raises(SolverError, match=r"0{64}"):
        resume(run_copy, lambda _: None)


def test_metrics_are_one_row_an_iteration(finished_run: Path) -> None:
    rows = read_metrics(finished_run)
    assert [row["iteration"] for row in rows] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [row["iteration"] for row in rows if "return_mean" in row] == [2.0, 4.0]
    assert [row["step_periods"] for row in rows] == [2.0, 2.0, 2.0, 1.0, 1.0]
    assert (finished_run / METRICS).read_text().count("\n") == 5


def converging(monkeypatch: pytest.MonkeyPatch, better: list[bool]) -> None:
    """Evaluations that solve the task. better: answers on whether a policy improves on another: one for a gain, and two
    for policies that are equally good."""
    outcomes, real = iter(better), vars(selection)["summary"]
    monkeypatch.setattr(selection, "summary", lambda result: real(result) | {"success_rate": 1.0})
    monkeypatch.setattr(schedule, "improves", lambda *_: next(outcomes))


def test_a_converged_training_leaves_iterations_out_after_an_interruption_too(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two evaluations without a gain."""
    converging(monkeypatch, [True, *[False] * 4])

    def interrupt(row: dict[str, float]) -> None:
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    changes = {"iterations": 8, "step_periods": (2, 2, 2, 1), "evaluate_every": 1, "convergence": 0.01}
    with pytest.raises(KeyboardInterrupt):
        train_tiny(tmp_path / "run", interrupt, algorithm="cfvi", **changes)
    resume(tmp_path / "run", lambda _: None)
    assert [row["iteration"] for row in read_metrics(tmp_path / "run")] == [0, 1, 2, 3, 6, 7]
