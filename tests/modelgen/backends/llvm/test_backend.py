"""Calls of the LLVM backend: what they take, explain, refuse and leave alone, from one thread or many."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import modelgen
from modelgen.backends import llvm
from modelgen.builder import build_artifact
from modelgen.derivation import model_file as modelfile
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from tests.closeness import assert_close
from tests.modelgen.support.forking import require_equal_child

LARGE = 1_600_001  # samples of the pendulum that pay for three threads


@pytest.fixture(scope="module")
def robot(artifacts: Path) -> CompiledRobot:
    return modelgen.load("pendulum", directory=artifacts)


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three threads may compute a batch, and did."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    yield
    assert any(thread.name.startswith("modelgen") for thread in threading.enumerate())


@pytest.mark.usefixtures("three_threads")
@pytest.mark.slow
def test_threads_give_what_one_gives(artifacts: Path, robot: CompiledRobot) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, (LARGE, 2))
    serial = modelgen.load("pendulum", directory=artifacts, parallel=False)
    for together, alone in zip(robot.affine_dynamics(x), serial.affine_dynamics(x), strict=True):
        assert_close(together, alone)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("each", [True, False])
def test_few_samples_of_a_robot_with_many_results_do_not_lie_on_the_stack(
    artifacts: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, each: bool
) -> None:
    """29 coordinates have 9 MB of Jacobians for the 8 samples of a vector, and the process died."""
    robot = modelgen.load("pendulum", directory=artifacts, dtype=dtype)
    x = np.random.default_rng(0).uniform(-3, 3, (5, 2)).astype(dtype)
    theta = np.array([[1.0 + 0.1 * k, 0.9] for k in range(5)], dtype) if each else None
    usual = robot.jacobians(x, theta)
    monkeypatch.setattr(llvm, "MOST_ON_STACK", 0)
    for found, wanted in zip(robot.jacobians(x, theta), usual, strict=True):
        assert_close(found, wanted)
    for found, wanted in zip(robot.jacobians(x[0], None if theta is None else theta[0]), usual, strict=True):
        assert_close(found, wanted[0])


@pytest.mark.usefixtures("three_threads")
def test_many_callers_at_once(robot: CompiledRobot) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, (LARGE, 2))
    expected = robot.dynamics(x, x[:, :1].copy())
    found = []
    callers = [threading.Thread(target=lambda: found.append(robot.dynamics(x, x[:, :1].copy()))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 4
    assert all(np.array_equal(result, expected) for result in found)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_a_forked_child_has_threads_of_its_own(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    require_equal_child("llvm", artifacts)


def test_out_is_written_and_returned(robot: CompiledRobot) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, (7, 2))
    out = (np.empty((7, 2)), np.empty((7, 2, 1)))
    a, B = robot.affine_dynamics(x, out=out)
    assert a is out[0]
    assert B is out[1]
    np.testing.assert_array_equal(a, robot.affine_dynamics(x)[0])


def test_tensors_share_their_memory(robot: CompiledRobot) -> None:
    x = torch.rand(6, 2, dtype=torch.float64)
    out = (torch.empty(6, dtype=torch.float64), torch.empty(6, 2, dtype=torch.float64))
    q, slope = robot.state_cost(x, out=out)
    assert q is out[0]
    assert_close(slope, robot.state_cost(x.numpy())[1])
    assert torch.is_tensor(robot.dynamics(x, torch.zeros(6, 1, dtype=torch.float64)))


X = np.zeros((4, 2))
U = np.zeros((4, 1))
LOCKED = np.zeros((4, 2))
LOCKED.flags.writeable = False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": np.zeros(3), "u": U}, r"`x` has shape \(3,\); it must be \(N, 2\).*or \(2,\) for one sample"),
        ({"x": np.zeros(2), "u": U}, "`u` has 4 rows, but `x` is one sample"),
        ({"x": X, "u": np.zeros(1)}, "`u` is one sample, but `x` has 4"),
        ({"x": np.zeros((4, 3)), "u": U}, r"`x` has shape \(4, 3\)"),
        ({"x": X, "u": np.zeros((3, 1))}, r"`u` has 3 rows, but `x` has 4"),
        ({"x": X.astype(complex), "u": U}, "`x` has dtype complex128.*real numbers"),
        ({"x": X.astype(str), "u": U}, "`x` has dtype <U.*real numbers"),
        ({"x": np.ma.array(X, mask=X > 0), "u": U}, r"`x` is a masked array.*Pass x.filled\(value\)"),
        ({"x": X.tolist(), "u": U}, "`x` is a list"),
        (
            {"x": X, "u": U, "theta": np.ones(3)},
            r"`theta` has shape \(3,\); it must be \(N, 2\).*or \(2,\) for all samples",
        ),
        ({"x": X, "u": U, "theta": np.ones((3, 2))}, "`theta` has 3 rows"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64, requires_grad=True), "u": U}, "requires a gradient"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64, device="meta"), "u": U}, "tensor on meta"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64).to_sparse(), "u": U}, "takes dense CPU tensors"),
        ({"x": torch.zeros(4, 2, dtype=torch.bfloat16), "u": U}, r"torch.bfloat16.*no memory to read.*Pass x.float"),
        ({"x": X, "u": U, "out": (np.zeros((4, 3)),)}, r"`out` for xdot has shape \(4, 3\)"),
        ({"x": X, "u": U, "out": (np.zeros((4, 2), np.float32),)}, "dtype float32"),
        ({"x": X, "u": U, "out": (X,)}, "overlaps `x`"),
        ({"x": X, "u": U, "out": ()}, "tuple of 1 arrays: xdot"),
        ({"x": X, "u": U, "out": (np.zeros((2, 4)).T,)}, "contiguous and writable"),
        ({"x": X, "u": U, "out": (LOCKED,)}, "contiguous and writable"),
    ],
)
def test_a_wrong_call_is_explained(robot: CompiledRobot, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        robot.dynamics(**arguments)


@pytest.mark.parametrize("dtype", ["float32", "int64", ">f8", "float16", "bool"])
def test_arrays_of_another_dtype_are_converted(robot: CompiledRobot, dtype: str) -> None:
    x, u = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [0.0]])
    expected = robot.dynamics(x, u)
    np.testing.assert_array_equal(robot.dynamics(x, u.astype(dtype)), expected)
    np.testing.assert_array_equal(robot.dynamics(x.astype(dtype), u.astype(dtype)), expected)


def test_arrays_and_tensors_in_another_order_are_copied(robot: CompiledRobot) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2, 4))
    expected = robot.dynamics(x.T.copy(), U)
    np.testing.assert_array_equal(robot.dynamics(x.T, U), expected)
    np.testing.assert_array_equal(robot.dynamics(torch.from_numpy(x).T, torch.from_numpy(U)), expected)


def test_results_that_overlap_each_other_are_refused(robot: CompiledRobot) -> None:
    memory = np.zeros(12)
    with pytest.raises(ModelError, match=r"`out` .*dq_dx .*`q`"):
        robot.state_cost(X, out=(memory[:4], memory[3:11].reshape(4, 2)))


def _array(columns: int) -> st.SearchStrategy[np.ndarray]:
    """Mostly (N, columns) with N from 0 to 2 and float64, sometimes anything."""
    shapes = st.integers(0, 2).map(lambda rows: (rows, columns)) | st.lists(st.integers(0, 3), max_size=3).map(tuple)
    dtypes = st.sampled_from(["float64", "float64", "float64", "float32", "int32"])
    return st.builds(np.ones, shapes, dtypes)


@settings(deadline=None, max_examples=200)
@given(x=_array(2), u=_array(1), costate=_array(2), theta=st.none() | st.just(np.ones(2)) | _array(2))
@pytest.mark.slow
def test_any_shape_is_computed_or_refused(robot: CompiledRobot, x: Any, u: Any, costate: Any, theta: Any) -> None:
    samples = len(x) if x.ndim else 0
    right = [array.shape == (samples, size) for array, size in ((x, 2), (u, 1), (costate, 2))]
    right.append(theta is None or theta.shape in ((2,), (samples, 2)))
    if all(right):
        shapes = [result.shape for result in robot.hamiltonian_gradient(x, u, costate, theta)]
        assert shapes == [(samples, 2), (samples, 1), (samples, 2)]
    else:
        with pytest.raises(ModelError):
            robot.hamiltonian_gradient(x, u, costate, theta)


@pytest.mark.slow
def test_nan_stays_in_its_sample(artifacts: Path, exact: Callable[[str], SimpleNamespace]) -> None:
    dense = modelgen.load("dense", directory=artifacts)
    at = exact("dense")
    for column in range(6):
        x = at.x.copy()
        x[2, column] = np.nan
        xdot, clean = dense.dynamics(x, at.u), dense.dynamics(at.x, at.u)
        assert np.isnan(xdot[2]).any()
        np.testing.assert_allclose(np.delete(xdot, 2, 0), np.delete(clean, 2, 0), rtol=1e-13)


def test_nan_of_a_state_that_nothing_depends_on_is_kept() -> None:
    """The arm's angle turns up nowhere in furuta's dynamics, so its gradient is an exact zero elsewhere."""
    robot = modelgen.load("furuta")
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    u, costate = np.zeros((3, 1)), np.ones((3, 4))
    assert (robot.hamiltonian_gradient(x, u, costate)[0][:, 0] == 0).all()
    x[1, 0] = np.nan
    slope = robot.hamiltonian_gradient(x, u, costate)[0]
    assert np.isnan(slope[1, 0])
    assert np.isfinite(slope[[0, 2]]).all()


def test_a_loaded_robot_outlives_a_rebuild(tmp_path: Path) -> None:
    """Its functions are compiled when they are first called, from the program that was read."""
    build_artifact(modelfile.load(str(modelfile.SHIPPED / "pendulum.py")), tmp_path)
    loaded = modelgen.load("pendulum", directory=tmp_path)
    for file in (tmp_path / "pendulum").glob("program_*.json"):
        file.unlink()
    assert np.isfinite(loaded.jacobians(np.ones((3, 2)))[0]).all()
