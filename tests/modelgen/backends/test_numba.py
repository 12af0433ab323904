"""The Numba backend: its sine and cosine, vectorisation, typing, threads, memory and caching."""

import ast
import math
import multiprocessing
import os
import runpy
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
from modelgen.backends import native, threads, translation, vectors
from modelgen.errors import ModelError


@pytest.fixture(scope="module")
def robot(artifacts):
    return modelgen.load("pendulum", directory=artifacts)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """evaluated(text, x): the rows of `result` that a statement of x's entries gives, as compiled vector code."""
    folder = tmp_path_factory.mktemp("code")

    def of(text, x, entries, shared=False):
        real = {"float32": "float", "float64": "double"}[x.dtype.name]
        function = ast.parse(f"def f(x, theta, result):\n{text}").body[0]
        widths = {"x": x.shape[1], "theta": x.shape[1], "result": entries}
        code = translation.llvm_code(function, widths, real, shared)
        kernel = native.function("f", 3, folder / f"{hash(code)}", code, lambda: code)
        result = np.empty((len(x), entries), x.dtype)
        kernel(0, len(x), x.ctypes.data, x.ctypes.data, result.ctypes.data)
        return result

    return of


@pytest.fixture(scope="module")
def sincos(evaluated):
    def of(angles):
        text = "  a = x[0]\n  result[0] = math.sin(a)\n  result[1] = math.cos(a)"
        return evaluated(text, angles[:, None].copy(), 2).T

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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("samples", [1, 7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
def test_rows_become_vectors_and_rows_again(evaluated, width, samples, dtype):
    """Every entry of every sample comes from its own place and goes to it, for all ways to read and write rows."""
    x = np.arange(samples * width, dtype=dtype).reshape(samples, width)
    order = np.random.default_rng(width).permutation(width)
    loads = "".join(f"  e{j} = x[{j}]\n" for j in range(width))
    stores = "".join(f"  result[{k}] = e{j} + {k}\n" for k, j in enumerate(order))
    np.testing.assert_array_equal(evaluated(loads + stores, x, width), x[:, order] + np.arange(width, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_long_kernel_is_cut_into_parts_with_the_same_results(evaluated, monkeypatch, dtype):
    x = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(dtype)
    text = "  a = x[0]\n  b = x[1]\n  c = x[2]\n  p = theta[1]\n  t0 = minimum(p, a)\n  t1 = b * p\n"
    text += "".join(f"  t{k} = t{k - 1} * 0.5 + t{k // 2} * c - p\n" for k in range(2, 400))
    text += "".join(f"  result[{k}] = t{k * 30} + a\n" for k in range(12))
    for shared in (False, True):
        whole = evaluated(text, x, 12, shared)
        monkeypatch.setattr(vectors, "PART", 100)
        np.testing.assert_allclose(evaluated(text, x, 12, shared), whole, rtol=1e-5 if dtype == "float32" else 1e-13)
        monkeypatch.undo()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_c_library_keep_the_number_format(evaluated, dtype):
    x = np.random.default_rng(0).uniform(0.1, 0.9, (21, 2)).astype(dtype)
    names = ["exp", "log", "tanh", "sinh", "cosh", "atan", "asin", "acos", "sqrt"]
    text = "  a = x[0]\n  b = x[1]\n" + "".join(f"  result[{k}] = math.{name}(a)\n" for k, name in enumerate(names))
    text += "  result[9] = math.atan2(a, b)\n  result[10] = math.pow(a, b)\n  result[11] = abs(a - b)\n"
    text += "  result[12] = minimum(a, b)\n  result[13] = maximum(a, b)\n  result[14] = sign(a - b)\n"
    a, b = x.astype(np.float64).T
    known = {"atan": np.arctan, "asin": np.arcsin, "acos": np.arccos}
    expected = [known.get(name, getattr(np, name, None))(a) for name in names]
    expected += [np.arctan2(a, b), a**b, abs(a - b), np.minimum(a, b), np.maximum(a, b), np.sign(a - b)]
    found = evaluated(text, x, 15)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-13 if dtype == "float64" else 2e-6)


def test_float32_is_never_promoted():
    kernels = modelgen.load("furuta", dtype="float32")._kernels
    text = kernels.llvm_code("hamiltonian_gradient", shared=True)
    assert "<16 x float>" in text
    assert "double" not in text


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 200])
def test_all_samples_are_covered_and_no_more(samples):
    furuta = modelgen.load("furuta", parallel=False)
    x = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    expected = furuta.jacobians(x)
    guarded = [np.full_like(array, 7.0) for array in expected]
    furuta.jacobians(x[:samples], out=tuple(array[:samples] for array in guarded))
    for found, right in zip(guarded, expected, strict=True):
        np.testing.assert_array_equal(found[:samples], right[:samples])
        assert (found[samples:] == 7.0).all()


def test_numba_compiles_the_emitted_functions_as_they_are():
    """And they are plain Python: two more engines for the same text."""
    njit = pytest.importorskip("numba").njit
    furuta = modelgen.load("furuta")
    path = furuta._kernels._module
    x, u, costate = np.array([[0.1, 2.0, -0.3, 0.4]]), np.array([[0.05]]), np.array([[1.0, -2.0, 0.3, 0.1]])
    expected = furuta.hamiltonian_gradient(x, u, costate)
    emitted = runpy.run_path(str(path))["hamiltonian_gradient"]
    for function in (emitted, njit(emitted)):
        results = [np.empty(size) for size in (4, 1, len(furuta.parameter_names))]
        function(x[0], u[0], costate[0], furuta.nominal_parameters, *results)
        for found, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(found, right[0], rtol=1e-12, atol=1e-14)


@pytest.fixture
def three_threads(monkeypatch):
    """As if small batches paid for three threads."""
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    monkeypatch.setattr(threads, "_FEWEST", 1_000)
    monkeypatch.setattr(threads, "_HEAD_START", 100)
    monkeypatch.setattr(threads, "_pool", None)
    yield
    assert threads._pool is not None


@pytest.mark.usefixtures("three_threads")
def test_threads_give_what_one_gives(artifacts, robot):
    x = np.random.default_rng(0).uniform(-3, 3, (5_001, 2))
    serial = modelgen.load("pendulum", directory=artifacts, parallel=False)
    for together, alone in zip(robot.affine_dynamics(x), serial.affine_dynamics(x), strict=True):
        np.testing.assert_array_equal(together, alone)


@pytest.mark.usefixtures("three_threads")
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
@pytest.mark.usefixtures("three_threads")
def test_a_forked_child_has_threads_of_its_own(robot):
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
LOCKED = np.zeros((4, 2))
LOCKED.flags.writeable = False


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
        ({"x": torch.zeros(4, 2, dtype=torch.float64).to_sparse(), "u": U}, "takes dense CPU tensors"),
        ({"x": X, "u": U, "out": (np.zeros((4, 3)),)}, r"`out` for xdot has shape \(4, 3\)"),
        ({"x": X, "u": U, "out": (np.zeros((4, 2), np.float32),)}, "dtype float32"),
        ({"x": X, "u": U, "out": (X,)}, "overlaps `x`"),
        ({"x": X, "u": U, "out": ()}, "tuple of 1 arrays: xdot"),
        ({"x": X, "u": U, "out": (np.zeros((2, 4)).T,)}, "contiguous and writable"),
        ({"x": X, "u": U, "out": (LOCKED,)}, "contiguous and writable"),
    ],
)
def test_a_wrong_call_is_explained(robot, arguments, words):
    with pytest.raises(ModelError, match=words):
        robot.dynamics(**arguments)


