"""Artifacts of other people: every backend opens them, and none runs code that they hold."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import MODULES
from tests.modelgen.support.forgery import forged

X, U = np.ones((3, 2)), np.zeros((3, 1))


@pytest.mark.parametrize("backend", MODULES)
def test_no_backend_runs_a_file_of_an_artifact(tmp_path: Path, backend: str) -> None:
    """Each file beside the program would leave a mark when it is run or read."""
    pytest.importorskip({"jax": "jax", "js": "py_mini_racer"}.get(backend, "numpy"))
    folder = tmp_path / "pendulum"
    shutil.copytree(artifact.SHIPPED / "pendulum", folder)
    bait = f"__import__('pathlib').Path({str(tmp_path / 'ran')!r}).touch()\n"
    for name in artifact.read(folder).files:
        (folder / name).write_text(bait)
    forged(folder)
    robot = modelgen.load("pendulum", backend=backend, directory=tmp_path)
    arrays = (torch.from_numpy(X), torch.from_numpy(U)) if backend == "torch" else (X, U)
    np.testing.assert_allclose(np.asarray(robot.dynamics(*arrays))[:, 1], 1.5 * 9.81 * np.sin(1.0), rtol=1e-12)
    assert robot.drawing.segments(X).shape == (3, 1, 2, 2)
    assert robot.javascript()
    assert robot.equations()
    assert not (tmp_path / "ran").exists()
