"""The Numba backend: its sine and cosine, vectorisation, typing, threads, memory and caching."""

import multiprocessing
import os
import re
import subprocess
import sys
import threading

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import modelgen
from modelgen.backends import numba_prelude as prelude
from modelgen.backends import threads
from modelgen.errors import ModelError


@pytest.fixture(scope="module")
def robot(artifacts):
    return modelgen.load("pendulum", directory=artifacts)


@pytest.fixture(scope="module")
def sincos():
    from numba import njit

    inner = prelude.sincos

    @njit
    def evaluate(angles, real, half_pi):
        result = np.empty((2, angles.size), angles.dtype)
        for i in range(angles.size):
            result[0, i], result[1, i] = inner(angles[i], real, half_pi)
        return result

    def of(angles):
        half_pi = prelude.HALF_PI_32 if angles.dtype == np.float32 else prelude.HALF_PI_64
        return evaluate(angles, angles.dtype.type, half_pi)

    return of


@pytest.mark.parametrize(
    ("dtype", "span", "limit"),
    [(np.float64, 10.0, 2.3e-16), (np.float64, 1e6, 2.3e-16), (np.float32, 10.0, 1.3e-7), (np.float32, 1e3, 1.3e-7)],
)
def test_sine_and_cosine_against_50_digits(sincos, dtype, span, limit):
    random = np.random.default_rng(0)
    quarter_turns = np.arange(-40, 40) * (np.pi / 2) * span / 100
    angles = np.concatenate([random.uniform(-span, span, 400), quarter_turns, [0.0, 1e-8]]).astype(dtype)
    with mpmath.workdps(50):
        expected = np.array(
            [[float(mpmath.sin(float(a))) for a in angles], [float(mpmath.cos(float(a))) for a in angles]]
        )
    assert np.abs(sincos(angles) - expected).max() < limit


def test_sine_near_its_zeros_keeps_relative_precision(sincos):
    angles = np.array([k * np.pi for k in range(1, 3000, 7)])
    with mpmath.workdps(50):
        expected = np.array([float(mpmath.sin(float(angle))) for angle in angles])
    assert (np.abs(sincos(angles)[0] - expected) / np.abs(expected)).max() < 1e-9


