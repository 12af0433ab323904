"""Rollouts as jobs of other processes: the same numbers, other checkpoints refused, nothing left behind."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from modelgen.cli import main as modelgen_main
from modelgen.derivation.model_file import SHIPPED
from solver.certification.experiment import Experiment
from solver.errors import SolverError
from solver.evaluation.robustness import Trial, measure
from solver.evaluation.statistics import ParameterRange
from solver.jobs.engines import policy_reference, results, workers
from solver.plants.outcome import sample_starts
from solver.runs.folder import CHECKPOINT
from tests.solver.conftest import heeding_ctrl_c

pytestmark = pytest.mark.slow

#: Two jobs without end, each of which says that it has begun.
ENDLESS = """
from solver.jobs.engines import results, workers
with workers(2) as executor:
    list(results([executor.submit(exec, f"open('{k}', 'w').close()\\nwhile True: pass") for k in range(2)]))
"""


def test_two_processes_give_the_numbers_of_one(finished_run: Path, tmp_path: Path) -> None:
    """With noise, of a portion or of a rollout."""
    noisy = tmp_path / "noisy.toml"
    noisy.write_text('plant = "harsh"\neffects = ["noise"]\n')
    trial, box = Trial("harsh", ("noise",), 4, 3), [ParameterRange("mass", 0.9, 1.1, 5, False)]
    results, returns, processes = [], [], set()
    for jobs in (1, 2):
        with workers(jobs) as executor:
            results.append(measure([finished_run], box, trial, executor=executor, at_once=8))
            tested = Experiment(policy_reference(finished_run), noisy, executor, at_once=8)
            x = sample_starts(tested.problem, 20, 5)
            theta = tested.problem.theta.repeat(20, 1)
            returns.append(tested.outcomes(x, theta, np.arange(20)).returns)
            processes |= {job.result() for job in [executor.submit(os.getpid) for _ in range(8)]}
    assert results[0] == results[1]
    assert np.array_equal(returns[0], returns[1])
    assert len(processes - {os.getpid()}) in (1, 2)  # and not in this one


def test_another_checkpoint_or_version_is_refused(finished_run: Path, tmp_path: Path) -> None:
    told = policy_reference(finished_run)
    older = dataclasses.replace(told, versions=(("solver", "0" * 12), *told.versions[1:]))
    with pytest.raises(SolverError, match=r"solver \w{12} .*0{12}"):
        older.load()
    copy = Path(shutil.copytree(finished_run, tmp_path / "run"))
    told = policy_reference(copy)
    (copy / CHECKPOINT).write_bytes(b"another")
    with pytest.raises(SolverError, match=told.checkpoint[:12]):
        told.load()
    (copy / CHECKPOINT).unlink()
    with pytest.raises(SolverError, match=r"checkpoint\.pt"):
        told.load()


def test_the_artifact_of_another_model_is_refused(finished_run: Path, tmp_path: Path) -> None:
    text = (SHIPPED / "pendulum.py").read_text().replace('"mass", 1.0', '"mass", 1.2')
    (tmp_path / "pendulum.py").write_text(text)
    assert modelgen_main(["build", str(tmp_path / "pendulum.py"), "--generated", str(tmp_path / "generated")]) == 0
    told = dataclasses.replace(policy_reference(finished_run), generated=str(tmp_path / "generated"))
    told_here, told_elsewhere = r"^\S+ was trained on artifact", rf"^on {socket.gethostname()}: \S+ was trained on"
    for host, message in ((told.host, told_here), ("another", told_elsewhere)):
        with pytest.raises(SolverError, match=message):
            dataclasses.replace(told, host=host).load()


@pytest.mark.parametrize(("how", "begun"), [(signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGKILL, True)])
def test_ctrl_c_and_kill_leave_no_process(tmp_path: Path, how: signal.Signals, begun: bool) -> None:
    """And no traceback of a process that Ctrl-C finds at its imports."""
    words = heeding_ctrl_c([], ENDLESS)
    errors = tmp_path / "errors"
    with (
        errors.open("wb") as file,
        subprocess.Popen(words, cwd=tmp_path, start_new_session=True, stderr=file) as process,
    ):
        try:
            if begun:
                wait_for(lambda: all((tmp_path / name).exists() for name in "01"), 100.0)
            else:
                wait_for(lambda: len(of_session(process.pid)) == 4, 100.0)  # with the tracker of semaphores
                time.sleep(0.5)
            if how == signal.SIGINT:
                os.killpg(process.pid, how)
            else:
                process.kill()
            process.wait(60.0)
            wait_for(lambda: not of_session(process.pid), 30.0)
            assert how == signal.SIGKILL or "spawn_main" not in errors.read_text()
        finally:
            for left in of_session(process.pid):
                os.kill(left, signal.SIGKILL)


def test_a_killed_worker_is_one_paragraph() -> None:
    with pytest.raises(SolverError, match="with fewer jobs"), workers(2) as executor:
        list(results([executor.submit(os._exit, 1)]))


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def of_session(leader: int) -> set[int]:
    """The processes of a session."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(words[3]) == leader and words[0] != "Z":
            found.add(int(stat.parent.name))
    return found
