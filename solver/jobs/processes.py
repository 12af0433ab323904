"""Trainings in processes of their own, several at a time."""

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

from modelgen.artifact.folder import find, read
from solver.errors import SolverError
from solver.jobs.engines import Engine
from solver.jobs.parent import THREAD_VARIABLES
from solver.jobs.versions import require_versions
from solver.runs.folder import CHECKPOINT

SOLVER = (
    "import sys; from solver.jobs.parent import end_with_parent; end_with_parent(); "
    "from solver.cli import main; sys.exit(main())"
)
FAILED = 1  # exit code of a training that could not be run
LOG = "training.log"
PAUSE = 0.1  # s between two looks at a process, a lock or a folder
SLOW_FOLDER = 30.0  # s until a shared folder shows a new entry on another machine

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One run to train, on whatever machine sees its folder."""

    folder: Path
    command: str  # of `solver`, that starts and resumes it
    words: tuple[str, ...]  # behind the command, that start it
    threads: int
    robot: str
    artifact_hash: str
    generated: str | None
    versions: Mapping[str, str]  # where it is given
    program: tuple[str, ...] = ()  # in place of `solver`, for tests

    def arguments(self) -> list[str]:
        """The words that start the run, or resume it where it has a checkpoint."""
        has_begun = (self.folder / CHECKPOINT).exists()
        return [self.command, *(("--resume", str(self.folder)) if has_begun else self.words)]


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    code: int
    said: str  # of one that failed: what happened, and where to read on


def run_all(
    jobs: Sequence[Job], engine: Engine, announce: Announce, finished: Callable[[Job], None] = lambda _: None
) -> dict[Path, Ended]:
    """Run every job on the engine, and say how each ended, by folder. The others go on when one of them fails.

    finished: called with each job as soon as its run is trained, while the others go on.
    """
    ended: dict[Path, Ended] = {}
    began = time.perf_counter()
    if jobs:
        announce(f"{len(jobs)} {'training' if len(jobs) == 1 else 'trainings'}, {engine.place}")
    for job in jobs:
        job.folder.mkdir(parents=True, exist_ok=True)
    futures = {engine.executor.submit(perform, job, engine.wanted): job for job in jobs}
    for future in as_completed(futures):
        job = futures[future]
        ended[job.folder] = one = _ended(future, job)
        failed = sum(each.code != 0 for each in ended.values())
        minutes = (time.perf_counter() - began) / 60.0
        announce(f"{len(ended)} of {len(jobs)} done, {failed} failed, {minutes:.1f} min: {job.folder.name}")
        if one.code == 0:
            finished(job)
    return ended


def _ended(future: Future[int], job: Job) -> Ended:
    """The end of a job, told by its exit code or by what kept it from running."""
    try:
        code = future.result()
    except CancelledError:
        return Ended(FAILED, "failed: the scheduler is lost. Start it again, and give this command again to go on")
    except Exception as error:  # whatever a worker raises is the failure of one job
        reason = str(error) if isinstance(error, SolverError) else f"{type(error).__name__}: {error}"
        return Ended(FAILED, f"failed: {reason}")
    return Ended(code, "" if code == 0 else f"failed ({code}): {job.folder / LOG}")


def perform(job: Job, wanted: Callable[[], bool]) -> int:
    """Train or resume the run in a process of its own, its output in the folder's log, and return the exit code.

    The log is locked as long as the process lives. A job that is given twice, or again after its worker was lost,
    waits for that and goes on from the checkpoint. It stops when it is not `wanted`. Raises SolverError where versions
    or artifact are not those of the machine that gave it, and where its folder is not seen.
    """
    _require_same(job)
    _wait(job.folder.is_dir, wanted, SLOW_FOLDER)
    try:
        log = (job.folder / LOG).open("ab")
    except OSError as error:
        raise SolverError(
            f"{socket.gethostname()} cannot write to {job.folder} ({error.strerror}); the runs need a folder that all "
            "machines share"
        ) from error
    with log:
        _wait(lambda: _lock(log), wanted)
        return _run(job, log, wanted) if wanted() else FAILED


def _run(job: Job, log: BinaryIO, wanted: Callable[[], bool]) -> int:
    arguments = job.arguments()
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
    """Lock the log for whoever writes to it, this process and its child. Whether no other has it."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(condition: Callable[[], bool], wanted: Callable[[], bool], seconds: float = float("inf")) -> None:
    """Wait until the condition holds, the time is over, or nobody waits for it any more."""
    end = time.monotonic() + seconds
    while not condition() and wanted() and time.monotonic() < end:
        time.sleep(PAUSE)


def _require_same(job: Job) -> None:
    """SolverError unless this machine has the versions and the artifact of the one that gave the job."""
    require_versions(job.versions)
    found = read(find(job.robot, job.generated)).hash
    if found != job.artifact_hash:
        raise SolverError(
            f"the worker on {socket.gethostname()} has artifact {found[:12]} of {job.robot} in place of "
            f"{job.artifact_hash[:12]}; copy generated/ there, or give --generated a folder that all machines share"
        )
