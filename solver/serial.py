"""Torch on one thread. Only the command line and the trainers, which own the process, set it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def serial_torch() -> Iterator[None]:
    """Context in which Torch's operations use one thread, so that results do not depend on the number of cores.

    It is also faster. Torch's threads wait for each other in a busy loop: if another job uses a core, small operations
    take several times as long on two threads as on one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
