"""Trainings on a Dask cluster: a worker that is killed, a job that is given twice, other versions and artifacts."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.certification.experiment import Experiment, portion
from solver.cli import main
from solver.errors import SolverError
from solver.jobs import LOG, Job, perform, run_all
from solver.jobs.engines import engine, policy_reference, results, versions, workers
from solver.lab.reproduction.runs import run_plan
from solver.lab.sweeps import read
from solver.plants.outcome import sample_starts
from solver.runs.folder import METRICS
from solver.runs.metrics import read_metrics
from solver.training.solution import load_run_checkpoint
from tests.solver.lab.reproduction.small_plans import quiet, train_here

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SPEC = """
robots = ["pendulum"]
[settings.tiny]
iterations = 24
states = 96
epochs = 1
minibatch = 48
trace_decay = 0.8
step_periods = [2, 1]
members = 1
layers = 1
width = 8
convergence = 0.0
basin = false
reaction_periods = 0.0
evaluate_every = 24
episodes = 3
"""
#: Stands for a training: says when it begins and ends, and takes a moment.
SLOW = (sys.executable, "-c", "import time; print('begin', flush=True); time.sleep(0.5); print('end', flush=True)")


class Cluster:
    """A scheduler and two workers of one thread, which a test may kill."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.file, self._stack = folder / "scheduler.json", stack
        self.environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        where = ["--scheduler-file", str(self.file), "--no-dashboard"]
        self.scheduler = self._start("scheduler", *where, "--host", "127.0.0.1", "--port", "0")
        more = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        self.workers = [self._start("worker", *where, *more) for _ in range(2)]

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        silent = subprocess.DEVNULL
        child = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=self.environment, cwd=ROOT, stdout=silent, stderr=silent
        )
        self._stack.enter_context(child)
        self._stack.callback(child.kill)
        return child

    @property
    def address(self) -> str:
        """Of the scheduler, once both workers are there."""
        from distributed import Client

        with Client(scheduler_file=str(self.file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            return str(client.scheduler.address)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("dask"), stack)


def job(folder: Path, **changes: Any) -> Job:
    usual = Job(folder, "train", 1, versions(), SLOW)
    return dataclasses.replace(usual, **changes)


def has_child(pid: int) -> bool:
    return any(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))


def test_a_cluster_survives_a_killed_worker_and_a_failing_job(
    cluster: Cluster, finished_run: Path, short: str, tmp_path: Path
) -> None:
    """One cluster for all, since it takes seconds to start. A worker is killed at last, and then the scheduler."""
    address = cluster.address
    # Given twice: one after the other, never both at once in one folder.
    with engine(None, address) as place:
        (tmp_path / "twice").mkdir()
        futures = [place.executor.submit(perform, job(tmp_path / "twice"), place.wanted) for _ in range(2)]
        assert [future.result() for future in futures] == [0, 0]
        lines = [line for line in (tmp_path / "twice" / LOG).read_text().splitlines() if line in ("begin", "end")]
        assert lines == ["begin", "end"] * 2

        # Other versions, a program that fails: each is named, and the good one goes on.
        wrong = job(tmp_path / "versions", versions=versions() | {"solver": "0" * 12})
        failing = job(tmp_path / "fails", program=(sys.executable, "-c", "raise SystemExit(3)"))
        ended = run_all([wrong, failing, job(tmp_path / "good")], place, quiet)
    reasons = {folder.name: end.reason for folder, end in ended.items()}
    assert f"solver {versions()['solver']} in place of {'0' * 12}" in reasons["versions"]
    assert reasons["fails"] == f"failed (3): {tmp_path / 'fails' / LOG}"
    assert reasons["good"] == ""

    # Killed in the middle of a training: the other worker goes on from the checkpoint, bit for bit.
    (tmp_path / "spec.toml").write_text(SPEC)
    sweep = read(tmp_path / "spec.toml", short)
    train_here(sweep, tmp_path / "whole")
    (whole,) = (tmp_path / "whole").iterdir()
    folder = tmp_path / "runs" / whole.name
    killed: list[int] = []

    def kill() -> None:
        while len(rows := read_metrics(folder)) < 3:
            time.sleep(0.01)
        busy = next(worker for worker in cluster.workers if has_child(worker.pid))
        busy.send_signal(signal.SIGKILL)
        killed.append(len(rows))

    threading.Thread(target=kill, daemon=True).start()
    runs = run_plan(sweep, tmp_path / "runs", None, quiet, cluster=address, preview=0.0)
    assert (runs.trained, runs.failures) == (1, ())
    assert killed
    assert (folder / LOG).read_text().count("$ solver train --resume") == 2
    assert len((folder / METRICS).read_text().splitlines()) == 24
    weights, expected = (load_run_checkpoint(each)["ensemble"] for each in (folder, whole))
    assert all((weights[name] == expected[name]).all() for name in expected)

    # Rollouts of a certificate have the numbers that they have here; a lost scheduler is named.
    tested = Experiment(policy_reference(finished_run))
    told, x = tested.specification, sample_starts(tested.problem, 20, 5).numpy()
    theta = tested.problem.theta.repeat(20, 1).numpy()
    given = policy_reference(finished_run), told.conditions, told.failure, x, theta, [*range(20)]

    def lose() -> None:
        with workers(None, address) as executor:
            assert np.array_equal(executor.submit(portion, *given).result()[0], portion(*given)[0])
            waiting = executor.submit(time.sleep, 100.0)
            cluster.scheduler.kill()
            list(results([waiting]))

    with pytest.raises(SolverError, match="scheduler"):
        lose()


def test_a_cluster_that_does_not_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("solver.jobs.engines.SECONDS", 0.5)
    (tmp_path / "spec.toml").write_text(SPEC)
    words = ["sweep", str(tmp_path / "spec.toml"), "--out", str(tmp_path / "runs")]
    assert main([*words, "--cluster", "tcp://127.0.0.1:9"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no Dask scheduler answers at tcp://127.0.0.1:9 within 0.5 s" in line
    assert main([*words, "--cluster", "tcp://127.0.0.1:9", "--jobs", "2"]) == 2
    assert "leave one out" in capsys.readouterr().err
