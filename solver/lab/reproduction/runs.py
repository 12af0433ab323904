"""The runs that an experiment needs: reuse the finished ones, start or resume the others.

A run belongs to a training when robot, artifact and settings agree, apart from the settings that do not change the
policy (`Description.identity`). Its folder is named by a hash of them, so that each folder holds runs of one setting
only. Finished runs in other folders of the same parent are reused too.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from solver.errors import SolverError
from solver.jobs.engines import engine
from solver.jobs.processes import LOG, Announce, Job, run_all
from solver.jobs.versions import versions
from solver.lab.reproduction.experiments import Training
from solver.runs import shipped
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import KINDS, Description, holds_run, kind_of

LOCK = ".reproduce.lock"


class Plan(Protocol):
    """What is to be trained."""

    @property
    def trainings(self) -> tuple[Training, ...]:
        """The runs."""

    @property
    def generated(self) -> str | None:
        """The folder of their artifacts, when one was named."""


@dataclass(frozen=True)
class Failure:
    """A training that stopped before its end."""

    training: Training
    code: int
    log: Path
    said: str  # what happened, and where to read on


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
    plan: Plan,
    parent: Path,
    jobs: int,
    announce: Announce,
    train: bool = True,
    command: Sequence[str] = (),
    finished: Callable[[Training, Path], None] = lambda *_: None,
    cluster: str | None = None,
    ready: Mapping[str, Path] = MappingProxyType({}),
) -> Runs:
    """Finish every run of the plan, at most `jobs` at a time. The others go on when one of them fails.

    train: False takes the finished runs and starts nothing. command: what to call instead of `solver`, for tests.
    finished: called with every finished run, the reused ones first and the others as soon as they are trained.
    cluster: the address of a Dask scheduler; its workers train then. ready: other finished runs to take, as of
    `shipped_runs`. Raises SolverError, before it starts anything,
    when a folder holds another run, another call is at work there, or the cluster does not answer.
    """
    if cluster is not None:
        parent = parent.absolute()
    folders: dict[Training, Path] = {}
    todo: dict[Path, Training] = {}
    with _locked(parent):
        reused = {**_finished(parent), **ready}
        for training in plan.trainings:
            key = _key(training.run)
            folder = reused.get(key) or _folder(parent, training, key)
            folders[training] = folder
            if key not in reused and folder not in todo:
                _require_own(folder, key)
                todo[folder] = training
        for training, folder in folders.items():
            if folder not in todo:
                finished(training, folder)
        started = dict(todo) if train else {}
        generated = plan.generated
        if cluster is not None and generated is not None:
            generated = str(Path(generated).absolute())
        given = [_job(training, folder, generated, tuple(command)) for folder, training in started.items()]
        with engine(jobs, cluster if given else None) as place:
            ended = run_all(given, place, announce, lambda job: finished(started[job.folder], job.folder))
    missing = {folder for folder in todo if folder not in ended or ended[folder].code != 0}
    failures = tuple(
        Failure(started[folder], one.code, folder / LOG, one.said) for folder, one in ended.items() if one.code != 0
    )
    found = {training: folder for training, folder in folders.items() if folder not in missing}
    return Runs(found, len(started) - len(failures), failures)


def compared(run: Description) -> dict[str, Any]:
    """The settings that the result of a run depends on, so that equal ones are equal as JSON."""
    # 1 and 1.0 are the same setting
    return {name: float(value) if type(value) is int else value for name, value in run.identity().items()}


def settings_hash(run: Description) -> str:
    """What tells whether two runs were trained with the same settings, whatever their seeds."""
    settings = {name: value for name, value in compared(run).items() if name != "seed"}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def shipped_runs(trainings: Sequence[Training]) -> dict[str, Path]:
    """The policies of `solver policies`, by the keys of the trainings with their seed and no other setting of its own.

    What the usual settings were may have changed since they were trained.
    """
    found = {}
    for training in trainings:
        name, key = f"{training.robot}-{training.settings.algorithm}", _key(training.run)
        usual = dataclasses.replace(training.usual, seed=training.seed)
        if name in shipped.names() and _key(dataclasses.replace(training.run, settings=usual)) == key:
            folder = shipped.run_folder(name)
            if kind_of(folder).training.read(folder).settings.seed == training.seed:
                found[key] = folder
    return found


def _key(run: Description) -> str:
    """What makes two runs the same, as text."""
    return json.dumps([run.robot, run.artifact_hash, type(run.settings).__name__, compared(run)], sort_keys=True)


def _folder(parent: Path, training: Training, key: str) -> Path:
    """The place of a new run, by a hash of its settings but the seed."""
    content = json.loads(key)
    del content[-1]["seed"]
    short = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]
    return parent / f"{training.robot}-{training.settings.algorithm}-{short}-seed{training.seed}"


def _read(folder: Path) -> tuple[str, bool]:
    """The key of the run in a folder, and whether it is finished. Raises SolverError where it cannot be read."""
    kind = kind_of(folder)
    run = kind.training.read(folder)
    has_begun = (folder / CHECKPOINT).exists()
    return _key(run), has_begun and kind.done(folder) >= run.length


def _finished(parent: Path) -> dict[str, Path]:
    """Every finished run below `parent`, by key. Skips the folders that hold something else."""
    found: dict[str, Path] = {}
    for path in sorted(path for kind in KINDS for path in parent.glob(f"*/{kind.description}")):
        try:
            key, finished = _read(path.parent)
        except SolverError:
            continue  # one that is this plan's own is read again, and refused, by _require_own
        if finished:
            found.setdefault(key, path.parent)
    return found


def _require_own(folder: Path, key: str) -> None:
    """Raise SolverError unless the folder is empty or holds an unfinished run of these settings."""
    if holds_run(folder) and _read(folder)[0] != key:
        raise SolverError(
            f"the name of {folder} belongs to other settings or another artifact than the run in it: the folder was "
            "edited or copied. Move it away, or name another folder with --runs."
        )


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """The only call at work in `parent`."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        lock = (parent / LOCK).open("w")
    except OSError as error:
        raise SolverError(f"cannot write to {parent}: {error}. Name another folder with --runs.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SolverError(
                f"another `solver` that trains many runs is at work in {parent}; wait for it, or name another folder "
                "with --runs"
            ) from error
        yield


def _job(training: Training, folder: Path, generated: str | None, program: tuple[str, ...]) -> Job:
    """The training as a job for any machine."""
    run, command = training.run, training.kind.command
    words = tuple(_words(training, folder, generated))
    robot = (run.robot, run.artifact_hash, generated)
    return Job(folder, command, words, training.threads, *robot, versions(), program)


def _words(training: Training, folder: Path, generated: str | None) -> list[str]:
    """The words behind the command that start a run: what differs from the command's own defaults."""
    run = training.run
    words = [run.robot, "--out", str(folder), "--algorithm", run.settings.algorithm]
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
        elif isinstance(value, dict):
            words += [f"--{flag}", *(f"{key}={number}" for key, number in value.items())]
        else:
            words += [f"--{flag}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words
