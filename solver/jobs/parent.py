"""What ties a process to the one that started it, and the threads that it may use."""

from __future__ import annotations

import os
import threading

STDIN = 0
#: Each says how many threads a library of a process takes.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def end_with_parent(pipe: int = STDIN) -> None:
    """End this process when its parent is gone, however it went, or closes its end of a pipe.

    pipe: the descriptor of this process's end, by default of its standard input.
    """
    threading.Thread(target=_wait, args=(pipe,), daemon=True).start()


def _wait(pipe: int) -> None:
    os.read(pipe, 1)  # sys.stdin would hold its lock at exit
    os._exit(1)
