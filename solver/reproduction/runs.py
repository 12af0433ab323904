"""Run or resume what an experiment needs, each training in a process of its own, and reuse what is finished.

A run belongs to a training when robot, artifact and settings are equal; those without effect on results do not count:
the number of threads, the backend and, for cFVI, the adversary. Its folder is named by a hash of them, so that other
settings never meet in one folder. Finished runs in other folders of the same parent are reused too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from solver.baselines.settings import BaselineSettings
from solver.commands import FAILED
from solver.errors import SolverError
from solver.fvi.run_folder import BASELINE, CHECKPOINT, RUN, load_checkpoint, load_run
from solver.fvi.settings import ADVERSARY, Settings
from solver.reproduction.experiments import PRESET, Plan, Training

SOLVER = "import sys; from solver.cli import main; sys.exit(main())"
LOG = "reproduce.log"
LOCK = ".reproduce.lock"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Failure:
    """A run that did not get to its end."""

    training: Training
    code: int
    log: Path


@dataclass(frozen=True)
class Runs:
    """Where the finished runs of a plan are, and what is missing."""

    folders: dict[Training, Path]
    trained: int  # runs that were started or resumed by this call and finished
    failures: tuple[Failure, ...]

    def of(self, method: str, robot: str) -> dict[int, Path]:
        """Finished folders of a method on a robot, by seed."""
        return {t.seed: path for t, path in self.folders.items() if (t.method, t.robot) == (method, robot)}


def run_plan(
    plan: Plan, parent: Path, jobs: int, announce: Announce, train: bool = True, command: Sequence[str] = ()
) -> Runs:
    """Finish every run of the plan, at most `jobs` at a time; a failed one stops no other.

    train: False takes what is finished and starts nothing. command: what to call instead of `solver`, for tests.
    SolverError before anything is started when a folder holds another run, or another call is at work there.
    """
    if jobs < 1:
        raise SolverError(f"--jobs is {jobs}; give at least 1")
    folders: dict[Training, Path] = {}
    todo: dict[Path, Training] = {}
    with _locked(parent) as lock:
        finished = _finished(parent)
        for training in plan.trainings:
            key = _key(training.robot, training.artifact_hash, training.settings)
            folder = finished.get(key) or _folder(parent, training, key)
            folders[training] = folder
            if key not in finished and folder not in todo:
                _require_own(folder, key)
                todo[folder] = training
        started = dict(todo) if train else {}
        program = tuple(command) or (sys.executable, "-c", SOLVER)
        codes = _run_all(started, plan.generated, jobs, program, lock, announce)
    missing = {folder for folder in todo if codes.get(folder, FAILED) != 0}
    failures = tuple(Failure(started[folder], code, folder / LOG) for folder, code in codes.items() if code != 0)
    found = {training: folder for training, folder in folders.items() if folder not in missing}
    return Runs(found, len(started) - len(failures), failures)


def _key(robot: str, artifact_hash: str, settings: Settings | BaselineSettings) -> str:
    """What makes two runs the same, as text."""
    idle = {"threads", "backend", *(ADVERSARY if settings.algorithm == "cfvi" else ())}
    values = {
        name: float(value) if type(value) is int else value  # 1 and 1.0 are the same setting
        for name, value in vars(settings).items()
        if name not in idle
    }
    return json.dumps([robot, artifact_hash, type(settings).__name__, values], sort_keys=True)


def _folder(parent: Path, training: Training, key: str) -> Path:
    """The place of a new run, by a hash of its settings but the seed."""
    content = json.loads(key)
    del content[-1]["seed"]
    short = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]
    return parent / f"{training.robot}-{training.settings.algorithm}-{short}-seed{training.seed}"


def _read(folder: Path) -> tuple[str, bool]:
    """Key of the run in a folder, and whether it is finished. SolverError where it cannot be read."""
    if (folder / BASELINE).is_file():
        from solver.baselines.runs import load_baseline

        baseline = load_baseline(folder)
        key = _key(baseline.robot, baseline.artifact_hash, baseline.settings)
        count, end = "steps", baseline.settings.steps
    else:
        run = load_run(folder)
        key = _key(run.robot, run.artifact_hash, run.settings)
        count, end = "iteration", run.settings.iterations
    if not (folder / CHECKPOINT).exists():  # stopped before its first
        return key, False
    return key, bool(load_checkpoint(folder, keys=(count,))[count] >= end)


def _finished(parent: Path) -> dict[str, Path]:
    """Every finished run below `parent`, by key. Folders that hold something else are passed over."""
    found: dict[str, Path] = {}
    for path in sorted([*parent.glob(f"*/{RUN}"), *parent.glob(f"*/{BASELINE}")]):
        try:
            key, finished = _read(path.parent)
        except SolverError:
            continue  # one that is this plan's own is read again, and refused, by _require_own
        if finished:
            found.setdefault(key, path.parent)
    return found


def _require_own(folder: Path, key: str) -> None:
    """SolverError unless the folder is empty or holds an unfinished run of these settings."""
    if not any((folder / name).exists() for name in (RUN, BASELINE, CHECKPOINT)):
        return
    if _read(folder)[0] != key:
        raise SolverError(
            f"{folder} is named after settings or an artifact other than those it holds: it was edited or copied. "
            "Move it away, or give another folder with --runs."
        )


@contextmanager
def _locked(parent: Path) -> Iterator[int]:
    """The only call at work in `parent`; its children hold the lock as long as they live."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        lock = (parent / LOCK).open("w")
    except OSError as error:
        raise SolverError(f"cannot write to {parent}: {error}. Give another folder with --runs.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SolverError(
                f"another `solver reproduce`, or a training that one left behind, is at work in {parent}; wait for "
                "it, or give another folder with --runs"
            ) from error
        yield lock.fileno()


