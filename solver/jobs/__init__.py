"""Many trainings: each in a process of its own, on this machine or on the workers of a cluster."""

from __future__ import annotations

import fcntl
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from solver.errors import SolverError
from solver.jobs.engines import THREAD_VARIABLES, JobEngine, require_versions

SOLVER = (
    "import sys; from solver.jobs.engines import end_with_parent; end_with_parent(); "
    "from solver.cli import main; sys.exit(main())"
)
FAILED = 1  # exit code of a training that could not start
LOG = "training.log"
PAUSE = 0.1  # s between two checks of a process, a lock or a folder
SLOW_FOLDER = 30.0  # s that another machine may need to see a new entry of a shared folder

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One run to train, on any machine that shares its folder."""

    folder: Path  # with the description of the run and its artifact
    command: str  # of `solver`, which begins and resumes the run
    threads: int
    versions: Mapping[str, str]  # of the submitting machine
    program: tuple[str, ...] = ()  # in place of `solver`, for tests


@dataclass(frozen=True)
class EndedJob:
    """End of a job."""

    code: int  # exit code
    reason: str  # of a failure, with the path of the log


def run_all(
    jobs: Sequence[Job], engine: JobEngine, announce: Announce, finished: Callable[[Job], None] = lambda _: None
) -> dict[Path, EndedJob]:
    """Run all jobs on the engine. Returns the end of every job by its folder. A failure does not stop the other jobs.

    finished: called with every job whose run is trained, while the others continue.
    """
    ended: dict[Path, EndedJob] = {}
    began = time.perf_counter()
    if jobs:
        announce(f"{len(jobs)} {'training' if len(jobs) == 1 else 'trainings'}, {engine.place}")
    for job in jobs:
        job.folder.mkdir(parents=True, exist_ok=True)
    futures = {engine.executor.submit(perform, job, engine.wanted): job for job in jobs}
    for future in as_completed(futures):
        job = futures[future]
        ended[job.folder] = one = _ended(future, job)
        failed = sum(end.code != 0 for end in ended.values())
        minutes = (time.perf_counter() - began) / 60.0
        announce(f"{len(ended)} of {len(jobs)} done, {failed} failed, {minutes:.1f} min: {job.folder.name}")
        if one.code == 0:
            finished(job)
    return ended


def _ended(future: Future[int], job: Job) -> EndedJob:
    """End of a job, from its exit code or from the error that kept it from running."""
    try:
        code = future.result()
    except CancelledError:
        return EndedJob(
            FAILED, "failed: the scheduler is lost. Start it again, and repeat the command, a sweep with --resume"
        )
    except Exception as error:  # any error of a worker is the failure of one job
        reason = str(error) if isinstance(error, SolverError) else f"{type(error).__name__}: {error}"
        return EndedJob(FAILED, f"failed: {reason}")
    return EndedJob(code, "" if code == 0 else f"failed ({code}): {job.folder / LOG}")


def perform(job: Job, wanted: Callable[[], bool]) -> int:
    """Train the run in a separate process, with its output in the folder's log. Returns the exit code.

    The log stays locked while the process lives. A second copy of a job waits for the first and continues from its
    checkpoint. A job stops when it is no longer `wanted`. Raises SolverError if versions differ from the submitting
    machine's, and if the folder is not there.
    """
    require_versions(job.versions)
    _wait(job.folder.is_dir, wanted, SLOW_FOLDER)
    try:
        log = (job.folder / LOG).open("ab")
    except OSError as error:
        raise SolverError(
            f"{socket.gethostname()} cannot write to {job.folder} ({error.strerror}); name a folder that all machines "
            "share"
        ) from error
    with log:
        _wait(lambda: _lock(log), wanted)
        return _run(job, log, wanted) if wanted() else FAILED


def _run(job: Job, log: BinaryIO, wanted: Callable[[], bool]) -> int:
    arguments = [job.command, "--resume", str(job.folder)]
    log.write(f"\n$ solver {shlex.join(arguments)}\n".encode())
    log.flush()
    program = job.program or (sys.executable, "-c", SOLVER)
    environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(job.threads))
    child = subprocess.Popen([*program, *arguments], stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
    with child:
        while wanted():
            try:
                return child.wait(PAUSE)
            except subprocess.TimeoutExpired:
                continue
        child.terminate()
        return child.wait()


def _lock(log: BinaryIO) -> bool:
    """Whether this process and its child now hold the lock of the log."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(condition: Callable[[], bool], wanted: Callable[[], bool], seconds: float = float("inf")) -> None:
    """Wait until the condition holds, the time is over, or the job is not wanted."""
    end = time.monotonic() + seconds
    while not condition() and wanted() and time.monotonic() < end:
        time.sleep(PAUSE)