def test_results_that_overlap_each_other_are_refused(robot):
    memory = np.zeros(12)
    with pytest.raises(ModelError, match="`out` for dq_dx overlaps `q`"):
        robot.state_cost(X, out=(memory[:4], memory[3:11].reshape(4, 2)))


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
import sys, numpy as np, modelgen
from modelgen.backends import native
made, compiled = [], native._compiled
native._compiled = lambda text: made.append(text) or compiled(text)
robot = modelgen.load("pendulum", directory=sys.argv[1])
robot.dynamics(np.zeros((3, 2)), np.zeros((3, 1)))
print(len(made), robot.dynamics(np.ones((3, 2)), np.zeros((3, 1)))[0, 1])
"""


def _run_with(folder, home, **variables):
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)], env=environment, capture_output=True, text=True, check=True
    )
    compiled, value = done.stdout.split()
    assert float(value) == pytest.approx(1.5 * 9.81 * math.sin(1.0))
    return int(compiled), done.stderr


@pytest.fixture
def copied(artifacts, tmp_path):
    """A folder with the pendulum's artifact and no machine code."""
    folder = tmp_path / "generated"
    (folder / "pendulum").mkdir(parents=True)
    for file in (artifacts / "pendulum").iterdir():
        if file.is_file():
            (folder / "pendulum" / file.name).write_bytes(file.read_bytes())
    return folder


def test_machine_code_is_kept_for_the_next_process(copied, tmp_path):
    assert _run_with(copied, tmp_path)[0] == 1
    assert _run_with(copied, tmp_path)[0] == 0


def test_damaged_machine_code_is_made_again(copied, tmp_path):
    _run_with(copied, tmp_path)
    (kept,) = (copied / "pendulum" / "__pycache__").glob("*.o")
    kept.write_bytes(kept.read_bytes()[:-40])
    assert _run_with(copied, tmp_path)[0] == 1
    assert _run_with(copied, tmp_path)[0] == 0


def test_a_folder_that_cannot_be_written_keeps_its_machine_code_in_the_users_cache(copied, tmp_path):
    (copied / "pendulum" / "__pycache__").write_text("not a folder, so nothing can be kept in it")
    assert _run_with(copied, tmp_path / "home")[0] == 1
    assert _run_with(copied, tmp_path / "home")[0] == 0
    (tmp_path / "none").write_text("not a folder either")
    compiled, errors = _run_with(copied, tmp_path / "none")
    assert compiled == 1
    assert "MODELGEN_CACHE" in errors
    stated = {"MODELGEN_CACHE": str(tmp_path / "stated")}
    assert _run_with(copied, tmp_path / "none", **stated) == (1, "")
    assert _run_with(copied, tmp_path / "none", **stated) == (0, "")


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
