"""Torch on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def serial_torch() -> Iterator[None]:
    """Within, Torch's own operations take one thread; results do not depend on the number of cores. Also a decorator.

    Torch's threads wait for each other spinning: where another job has a core, small operations take several times as
    long on two as on one.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
