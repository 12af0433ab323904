"""Whether a forked child of a process whose kernels have run in threads computes the same.

It runs in a process of its own, `python forking.py BACKEND ARTIFACTS`: other tests import JAX, whose threads no fork
survives.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import numpy as np

import modelgen
from modelgen.backends import arrays


def require_equal_child(backend: str, artifacts: Path) -> None:
    """Run this file, with three threads for batches of a few thousand states. Raises what `subprocess.run` raises."""
    subprocess.run([sys.executable, __file__, backend, str(artifacts)], check=True, timeout=300)


def main(backend: str, artifacts: str) -> None:
    arrays._FEWEST, arrays._HEAD_START = 1_000, 100
    robot = modelgen.load("pendulum", backend=backend, directory=artifacts)
    x = np.random.default_rng(0).uniform(-3, 3, (4_096, 2))

    def total() -> float:
        return float(robot.dynamics(x, x[:, :1].copy()).sum())

    expected = total()
    assert backend != "llvm" or arrays._pool is not None
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=lambda: queue.put(total()), daemon=True)
    child.start()
    assert queue.get(timeout=120) == expected
    child.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
