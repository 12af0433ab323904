"""A backend is one file and one line in a table: one is added here from outside, and loads and computes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import modelgen
from modelgen import backends
from modelgen.builder import build_from_equations
from modelgen.errors import ModelError
from tests.modelgen.support import mechanisms
from tests.modelgen.support.quantities import Calls, Close, Exact

FILE = '''
"""Python itself runs the module of the program, sample after sample."""
from modelgen.backends import numba
from modelgen.backends.arrays import HostKernels


def load(program, robot, dtype, parallel):
    return Interpreted(program, robot, dtype)


class Interpreted(HostKernels):
    def __init__(self, program, robot, dtype):
        super().__init__(program, robot, dtype)
        self._module = {}
        exec(numba.emit(program, robot)["kernels.py"], self._module)

    def _run(self, function, arrays, results, samples):
        given = [arrays[argument.name] for argument in self._functions[function].arguments]
        for k in range(samples):
            rows = [array if array.ndim == 1 else array[k] for array in given]
            rows += [result.reshape(samples, -1)[k] for result in results]
            self._module[function](*rows)
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


def test_a_new_backend_explains_a_wrong_call(interpreted: Path) -> None:
    robot = modelgen.load("dense", backend="interpreted", directory=interpreted)
    with pytest.raises(ModelError, match=r"`x` .*\(5,\).*\(N, 6\)"):
        robot.affine_dynamics(np.zeros(5))
    with pytest.raises(ModelError, match=r"casadi_function .*casadi .*interpreted"):
        robot.casadi_function("dynamics")


def test_it_opens_artifacts_that_were_built_without_it(interpreted: Path, artifacts: Path) -> None:
    assert interpreted.is_dir()
    robot = modelgen.load("pendulum", backend="interpreted", directory=artifacts)
    assert np.isfinite(robot.dynamics(np.ones((2, 2)), np.zeros((2, 1)))).all()
