"""End of a process with its parent, and the variables that set its threads.

Executors of jobs: this machine, or the workers of a Dask cluster.

A training is a job that starts its own process (`engine`). A portion of the rollouts of a policy is a short job, and
many of them share a process (`workers`).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
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
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from solver.errors import SolverError

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
class Engine:
    """Executor of trainings."""

    executor: Executor
    wanted: Callable[[], bool]  # called inside a job: whether its result is still needed
    place: str  # for messages


def engine(jobs: int, cluster: str | None = None) -> AbstractContextManager[Engine]:
    """Engine of this machine, or of the Dask cluster at an address.

    jobs: trainings at a time on this machine. If the block ends by an exception, for example Ctrl-C, no job is wanted
    any more. Raises SolverError for `jobs` below 1 and, on entry, for a cluster that does not answer.
    """
    _require_jobs(jobs)
    return _here(jobs) if cluster is None else _cluster(cluster)


def workers(jobs: int, cluster: str | None = None) -> AbstractContextManager[Executor]:
    """Executor of short jobs: this process for one job, otherwise `jobs` processes of one thread each, or a cluster.

    If the block ends by an exception, the processes end in the middle of their jobs. Raises SolverError as `engine`.
    """
    _require_jobs(jobs)
    if cluster is not None:
        return _executor_of(cluster)
    return Here() if jobs == 1 else _processes(jobs)


def _require_jobs(jobs: int) -> None:
    if jobs < 1:
        raise SolverError(f"--jobs is {jobs}; give at least 1")


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


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    context = get_context("spawn")  # a fork would copy the locks of this process's threads
    theirs, ours = context.Pipe(duplex=False)
    with ProcessPoolExecutor(jobs, context, _begin, (theirs,)) as pool:
        try:
            yield pool
        except BaseException:
            ours.close()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(parent: Connection) -> None:
    """Start of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which closes the pipe
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    end_with_parent(os.dup(parent.fileno()))


@contextmanager
def _executor_of(address: str) -> Iterator[Executor]:
    with _cluster(address) as place:
        yield place.executor


@contextmanager
def _here(jobs: int) -> Iterator[Engine]:
    ended = threading.Event()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield Engine(pool, lambda: not ended.is_set(), f"{jobs} at a time")
        except BaseException:
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _cluster(address: str) -> Iterator[Engine]:
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
        yield Engine(client.get_executor(pure=False), _task_is_wanted, place)


def _task_is_wanted() -> bool:
    """Whether a client still waits for the Dask task in this thread. A thread cannot be cancelled."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state in ("executing", "long-running")
