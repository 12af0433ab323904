"""A backend is one file and one line in a table: one is added here from outside, and builds, loads and computes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import modelgen
from modelgen import backends
from modelgen.artifact import folder as artifact
from modelgen.builder import build_from_equations
from modelgen.errors import ArtifactError, ModelError
from tests.modelgen.support import mechanisms
from tests.modelgen.support.quantities import Calls, Close, Exact

FILE = '''
"""Python itself runs the emitted functions, sample after sample."""
import math

from modelgen.artifact.folder import source
from modelgen.backends import python
from modelgen.backends.host import HostKernels
from modelgen.backends.modules import emitted_module


def emit(program, robot):
    return {"interpreted.py": python.emit(program, robot)["kernels.py"]}


def load(folder, manifest, dtype, parallel):
    return Interpreted(emitted_module(*source(folder, manifest, "interpreted")), manifest, dtype)


class Interpreted(HostKernels):
    def __init__(self, module, manifest, dtype):
        super().__init__(manifest, dtype)
        self._module = module

    def _run(self, function, arrays, results, samples):
        signature = self._signatures[function]
        for k in range(samples):
            rows = [arrays[name] if arrays[name].ndim == 1 else arrays[name][k] for name in signature.arguments]
            rows += [result.reshape(samples, -1)[k] for result in results]
            getattr(self._module, function)(*rows)
'''


@pytest.fixture
def interpreted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an artifact that was built with the backend `interpreted` in the table."""
    (tmp_path / "interpreted_backend.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(backends.MODULES, "interpreted", "interpreted_backend")
    monkeypatch.delitem(sys.modules, "interpreted_backend", raising=False)
    equations = mechanisms.dense()
    build_from_equations(equations, mechanisms.metadata("dense", equations), "0" * 64, tmp_path)
    return tmp_path


def test_a_new_backend_computes_the_50_digit_values(
    interpreted: Path,
    exact: Exact,
    calls: Calls,
    close: Close,
) -> None:
    robot = modelgen.load("dense", backend="interpreted", directory=interpreted)
    close(calls(robot, exact("dense")), exact("dense").values, 1e-11)


def test_the_file_of_a_new_backend_is_part_of_the_artifact(interpreted: Path) -> None:
    assert artifact.check("dense", interpreted, "0" * 64) == []
    (file,) = (interpreted / "dense").glob("interpreted_*.py")
    file.write_text(file.read_text() + "\n")
    with pytest.raises(ArtifactError, match=f"{file.name} was edited"):
        modelgen.load("dense", backend="interpreted", directory=interpreted)
    modelgen.load("dense", backend="llvm", directory=interpreted)


def test_a_new_backend_explains_a_wrong_call(interpreted: Path) -> None:
    robot = modelgen.load("dense", backend="interpreted", directory=interpreted)
    with pytest.raises(ModelError, match=r"`x` has shape \(5,\); it must be \(N, 6\)"):
        robot.affine_dynamics(np.zeros(5))
    with pytest.raises(
        ModelError, match="casadi_function belongs to the casadi backend, and this robot uses interpreted"
    ):
        robot.casadi_function("dynamics")


def test_an_artifact_from_before_has_no_files_for_it(interpreted: Path, artifacts: Path) -> None:
    assert interpreted.is_dir()
    with pytest.raises(ArtifactError, match="has no files for the backend interpreted"):
        modelgen.load("pendulum", backend="interpreted", directory=artifacts)
