"""Hypothesis: untimed, since a loaded machine is no failure, and the same examples every time but for `make fuzz`."""

import fcntl
import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Of OpenBLAS and MKL, here and in every process that a test starts: read when NumPy and Torch are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# XLA's optimisation takes three quarters of its time, and its functions are called once or twice here.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
# Its machine code is kept for the next run, as that of our kernels is.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Numba refuses another number of threads once it has launched some, so it has to be stated before any test.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")

# What is imported and collected stays to the end: the garbage collector would walk through all of it again and again.
gc.disable()
gc.set_threshold(7000)

settings.register_profile("any", deadline=None)
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=15)
settings.load_profile("any" if "FUZZ" in os.environ else "repeatable")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file whose tests are all slow is not even imported where slow tests are left out."""
    slow = config.option.markexpr == "not slow" and collection_path.suffix == ".py"
    return (slow and "\npytestmark = pytest.mark.slow" in collection_path.read_text(encoding="utf-8")) or None


#: Files with tests of half a minute: the first ones, so that no worker waits for another in the end.
LONG = {"test_cluster.py", "test_docs.py", "test_notebook.py", "test_trained_against_oracle.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Collect garbage of the tests alone."""
    gc.freeze()
    gc.enable()


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A shell starts what runs in its background so that it ignores Ctrl-C; this is Python's own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """made_once(name, make): the folder that make(folder) fills, once for all workers; tests must not change it."""
    parent = tmp_path_factory.getbasetemp()
    parent = parent.parent if "PYTEST_XDIST_WORKER" in os.environ else parent

    def of(name: str, make: Callable[[Path], object]) -> Path:
        folder, unfinished = parent / name, parent / f"{name}.unfinished"
        with (parent / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                make(unfinished)
                unfinished.rename(folder)
        return folder

    return of


@pytest.fixture(scope="session")
def built_unseen(made_once: Callable[..., Path]) -> Callable[[str], Path]:
    """built_unseen(robot): the generated/ folder of a robot of benchmarks/unseen, built once for all workers."""

    def of(name: str) -> Path:
        def make(folder: Path) -> None:
            from modelgen.builder import build_artifact
            from modelgen.derivation.model_file import load

            build_artifact(load(str(Path(__file__).parents[1] / "benchmarks" / "unseen" / f"{name}.py")), folder)

        return made_once(f"unseen_{name}", make)

    return of
