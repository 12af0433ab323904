"""Runs of an experiment: finished runs are reused, the others are started or resumed.

A run in a folder is the planned one if robot, artifact and identity agree (`Description.identity`). The name of its
folder has a hash of them. Finished runs in other folders of the same parent are reused too.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from modelgen.artifact.folder import find
from solver.errors import SolverError
from solver.jobs import LOG, Announce, Job, run_all
from solver.jobs.engines import engine, versions
from solver.lab.reproduction.experiments import PlannedRun
from solver.preflight import preflight
from solver.problem.robots import load_robot
from solver.runs import artifact, shipped
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import KINDS, Description, comparable, holds_run, kind_of
from solver.training.solution import RunDescription

LOCK = ".reproduce.lock"
FIGURES = ("return_mean", "success_rate")  # of the kept policy of a run


@dataclass(frozen=True)
class Failure:
    """A training that stopped before its end."""

    training: PlannedRun
    code: int
    log: Path
    reason: str  # with the path of the log


@dataclass(frozen=True)
class Runs:
    """Folders of the finished runs of a plan, and the failures."""

    folders: dict[PlannedRun, Path]
    trained: int  # runs that this call started or resumed, and finished
    failures: tuple[Failure, ...]

    def of(self, method: str, robot: str) -> dict[int, Path]:
        """Folders of the finished runs of a method on a robot, by seed."""
        return {t.seed: path for t, path in self.folders.items() if (t.method, t.robot) == (method, robot)}


def run_plan(
    trainings: Sequence[PlannedRun],
    parent: Path,
    jobs: int | None,
    announce: Announce,
    train: bool = True,
    command: Sequence[str] = (),
    finished: Callable[[PlannedRun, Path], None] = lambda *_: None,
    cluster: str | None = None,
    ready: Mapping[str, Path] = MappingProxyType({}),
    preview: float = 20.0,
    unheld_target: bool = False,
) -> Runs:
    """Finish some runs, of a plan or a sweep, at most `jobs` at a time. A failure does not stop the other runs.

    train: False starts nothing, and so needs no other call to end. command: program in place of `solver`, for tests.
    finished: called with every finished run; reused runs come first. cluster: address of a Dask scheduler whose workers
    train. ready: other finished runs, as from `shipped_runs`. preview, unheld_target: of `preflight`, which checks what
    starts anew and announces its warnings. Raises SolverError before any training if a check fails, if a folder holds
    another run, if another call uses the folder, or if the cluster does not answer.
    """
    if cluster is not None:
        parent = parent.absolute()
    folders: dict[PlannedRun, Path] = {}
    todo: dict[Path, PlannedRun] = {}
    with _locked(parent) if train else nullcontext():
        reused = {**finished_runs(parent), **ready}
        for training in trainings:
            key = run_key(training.run)
            folder = reused.get(key) or _folder(parent, training, key)
            folders[training] = folder
            if key not in reused and folder not in todo:
                _require_own(folder, key)
                todo[folder] = training
        for training, folder in folders.items():
            if folder not in todo:
                finished(training, folder)
        started = dict(todo) if train else {}
        fresh = {folder: t for folder, t in started.items() if not (folder / CHECKPOINT).exists()}
        pending = [Job(folder, t.kind.command, t.threads, versions(), tuple(command)) for folder, t in started.items()]
        with engine(jobs, cluster if pending else None) as place:
            _check([*fresh.values()], announce, preview, unheld_target)
            for folder, training in fresh.items():
                artifact.keep(find(training.robot, training.run.generated), folder)
                artifact.save(folder, training.run)
            ended = run_all(pending, place, announce, lambda job: finished(started[job.folder], job.folder))
    missing = {folder for folder in todo if folder not in ended or ended[folder].code != 0}
    failures = tuple(
        Failure(started[folder], one.code, folder / LOG, one.reason) for folder, one in ended.items() if one.code != 0
    )
    complete = {training: folder for training, folder in folders.items() if folder not in missing}
    return Runs(complete, len(started) - len(failures), failures)


def _check(trainings: Sequence[PlannedRun], announce: Announce, preview: float, unheld_target: bool) -> None:
    """Checks of all robots with all their settings, once for all seeds; the preview, once for a robot.

    A baseline has none: `solver baseline` trains without.
    """
    checked: set[tuple[str, str]] = set()
    said: set[tuple[str, str]] = set()
    for training in trainings:
        run, identity = training.run, (training.robot, training.run.identity_but_seed())
        if not isinstance(run, RunDescription) or identity in checked:
            continue
        first = all(robot != training.robot for robot, _ in checked)
        checked.add(identity)
        robot = load_robot(run.robot, "cpu", run.generated)
        result = preflight(robot, run, preview if first else 0.0, unheld_target)
        for text in (*result.lines, *(f"warning: {each}" for each in result.warnings)):
            if (training.robot, text) not in said:
                said.add((training.robot, text))
                announce(f"{training.robot}, {training.method}: {text}")


def settings_hash(run: Description) -> str:
    """Hash of the settings without the seed."""
    return hashlib.sha256(run.identity_but_seed().encode()).hexdigest()[:12]


def shipped_runs(trainings: Sequence[PlannedRun]) -> dict[str, Path]:
    """Shipped policies that are planned runs with the default settings, by key.

    Only the seed is compared, because default settings may have changed since the policy was trained.
    """
    ready = {}
    for training in trainings:
        name, key = f"{training.robot}-{training.settings.algorithm}", run_key(training.run)
        usual = dataclasses.replace(training.usual, seed=training.seed)
        if name in shipped.names() and run_key(dataclasses.replace(training.run, settings=usual)) == key:
            folder = shipped.run_folder(name)
            run = kind_of(folder).training.read(folder)
            if (run.settings.seed, run.told_names) == (training.seed, training.run.told_names):
                ready[key] = folder
    return ready


def run_key(run: Description) -> str:
    """Text that is equal for equal runs: robot, artifact and identity."""
    return json.dumps([run.robot, run.artifact_hash, type(run.settings).__name__, comparable(run)], sort_keys=True)


def _folder(parent: Path, training: PlannedRun, key: str) -> Path:
    """Folder of a new run. Its name has a hash of the key without the seed."""
    content = json.loads(key)
    del content[-1]["seed"]
    short = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:10]
    return parent / f"{training.robot}-{training.settings.algorithm}-{short}-seed{training.seed}"


def _read(folder: Path) -> tuple[str, bool]:
    """Key of the run in a folder, and whether it is finished. Raises SolverError if it cannot be read."""
    kind = kind_of(folder)
    run = kind.training.read(folder)
    return run_key(run), kind.done(folder) >= run.length


def finished_runs(parent: Path) -> dict[str, Path]:
    """Finished runs below `parent`, by key. Skips other folders."""
    runs: dict[str, Path] = {}
    for path in sorted(path for kind in KINDS for path in parent.glob(f"*/{kind.description}")):
        try:
            key, finished = _read(path.parent)
        except SolverError:
            continue  # _require_own refuses a damaged folder of this plan
        if finished:
            runs.setdefault(key, path.parent)
    return runs


def _require_own(folder: Path, key: str) -> None:
    """Raises SolverError unless the folder is empty or holds an unfinished run with this key."""
    if holds_run(folder) and _read(folder)[0] != key:
        raise SolverError(
            f"{folder} holds a run with other settings or another artifact than its name: the folder was edited or "
            "copied. Move it away, or name another folder."
        )


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Lock `parent` for this call."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        lock = (parent / LOCK).open("w")
    except OSError as error:
        raise SolverError(f"cannot write to {parent}: {error}. Name another folder.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SolverError(
                f"another `solver` process trains its runs in {parent}; wait for it, or name another folder"
            ) from error
        yield