def _run_all(
    todo: dict[Path, Training],
    generated: str | None,
    jobs: int,
    program: Sequence[str],
    lock: int,
    announce: Announce,
) -> dict[Path, int]:
    """Exit code of every training. After Ctrl-C none is started any more and all that run are ended."""
    children = _Children(program, lock)
    codes: dict[Path, int] = {}
    began = time.perf_counter()

    def one(folder: Path) -> int:
        training = todo[folder]
        if not children.ended:
            announce(f"training {training.method}, {training.robot}, seed {training.seed} in {folder}")
        try:
            return children.run(_arguments(training, folder, generated), folder, training.threads)
        except OSError as error:
            announce(f"{folder}: {error}")
            return FAILED

    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = {pool.submit(one, folder): folder for folder in todo}
            for done in as_completed(futures):
                folder = futures[done]
                codes[folder] = done.result()
                said = "finished" if codes[folder] == 0 else f"FAILED, see {folder / LOG}:"
                minutes = (time.perf_counter() - began) / 60.0
                announce(f"{len(codes)} of {len(todo)} {said} {folder}, {minutes:.1f} min so far")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()
            raise
    return codes


class _Children:
    """Processes that train, until they are ended; then no more are started."""

    def __init__(self, program: Sequence[str], lock: int) -> None:
        self.program, self.lock = program, lock
        self.alive: list[subprocess.Popen[bytes]] = []
        self.ended = False

    def run(self, arguments: Sequence[str], folder: Path, threads: int) -> int:
        """Exit code of the program with these arguments, what it says going to the folder's log."""
        if self.ended:
            return FAILED
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / LOG).open("ab") as log:
            log.write(f"\n$ solver {shlex.join(arguments)}\n".encode())
            log.flush()
            child = subprocess.Popen(
                [*self.program, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                pass_fds=[self.lock],
            )
            self.alive.append(child)
            if self.ended:  # in the meantime
                child.terminate()
            return child.wait()

    def end(self) -> None:
        """Terminate all that are alive."""
        self.ended = True
        for child in self.alive:
            if child.poll() is None:
                child.terminate()


def _arguments(training: Training, folder: Path, generated: str | None) -> list[str]:
    """Words behind `solver` that start or resume a run: what differs from the command's own defaults."""
    baseline = isinstance(training.settings, BaselineSettings)
    command = "baseline" if baseline else "train"
    if (folder / CHECKPOINT).exists():
        return [command, "--resume", str(folder)]
    words = [command, training.robot, "--out", str(folder), "--algorithm", training.settings.algorithm]
    words += [] if baseline else ["--preset", PRESET]
    words += [] if generated is None else ["--generated", generated]
    for name, value in vars(training.settings).items():
        if name == "algorithm" or value == getattr(training.usual, name):
            continue
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words
