"""A pool of threads over chunks of samples, for kernels that release the GIL.

One pool a process, made when first needed and again after a fork. Safe to call from several threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

#: Below so many operations a thread, about 0.1 ms, handing work over costs more than it saves.
_FEWEST = 4_000_000
#: A kernel computes as many samples as it has lanes, 16 at most, however few it is asked for.
_SMALLEST = 16
#: Operations that the calling thread does while the others wake up.
_HEAD_START = 1_000_000

_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """Number of threads: NUMBA_NUM_THREADS if it is set, otherwise the cores that this process may use."""
    count = os.environ.get("NUMBA_NUM_THREADS", "")
    if count.isdigit() and int(count) > 0:
        return int(count)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_chunks(chunk: Callable[[int, int], None], samples: int, operations: int) -> None:
    """Call chunk(start, stop) on ranges that cover all samples, at once on as many threads as pay for the operations.

    `operations` is the number a sample takes.
    """
    count = min(samples * operations // _FEWEST, samples // _SMALLEST)
    count = min(threads(), count) if count > 1 else 1
    if count == 1:
        chunk(0, samples)
        return
    first = min(samples - _SMALLEST * count, _HEAD_START // operations)
    bounds = [0, *(first + (samples - first) * k // count for k in range(1, count + 1))]
    jobs = [_workers().submit(chunk, bounds[k], bounds[k + 1]) for k in range(1, count)]
    chunk(bounds[0], bounds[1])
    for job in jobs:
        job.result()


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, threads() - 1), thread_name_prefix="modelgen")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
