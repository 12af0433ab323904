"""Every backend, both number formats, beside 50-digit values from numerical inversion and differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import modelgen
from modelgen.backends import MODULES
from tests.closeness import assert_close
from tests.modelgen.support.quantities import Calls, Close, Exact

LIMITS = {"float64": 1e-11, "float32": 2e-5}


def needs(backend: str) -> None:
    """Skip the test where the engine of a backend is not installed."""
    if backend == "js":
        pytest.importorskip("py_mini_racer", reason="there is no mini-racer, the wheel of V8")
    if backend == "jax":
        pytest.importorskip("jax", reason="JAX is not installed")


@pytest.mark.parametrize("dtype", LIMITS)
@pytest.mark.parametrize("backend", MODULES)
@pytest.mark.parametrize("name", ["pendulum", "dense"])
@pytest.mark.slow
def test_every_quantity(
    name: str,
    backend: Any,
    dtype: Any,
    artifacts: Path,
    exact: Exact,
    calls: Calls,
    close: Close,
) -> None:
    needs(backend)
    if (name, backend, dtype) == ("dense", "jax", "float32"):
        pytest.skip("JAX compiles for ten seconds what it has compiled in float64; the pendulum shows the format")
    if (name, backend, dtype) == ("dense", "numba", "float32"):
        pytest.skip("test_numba.py compares it where it looks at its machine code")
    parallel = backend != "numba"  # whose parallel loops take twice as long to compile; test_numba.py has them
    robot = modelgen.load(name, backend=backend, dtype=dtype, directory=artifacts, parallel=parallel)

    def convert(array: np.ndarray) -> Any:
        array = array.astype(dtype)
        return torch.from_numpy(array) if backend == "torch" else array

    close(calls(robot, exact(name), convert), exact(name).values, LIMITS[dtype])


@pytest.mark.parametrize("backend", MODULES)
def test_theta_once_is_theta_for_every_sample(backend: Any, artifacts: Path, exact: Exact) -> None:
    needs(backend)
    robot = modelgen.load("pendulum", backend=backend, directory=artifacts)
    convert = torch.from_numpy if backend == "torch" else np.asarray
    x, theta = convert(exact("pendulum").x), convert(np.array([1.0, 1.0]))
    repeated = convert(np.ones((5, 2)))
    for by_default, once, each in zip(
        robot.jacobians(x), robot.jacobians(x, theta), robot.jacobians(x, repeated), strict=True
    ):
        assert_close(by_default, once)
        np.testing.assert_allclose(np.asarray(each), np.asarray(once), rtol=1e-14, atol=1e-15)


def test_pendulum_is_the_textbook_one(artifacts: Path) -> None:
    robot = modelgen.load("pendulum", directory=artifacts)
    x, u = np.array([[0.3, -1.0]]), np.array([[0.7]])
    xdot = robot.dynamics(x, u, np.array([2.0, 0.5]))
    np.testing.assert_allclose(xdot, [[-1.0, 3 * 9.81 / (2 * 0.5) * np.sin(0.3) + 3 * 0.7 / (2 * 0.25)]], rtol=1e-14)
