"""Executors of jobs, this machine or the workers of a Dask cluster, and the policies that short jobs load there.

A training is a job that starts its own process (`engine`), which ends with its parent. A portion of the rollouts of a
policy is a short job, and many of them share a process (`workers`). It gets a reference to the run, and the versions
that both machines must share.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from solver.errors import SolverError
from solver.runs.folder import CHECKPOINT
from solver.runs.kinds import RolloutPolicy, description_of, load_rollout_policy
from solver.runs.shipped import everywhere, run_folder

STDIN = 0
#: Environment variables with the number of threads of a library.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def end_with_parent(pipe: int = STDIN) -> None:
    """End this process when its parent ends, or closes its end of a pipe.

    pipe: descriptor of this process's end, by default the standard input.
    """
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def _wait(pipe: int) -> None:
    os.read(pipe, 1)  # sys.stdin would keep its lock at exit
    os._exit(1)


Result = TypeVar("Result")
SECONDS = 10.0  # for the answer of a scheduler


@dataclass(frozen=True)
class JobEngine:
    """Executor of trainings."""

    executor: Executor
    wanted: Callable[[], bool]  # called inside a job: whether its result is still needed
    place: str  # for messages


def engine(jobs: int | None, cluster: str | None = None) -> AbstractContextManager[JobEngine]:
    """Engine of this machine, or of the Dask cluster at an address.

    jobs: trainings at a time on this machine, by default one a core. If the block ends by an exception, for example
    Ctrl-C, no job is wanted any more. Raises SolverError for `jobs` below 1 or beside a cluster and, on entry, for a
    cluster that does not answer.
    """
    number = _number(jobs, cluster)
    return _here(number) if cluster is None else _cluster(cluster)


def workers(jobs: int | None, cluster: str | None = None) -> AbstractContextManager[Executor]:
    """Executor of short jobs: this process for one job, otherwise `jobs` processes of one thread each, or a cluster.

    If the block ends by an exception, the processes end in the middle of their jobs. Raises SolverError as `engine`.
    """
    number = _number(jobs, cluster)
    if cluster is not None:
        return _executor_of(cluster)
    return Here() if number == 1 else _processes(number)


def _number(jobs: int | None, cluster: str | None) -> int:
    """Number of jobs at a time on this machine."""
    if jobs is None:
        return os.cpu_count() or 1
    if cluster is not None:
        raise SolverError(f"--jobs {jobs} is for this machine, and --cluster has workers of its own; leave one out")
    if jobs < 1:
        raise SolverError(f"--jobs is {jobs}; give at least 1")
    return jobs


def results(jobs: Sequence[Future[Result]]) -> Iterator[Result]:
    """Results of short jobs, in order. Raises SolverError if the scheduler or a process is lost."""
    try:
        for job in jobs:
            yield job.result()
    except CancelledError as error:
        raise SolverError("the scheduler is lost; start it again, and repeat this command") from error
    except BrokenExecutor as error:
        raise SolverError(
            "a worker process was killed, probably because memory was short; repeat this command with fewer --jobs"
        ) from error


class Here(Executor):
    """Executor that calls every function at once, in this thread."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Finished future. An exception is raised here, not by its result."""
        future: Future[Any] = Future()
        future.set_result(call(*args, **kwargs))
        return future


class _Spawned(SpawnProcess):
    """Process that Ctrl-C does not reach, not even while it imports. Ctrl-C reaches its parent, which ends it."""

    def start(self) -> None:
        """Start with SIGINT blocked, which a process inherits."""
        usual = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)


