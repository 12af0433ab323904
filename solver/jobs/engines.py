"""Where jobs run: on this machine, or on the workers of a Dask cluster. Each is a `concurrent.futures.Executor`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from solver.errors import SolverError

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
    if jobs < 1:
        raise SolverError(f"--jobs is {jobs}; give at least 1")
    return _here(jobs) if cluster is None else _cluster(cluster)


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