def test_sine_of_nan_and_infinity_is_nan(sincos):
    assert np.isnan(sincos(np.array([np.nan, np.inf, -np.inf]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sine_of_any_number_is_nan_or_at_most_one(sincos, dtype):
    top = 38 if dtype == np.float32 else 300
    values = np.abs(sincos(np.logspace(-30, top, 2_000).astype(dtype)))
    assert not (values > 1.000001).any()


def _llvm(kernel, *arguments):
    """Fresh LLVM code, for a kernel from the cache keeps none."""
    from numba import njit

    fresh = njit(fastmath=prelude.FAST, error_model="numpy", pipeline_class=prelude.DistinctArrays)(kernel.py_func)
    fresh(*arguments)
    return fresh.inspect_llvm(fresh.signatures[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loop_is_vectorised_and_keeps_its_number_format(robot, dtype):
    arrays = [np.ones((64, size), dtype) for size in (2, 1, 2)]
    code = _llvm(robot._kernels._module.hamiltonian_gradient, *arrays, np.ones(2, dtype), *arrays)
    kind = {"float32": "float", "float64": "double"}[dtype]
    assert re.search(rf"f(mul|add|sub).*<\d+ x {kind}>", code), "LLVM did not vectorise the sample loop"
    if dtype == "float32":
        assert not re.search(r"f(mul|add|sub|div)[ \w]* (<\d+ x )?double", code), "float32 was promoted"
    assert "NRT_Allocate" not in code


def test_many_wide_results_are_vectorised_without_scatter():
    furuta = modelgen.load("furuta")
    results = furuta.jacobians(np.ones((64, 4)))
    code = _llvm(furuta._kernels._module.jacobians, np.ones((64, 4)), furuta.nominal_parameters, *results)
    assert re.search(r"fmul.*<\d+ x double>", code), "LLVM did not vectorise the sample loop"
    assert "masked.scatter" not in code


@pytest.mark.parametrize("samples", [1, 63, 64, 65, 200])
def test_blocks_cover_all_samples_and_no_more(samples):
    furuta = modelgen.load("furuta", parallel=False)
    x = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    expected = furuta.jacobians(x)
    guarded = [np.full_like(array, 7.0) for array in expected]
    furuta.jacobians(x[:samples], out=tuple(array[:samples] for array in guarded))
    for found, right in zip(guarded, expected, strict=True):
        np.testing.assert_allclose(found[:samples], right[:samples], rtol=1e-13, atol=1e-13)
        assert (found[samples:] == 7.0).all()


def test_threads_give_what_one_gives(artifacts, robot, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    x = np.random.default_rng(0).uniform(-3, 3, (5_001, 2))
    serial = modelgen.load("pendulum", directory=artifacts, parallel=False)
    for together, alone in zip(robot.affine_dynamics(x), serial.affine_dynamics(x), strict=True):
        np.testing.assert_array_equal(together, alone)


def test_many_callers_at_once(robot):
    x = np.random.default_rng(0).uniform(-3, 3, (4_096, 2))
    expected = robot.dynamics(x, x[:, :1].copy())
    found = []
    callers = [threading.Thread(target=lambda: found.append(robot.dynamics(x, x[:, :1].copy()))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 4
    assert all(np.array_equal(result, expected) for result in found)


def _in_child(robot, x, queue):
    queue.put(robot.dynamics(x, x[:, :1].copy()).sum())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(robot, monkeypatch):
    monkeypatch.setattr(threads, "threads", lambda: 2)
    x = np.random.default_rng(0).uniform(-3, 3, (4_096, 2))
    expected = robot.dynamics(x, x[:, :1].copy()).sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(robot, x, queue), daemon=True)
    child.start()
    assert queue.get(timeout=60) == expected
    child.join()


def test_out_is_written_and_returned(robot):
    x = np.random.default_rng(0).uniform(-3, 3, (7, 2))
    out = (np.empty((7, 2)), np.empty((7, 2, 1)))
    a, B = robot.affine_dynamics(x, out=out)
    assert a is out[0]
    assert B is out[1]
    np.testing.assert_array_equal(a, robot.affine_dynamics(x)[0])


def test_tensors_share_their_memory(robot):
    x = torch.rand(6, 2, dtype=torch.float64)
    out = (torch.empty(6, dtype=torch.float64), torch.empty(6, 2, dtype=torch.float64))
    q, slope = robot.state_cost(x, out=out)
    assert q is out[0]
    np.testing.assert_array_equal(slope.numpy(), robot.state_cost(x.numpy())[1])
    assert torch.is_tensor(robot.dynamics(x, torch.zeros(6, 1, dtype=torch.float64)))


X = np.zeros((4, 2))
U = np.zeros((4, 1))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": np.zeros(2), "u": U}, r"`x` has shape \(2,\).*\(N, 2\).*x\[None, :\]"),
        ({"x": np.zeros((4, 3)), "u": U}, r"`x` has shape \(4, 3\)"),
        ({"x": X, "u": np.zeros((3, 1))}, r"`u` has 3 rows, but `x` has 4"),
        ({"x": X.astype(np.float32), "u": U}, "`x` has dtype float32.*loaded with dtype float64"),
        ({"x": X.astype(int), "u": U}, "`x` has dtype int64"),
        ({"x": X.tolist(), "u": U}, "`x` is a list"),
        ({"x": np.zeros((2, 4)).T, "u": U}, "`x` is not contiguous.*ascontiguousarray"),
        ({"x": X, "u": U, "theta": np.ones(3)}, r"`theta` has shape \(3,\); it must be \(2,\) or \(N, 2\)"),
        ({"x": X, "u": U, "theta": np.ones((3, 2))}, "`theta` has 3 rows"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64, requires_grad=True), "u": U}, "requires a gradient"),
        ({"x": torch.zeros(4, 2, dtype=torch.float64, device="meta"), "u": U}, "tensor on meta"),
        ({"x": X, "u": U, "out": (np.zeros((4, 3)),)}, r"`out` for xdot has shape \(4, 3\)"),
        ({"x": X, "u": U, "out": (np.zeros((4, 2), np.float32),)}, "dtype float32"),
        ({"x": X, "u": U, "out": (X,)}, "overlaps `x`"),
        ({"x": X, "u": U, "out": ()}, "tuple of 1 arrays: xdot"),
        ({"x": X, "u": U, "out": (np.zeros((2, 4)).T,)}, "contiguous and writable"),
    ],
)
def test_a_wrong_call_is_explained(robot, arguments, words):
    with pytest.raises(ModelError, match=words):
        robot.dynamics(**arguments)


def _array(columns):
    """Mostly (N, columns) with N from 0 to 2 and float64, sometimes anything."""
    shapes = st.integers(0, 2).map(lambda rows: (rows, columns)) | st.lists(st.integers(0, 3), max_size=3).map(tuple)
    dtypes = st.sampled_from(["float64", "float64", "float64", "float32", "int32"])
    return st.builds(np.ones, shapes, dtypes)


@settings(deadline=None, max_examples=200)
@given(x=_array(2), u=_array(1), costate=_array(2), theta=st.none() | st.just(np.ones(2)) | _array(2))
def test_any_shape_and_dtype_is_computed_or_refused(robot, x, u, costate, theta):
    samples = len(x) if x.ndim else 0
    right = [
        array.dtype == np.float64 and array.shape == (samples, size) for array, size in ((x, 2), (u, 1), (costate, 2))
    ]
    right.append(theta is None or (theta.dtype == np.float64 and theta.shape in ((2,), (samples, 2))))
    if all(right):
        shapes = [result.shape for result in robot.hamiltonian_gradient(x, u, costate, theta)]
        assert shapes == [(samples, 2), (samples, 1), (samples, 2)]
    else:
        with pytest.raises(ModelError):
            robot.hamiltonian_gradient(x, u, costate, theta)


def test_nan_stays_in_its_sample(artifacts, exact):
    dense = modelgen.load("dense", directory=artifacts)
    at = exact("dense")
    for column in range(6):
        x = at.x.copy()
        x[2, column] = np.nan
        xdot, clean = dense.dynamics(x, at.u), dense.dynamics(at.x, at.u)
        assert np.isnan(xdot[2]).any()
        np.testing.assert_allclose(np.delete(xdot, 2, 0), np.delete(clean, 2, 0), rtol=1e-13)


RUN = """
import sys, warnings, numpy as np, modelgen
robot = modelgen.load("pendulum", directory=sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    robot = modelgen.load("pendulum", directory=sys.argv[1])
robot.dynamics(np.zeros((3, 2)), np.zeros((3, 1)))
kernel = robot._kernels._module.dynamics
print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def _run_with(folder, home):
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


def test_machine_code_is_kept_for_the_next_process(artifacts, tmp_path):
    _run_with(artifacts, tmp_path)
    assert _run_with(artifacts, tmp_path)[0] == ["1", "0"]


def test_a_folder_that_cannot_be_written_keeps_its_machine_code_in_the_users_cache(artifacts, tmp_path):
    folder = tmp_path / "generated"
    (folder / "pendulum").mkdir(parents=True)
    for file in (artifacts / "pendulum").iterdir():
        if file.is_file():
            (folder / "pendulum" / file.name).write_bytes(file.read_bytes())
    (folder / "pendulum" / "__pycache__").write_text("not a folder, so nothing can be kept in it")
    _run_with(folder, tmp_path / "home")
    assert _run_with(folder, tmp_path / "home")[0] == ["1", "0"]
    (tmp_path / "none").write_text("not a folder either")
    (hits, _), errors = _run_with(folder, tmp_path / "none")
    assert hits == "0"
    assert "NUMBA_CACHE_DIR" in errors


def test_nan_of_a_state_that_nothing_depends_on_is_kept():
    """The arm's angle turns up nowhere in furuta's dynamics, so its gradient is an exact zero elsewhere."""
    robot = modelgen.load("furuta")
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    u, costate = np.zeros((3, 1)), np.ones((3, 4))
    assert (robot.hamiltonian_gradient(x, u, costate)[0][:, 0] == 0).all()
    x[1, 0] = np.nan
    slope = robot.hamiltonian_gradient(x, u, costate)[0]
    assert np.isnan(slope[1, 0])
    assert np.isfinite(slope[[0, 2]]).all()