class _Spawn(SpawnContext):  # a fork would copy the locks of this process's threads
    def __init__(self) -> None:
        self.made: list[_Spawned] = []

    def Process(self, *args: Any, **kwargs: Any) -> _Spawned:  # type: ignore[override]
        """Process that the executor starts."""
        self.made.append(_Spawned(*args, **kwargs))
        return self.made[-1]


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    context = _Spawn()
    theirs, _ours = context.Pipe(duplex=False)  # the kernel closes our end where this process is killed
    with ProcessPoolExecutor(jobs, context, _begin, (theirs,)) as pool:
        try:
            yield pool
        except BaseException:
            for process in context.made:
                if process.is_alive():
                    process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(parent: Connection) -> None:
    """Start of a worker process."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    end_with_parent(os.dup(parent.fileno()))


@contextmanager
def _executor_of(address: str) -> Iterator[Executor]:
    with _cluster(address) as place:
        yield place.executor


@contextmanager
def _here(jobs: int) -> Iterator[JobEngine]:
    ended = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield JobEngine(pool, lambda: not ended.is_set(), f"{jobs} at a time")
        except BaseException:
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _cluster(address: str) -> Iterator[JobEngine]:
    try:
        from distributed import Client
    except ImportError as error:
        raise SolverError("--cluster needs Dask: pip install 'robust-value-iteration[cluster]'") from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # prints tracebacks of lost connections
    try:
        client = Client(address, timeout=SECONDS)
    except (OSError, ValueError, TypeError) as error:
        raise SolverError(
            f"no Dask scheduler answers at {address} within {SECONDS:g} s ({type(error).__name__}). Start one with "
            "`dask scheduler` and its workers with `dask worker ADDRESS --nthreads 1`, and give --cluster the address "
            "that the scheduler prints, such as tcp://10.0.0.1:8786. Without --cluster the jobs run on this machine."
        ) from error
    with client:
        threads = sum(client.nthreads().values())
        place = f"on {address}, {threads} at a time" if threads else f"on {address}, which waits for its first worker"
        yield JobEngine(client.get_executor(pure=False), _task_is_wanted, place)


def _task_is_wanted() -> bool:
    """Whether a client still waits for the Dask task in this thread. A thread cannot be cancelled."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state in ("executing", "long-running")


PACKAGES = ("torch", "numpy", "llvmlite")


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the numerical packages, and the hash of this program's sources, by name."""
    root, content = Path(__file__).resolve().parents[2], hashlib.sha256()
    for path in sorted(path for package in ("modelgen", "solver") for path in (root / package).rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"solver": content.hexdigest()[:12], "python": python} | {name: version(name) for name in PACKAGES}


def require_versions(expected: Mapping[str, str]) -> None:
    """Raises SolverError unless this machine has the versions of the submitting machine."""
    here = versions()
    other = [f"{name} {here.get(name)} in place of {there}" for name, there in expected.items() if here[name] != there]
    if other:
        raise SolverError(
            f"the worker on {socket.gethostname()} has {', '.join(other)}; install the same versions there"
        )


MOST_LOADED = 16  # policies that a process keeps in memory


@dataclass(frozen=True)
class PolicyReference:
    """A trained policy as an argument of a job: its place, and what the worker must find there."""

    run: str  # absolute path, or name of a shipped policy
    generated: str | None
    reaction_periods: float | None  # as in `load_rollout_policy`
    checkpoint: str  # SHA-256
    versions: tuple[tuple[str, str], ...]  # of the submitting machine
    host: str  # the submitting machine

    def load(self) -> RolloutPolicy:
        """Policy for rollouts, of rows with contexts if it is told parameters. A process loads it once.

        Raises SolverError with both hashes if versions, artifact or checkpoint differ from the submitting machine's.
        """
        return _load(self)


def policy_reference(
    run: str | Path, generated: str | None = None, reaction_periods: float | None = None
) -> PolicyReference:
    """Reference to the policy of a run. Raises SolverError for a folder without a run or a checkpoint."""
    description_of(run)  # its error comes first
    return PolicyReference(
        everywhere(run),
        generated and str(Path(generated).absolute()),
        reaction_periods,
        _checkpoint(run_folder(run)),
        tuple(versions().items()),
        socket.gethostname(),
    )


def _checkpoint(folder: Path) -> str:
    """SHA-256 of a run's checkpoint."""
    try:
        return hashlib.sha256((folder / CHECKPOINT).read_bytes()).hexdigest()
    except OSError as error:
        raise SolverError(
            f"{folder} holds no {CHECKPOINT} that this machine ({socket.gethostname()}) can read. A training writes it "
            "before its first iteration; on a cluster all machines must share the folder."
        ) from error


@lru_cache(MOST_LOADED)
def _load(policy: PolicyReference) -> RolloutPolicy:
    require_versions(dict(policy.versions))
    checkpoint = _checkpoint(run_folder(policy.run))
    if checkpoint != policy.checkpoint:
        raise SolverError(
            f"{socket.gethostname()} has checkpoint {checkpoint[:12]} of {policy.run} in place of "
            f"{policy.checkpoint[:12]}: the run is being trained, or this machine sees another folder"
        )
    try:
        return load_rollout_policy(policy.run, policy.generated, policy.reaction_periods, contexts=True)
    except SolverError as error:
        if socket.gethostname() == policy.host:
            raise
        raise SolverError(f"on {socket.gethostname()}: {error}") from error
