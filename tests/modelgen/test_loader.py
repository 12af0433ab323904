"""What `modelgen.load` offers, what it refuses, and what it must not import."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
from modelgen.backends import MODULES
from modelgen.errors import ModelError
from tests.modelgen.backends.test_against_reference import needs

PURE = """
import sys
import modelgen
assert not {"sympy", "casadi", "numba", "torch", "numpy"} & sys.modules.keys(), "import modelgen"
import numpy as np
robot = modelgen.load("pendulum", directory=sys.argv[1])
robot.hamiltonian_gradient(np.zeros((3, 2)), np.zeros((3, 1)), np.zeros((3, 2)))
assert not {"sympy", "casadi", "numba", "torch", "mpmath"} & sys.modules.keys(), "llvm artifact"
"""


@pytest.mark.slow
def test_importing_and_loading_needs_neither_sympy_nor_torch(artifacts: Path) -> None:
    subprocess.run([sys.executable, "-c", PURE, str(artifacts)], check=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("backend", MODULES)
def test_names_and_constants(artifacts: Path, backend: Any, dtype: str) -> None:
    needs(backend)
    robot = modelgen.load("pendulum", backend=backend, dtype=dtype, directory=artifacts)
    assert robot.name == robot.metadata.name == "pendulum"
    assert robot.state_names == ("angle", "rate")
    assert robot.input_names == ("torque",)
    assert robot.parameter_names == ("mass", "length")
    shapes = {"nominal_parameters": (2,), "parameter_bounds": (2, 2), "state_limits": (2,), "input_limits": (1,)}
    for name, shape in shapes.items():
        constant = getattr(robot, name)
        kinds: dict[str, Any] = {"torch": torch.Tensor, "jax": sys.modules["jax"].Array if backend == "jax" else None}
        assert isinstance(constant, kinds.get(backend, np.ndarray))
        assert tuple(constant.shape) == shape
        assert str(constant.dtype).endswith(dtype)
    assert len(robot.hash) == 64
    assert "pendulum" in repr(robot)


@pytest.mark.parametrize("backend", MODULES)
def test_a_copy_and_a_pickle_have_the_parameters_and_the_kernels(artifacts: Path, backend: Any) -> None:
    """Compiled functions cannot be pickled; the copies are made after the first call, which compiles."""
    needs(backend)
    robot = modelgen.load("pendulum", backend=backend, directory=artifacts).with_nominal([1.5, 0.7])
    x, u = robot._kernels.constant([1.0, 2.0]), robot._kernels.constant([0.1])
    expected = robot.dynamics(x, u)
    for copied in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot), copy.copy(robot)):
        assert copied.nominal_parameters.tolist() == [1.5, 0.7]
        assert copied.dynamics(x, u).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "pendulu"}, "Did you mean `pendulum`"),
        ({"name": "pendulum", "backend": "lvm"}, "Did you mean `llvm`.*Backends: llvm, numba, casadi, torch"),
        ({"name": "pendulum", "dtype": "float46"}, "Did you mean `float64`"),
        ({"name": None}, "name is None; give a text or a path"),
        ({"name": "pendulum", "dtype": np.float64}, "no dtype.*Use float64 or float32"),
        ({"name": "pendulum", "dtype": np.dtype("float64")}, "no dtype.*Use float64 or float32"),
    ],
)
def test_unknown_names_get_a_suggestion(artifacts: Path, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        modelgen.load(**arguments, directory=artifacts)


def test_a_path_is_a_name_and_a_number_no_folder(artifacts: Path) -> None:
    assert modelgen.load(Path("models") / "pendulum.py", directory=artifacts).name == "pendulum"
    with pytest.raises(ModelError, match="directory is 3; give a text or a path or None"):
        modelgen.load("pendulum", directory=3)  # type: ignore[arg-type]


def test_own_folder_comes_before_the_shipped_one(
    artifacts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = modelgen.load("pendulum")
    (tmp_path / "generated").symlink_to(artifacts)
    assert modelgen.load("pendulum").hash != shipped.hash
    assert modelgen.load("furuta").name == "furuta"


def test_constants_of_a_robot_cannot_be_changed_for_others(artifacts: Path) -> None:
    first = modelgen.load("pendulum", directory=artifacts)
    first.nominal_parameters[:] = 9.0
    second = modelgen.load("pendulum", directory=artifacts)
    assert (second.nominal_parameters == 1.0).all()


def test_casadi_functions_are_the_casadi_backends(artifacts: Path) -> None:
    with pytest.raises(ModelError, match=r"modelgen\.load\('pendulum', backend='casadi'\)"):
        modelgen.load("pendulum", directory=artifacts).casadi_function("dynamics")


@pytest.mark.parametrize("values", [[float("nan")] * 2, ["heavy", 1.0], [1.0, float("inf")], 1.0, {"mass": 1}])
def test_parameters_that_are_no_finite_numbers_are_refused(values: Any) -> None:
    with pytest.raises(ModelError, match=r"give finite numbers|has 2: mass, length"):
        modelgen.load("pendulum").with_nominal(values)
