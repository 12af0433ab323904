"""Hypothesis: untimed, since a loaded machine is no failure, and the same examples every time but for `make fuzz`."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Of OpenBLAS and MKL, here and in every process that a test starts: read when NumPy and Torch are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# LLVM's passes take half of the time of XLA, whose functions are called once or twice here.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# Numba refuses another number of threads once it has launched some, so it has to be stated before any test.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

settings.register_profile("repeatable", deadline=None, derandomize="FUZZ" not in os.environ)
settings.load_profile("repeatable")


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A shell starts what runs in its background so that it ignores Ctrl-C; this is Python's own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
