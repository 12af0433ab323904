"""A pool of threads over chunks of samples, for kernels that release the GIL.

One pool a process, made when first needed and again after a fork. Safe to call from several threads at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

#: Below this many samples a thread, handing work over costs more than it saves.
_FEWEST = 512

_pool: ThreadPoolExecutor | None = None


def threads() -> int:
    """NUMBA_NUM_THREADS when set, else the cores this process may use."""
    stated = os.environ.get("NUMBA_NUM_THREADS", "")
    if stated.isdigit() and int(stated) > 0:
        return int(stated)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunk_count(samples: int) -> int:
    """How many threads pay for this many samples."""
    return max(1, min(threads(), samples // _FEWEST))


def run_chunks(chunk: Callable[[int, int], None], samples: int, count: int) -> None:
    """Call chunk(start, stop) `count` times at once, so that the ranges cover all samples."""
    bounds = [samples * k // count for k in range(count + 1)]
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
