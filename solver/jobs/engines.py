"""Where jobs run: on this machine, or on the workers of a Dask cluster. Each is a `concurrent.futures.Executor`.

A training is a job that starts a process of its own (`engine`). A portion of the rollouts of a policy is a short job,
and many of them share a process (`workers`).
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
from solver.jobs.parent import THREAD_VARIABLES, end_with_parent

Result = TypeVar("Result")
SECONDS = 10.0  # until a scheduler has answered


@dataclass(frozen=True)
class Engine:
    """An executor, and what belongs to it."""

    executor: Executor
    wanted: Callable[[], bool]  # called within a job: whether somebody still waits for it
    place: str  # in words


def engine(jobs: int, cluster: str | None = None) -> AbstractContextManager[Engine]:
    """Threads of this process, each of which starts one process at a time, or the cluster at an address.

    jobs: how many at once; of a cluster its workers say it. When the block ends by an exception, such as Ctrl-C, no
    job is wanted any more. Raises SolverError for `jobs` below 1 and, on entry, for a cluster that does not answer.
    """
    _require_jobs(jobs)
    return _here(jobs) if cluster is None else _cluster(cluster)


def workers(jobs: int, cluster: str | None = None) -> AbstractContextManager[Executor]:
    """For short jobs: this process for one at a time, else so many processes of one thread each, or a cluster.

    When the block ends by an exception, the processes end in the middle of their jobs. Raises SolverError as `engine`.
    """
    _require_jobs(jobs)
    if cluster is not None:
        return _executor_of(cluster)
    return Here() if jobs == 1 else _processes(jobs)


def _require_jobs(jobs: int) -> None:
    if jobs < 1:
        raise SolverError(f"--jobs is {jobs}; give at least 1")


def results(jobs: Sequence[Future[Result]]) -> Iterator[Result]:
    """The results of short jobs, in their order. Raises SolverError where what runs them is lost."""
    try:
        for job in jobs:
            yield job.result()
    except CancelledError as error:
        raise SolverError("the scheduler is lost; start it again, and give this command again") from error
    except BrokenExecutor as error:
        raise SolverError(
            "a worker process was killed, most likely since memory was short; give this command again with fewer --jobs"
        ) from error


class Here(Executor):
    """Calls each function as soon as it is submitted, in this thread."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done already. Exceptions come at once, not with its result."""
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
    """What a worker process does first."""
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
    """Whether the Dask task in this thread still has a client that waits for it: a thread cannot be cancelled."""
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    return task is not None and task.state in ("executing", "long-running")
