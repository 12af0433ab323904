"""End of a process with its parent, and the variables that set its threads."""

from __future__ import annotations

import os
import threading

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
