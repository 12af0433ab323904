"""Trainings in processes of their own, several at a time."""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from solver.reproduction.experiments import Training
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import Description

SOLVER = (sys.executable, "-c", "import sys; from solver.cli import main; sys.exit(main())")
FAILED = 1  # exit code of a training that could not be run
LOG = "reproduce.log"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Announce = Callable[[str], None]


def run_all(
    todo: dict[Path, Training],
    generated: str | None,
    jobs: int,
    program: Sequence[str],
    lock: int,
    announce: Announce,
    finished: Callable[[Training, Path], None] = lambda *_: None,
) -> dict[Path, int]:
    """Train everything in `todo`, by folder, and return the exit codes. Ctrl-C ends all of it.

    finished: called with each run as soon as it is trained, while the others go on.

    lock: a file descriptor that the children inherit, so that a lock on it lasts as long as they do.
    """
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
                if codes[folder] == 0:
                    finished(todo[folder], folder)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()
            raise
    return codes


class _Children:
    """The processes that train. After `end` no more are started."""

    def __init__(self, program: Sequence[str], lock: int) -> None:
        self.program, self.lock = program, lock
        self.alive: list[subprocess.Popen[bytes]] = []
        self.ended = False

    def run(self, arguments: Sequence[str], folder: Path, threads: int) -> int:
        """Run the program with these arguments, its output in the folder's log, and return its exit code."""
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
    """The words behind `solver` that start or resume a run: what differs from the command's own defaults."""
    kind, run = training.kind, training.run
    if (folder / CHECKPOINT).exists():
        return [kind.command, "--resume", str(folder)]
    words = [kind.command, run.robot, "--out", str(folder), "--algorithm", run.settings.algorithm]
    words += [] if generated is None else ["--generated", generated]
    common = {entry.name for entry in dataclasses.fields(Description)}
    own = {entry.name: getattr(run, entry.name) for entry in dataclasses.fields(run) if entry.name not in common}
    own = {name: value for name, value in own.items() if value not in ("", None)}  # warm_from, identified: of no plan
    settings = vars(run.settings).items()
    changed = {name: value for name, value in settings if value != getattr(training.usual, name)}
    changed.pop("algorithm", None)
    for name, value in {**own, **changed}.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words
