"""A real Dask cluster: a scheduler and two workers, each a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


class Cluster:
    """A scheduler and two workers of one thread, which a test may kill."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.file, self._stack = folder / "scheduler.json", stack
        self.environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        where = ["--scheduler-file", str(self.file), "--no-dashboard"]
        self.scheduler = self._start("scheduler", *where, "--host", "127.0.0.1", "--port", "0")
        more = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        self.workers = [self._start("worker", *where, *more) for _ in range(2)]

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        silent = subprocess.DEVNULL
        child = subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=self.environment, cwd=ROOT, stdout=silent, stderr=silent
        )
        self._stack.enter_context(child)
        self._stack.callback(child.kill)
        return child

    @property
    def address(self) -> str:
        """Of the scheduler, once both workers are there."""
        from distributed import Client

        with Client(scheduler_file=str(self.file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            return str(client.scheduler.address)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    with ExitStack() as stack:
        yield Cluster(tmp_path_factory.mktemp("dask"), stack)
