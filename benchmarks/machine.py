"""The machine's own rate, measured in the same run as every benchmark, so that figures from different machines
can be compared."""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np


def median_seconds(work: Callable[[], object], rounds: int) -> float:
    """Median wall time of `work` after one warm-up call."""
    work()
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def gemm_gflops_fp32(size: int = 2048) -> float:
    """Rate of a float32 matrix product through NumPy's BLAS, GFLOP/s."""
    a = np.random.default_rng(0).random((size, size), dtype=np.float32)
    return 2.0 * size**3 / median_seconds(lambda: a @ a, 5) / 1e9


def peak_rss_mb() -> float:
    """Largest resident size of this process so far, MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
