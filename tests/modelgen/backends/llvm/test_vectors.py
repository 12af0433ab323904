"""The LLVM backend's vector code: its sine and cosine, vectorisation and typing."""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

import modelgen
from modelgen.backends import llvm
from modelgen.backends.llvm import elementary
from modelgen.backends.llvm import translate as translation
from modelgen.program.functions import Argument, Function, Output
from modelgen.program.graph import Graph, Node
from tests.closeness import assert_close

GUARD = 7.0


Made = Callable[[Graph, Sequence[Node], Sequence[Node]], Sequence[Node]]


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., np.ndarray]:
    """evaluated(make, x): the entries of the nodes that make(graph, x, theta) returns, as compiled vector code.

    With rows=(first, last) only these; the others stay as in `GUARD`.
    """
    folder = tmp_path_factory.mktemp("code")

    def of(make: Made, x: np.ndarray, shared: bool = False, rows: tuple[int, int] | None = None) -> np.ndarray:
        real = {"float32": "float", "float64": "double"}[x.dtype.name]
        graph = Graph()
        arguments = [
            Argument(array, tuple(graph.input(f"{array}_{k}") for k in range(x.shape[1]))) for array in ("theta", "x")
        ]
        nodes = tuple(make(graph, arguments[1].entries, arguments[0].entries))
        function = Function("f", tuple(arguments), (Output("result", (len(nodes),), nodes),))
        code = translation.llvm_code(graph, function, real, shared)
        kernel = llvm.machine_code("f", 3, f"{folder.name}-{hash(code)}", code, lambda: code)
        result = np.full((len(x), len(nodes)), GUARD, x.dtype)
        kernel(*(rows or (0, len(x))), x.ctypes.data, x.ctypes.data, result.ctypes.data)
        return result

    return of


@pytest.fixture(scope="module")
def sincos(evaluated: Callable[..., np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    def of(angles: np.ndarray) -> np.ndarray:
        return evaluated(lambda g, x, _: [g.call("sin", x[0]), g.call("cos", x[0])], angles[:, None].copy()).T

    return of


@pytest.mark.parametrize(
    ("dtype", "span", "limit"),
    [(np.float64, 10.0, 2.3e-16), (np.float64, 1e6, 2.3e-16), (np.float32, 10.0, 1.3e-7), (np.float32, 1e3, 1.3e-7)],
)
def test_sine_and_cosine_against_50_digits(
    sincos: Callable[[np.ndarray], np.ndarray], dtype: Any, span: float, limit: float
) -> None:
    random = np.random.default_rng(0)
    quarter_turns = np.arange(-40, 40) * (np.pi / 2) * span / 100
    angles = np.concatenate([random.uniform(-span, span, 400), quarter_turns, [0.0, 1e-8]]).astype(dtype)
    with mpmath.workdps(50):
        expected = np.array(
            [[float(mpmath.sin(float(a))) for a in angles], [float(mpmath.cos(float(a))) for a in angles]]
        )
    assert np.abs(sincos(angles) - expected).max() < limit


def test_sine_near_its_zeros_keeps_relative_precision(sincos: Callable[[np.ndarray], np.ndarray]) -> None:
    angles = np.array([k * np.pi for k in range(1, 3000, 7)])
    with mpmath.workdps(50):
        expected = np.array([float(mpmath.sin(float(angle))) for angle in angles])
    assert (np.abs(sincos(angles)[0] - expected) / np.abs(expected)).max() < 1e-9


def test_sine_of_nan_and_infinity_is_nan(sincos: Callable[[np.ndarray], np.ndarray]) -> None:
    assert np.isnan(sincos(np.array([np.nan, np.inf, -np.inf]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sine_of_any_number_is_nan_or_at_most_one(sincos: Callable[[np.ndarray], np.ndarray], dtype: Any) -> None:
    top = 38 if dtype == np.float32 else 300
    values = np.abs(sincos(np.logspace(-30, top, 2_000).astype(dtype)))
    assert not (values > 1.000001).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("samples", [1, 7, 8, 9, 15, 16, 17, 40])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
@pytest.mark.slow
def test_rows_become_vectors_and_rows_again(
    evaluated: Callable[..., np.ndarray], width: int, samples: int, dtype: str
) -> None:
    """Every entry of every sample comes from its own place and goes to it, for all ways to read and write rows."""
    x = np.arange(samples * width, dtype=dtype).reshape(samples, width)
    order = np.random.default_rng(width).permutation(width)

    def make(graph: Graph, x: Sequence[Node], _: Sequence[Node]) -> list[Node]:
        return [graph.add(x[j], graph.constant(k)) for k, j in enumerate(order)]

    np.testing.assert_array_equal(evaluated(make, x), x[:, order] + np.arange(width, dtype=dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.slow
def test_a_long_kernel_that_is_cut_into_parts_computes_what_numpy_does(
    evaluated: Callable[..., np.ndarray], dtype: str, shared: bool
) -> None:
    x = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 3)).astype(dtype)

    def make(graph: Graph, x: Sequence[Node], theta: Sequence[Node]) -> list[Node]:
        made = [graph.call("minimum", theta[1], x[0]), graph.mul(x[1], theta[1])]
        for k in range(2, 1600):
            half = graph.mul(made[k - 1], graph.constant(0.5))
            made.append(graph.sub(graph.add(half, graph.mul(made[k // 2], x[2])), theta[1]))
        return [graph.add(made[k * 140], x[0]) for k in range(12)]

    exact = x.astype(float)
    theta = exact[:1] if shared else exact
    made = [np.minimum(theta[:, 1], exact[:, 0]), exact[:, 1] * theta[:, 1]]
    for k in range(2, 1600):
        made.append(0.5 * made[k - 1] + made[k // 2] * exact[:, 2] - theta[:, 1])
    expected = np.stack([made[k * 140] + exact[:, 0] for k in range(12)], 1)
    found = evaluated(make, x, shared)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_the_c_library_keep_the_number_format(evaluated: Callable[..., np.ndarray], dtype: str) -> None:
    x = np.random.default_rng(0).uniform(0.1, 0.9, (21, 2)).astype(dtype)
    names = ["exp", "log", "tanh", "sinh", "cosh", "atan", "asin", "acos", "sqrt"]

    def make(graph: Graph, x: Sequence[Node], _: Sequence[Node]) -> list[Node]:
        difference = graph.sub(x[0], x[1])
        of_two = [graph.call(name, x[0], x[1]) for name in ("atan2", "pow", "minimum", "maximum")]
        return (
            [graph.call(name, x[0]) for name in names] + of_two + [graph.call(f, difference) for f in ("abs", "sign")]
        )

    a, b = x.astype(np.float64).T
    known = {"atan": np.arctan, "asin": np.arcsin, "acos": np.arccos}
    expected = [(known.get(name) or getattr(np, name))(a) for name in names]
    expected += [np.arctan2(a, b), a**b, np.minimum(a, b), np.maximum(a, b), abs(a - b), np.sign(a - b)]
    found = evaluated(make, x)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-13 if dtype == "float64" else 2e-6)


def test_float32_is_never_promoted() -> None:
    kernels: Any = modelgen.load("furuta", dtype="float32")._kernels
    text = kernels.llvm_code("hamiltonian_gradient", shared=True)
    assert "<16 x float>" in text
    assert "double" not in text


@pytest.mark.parametrize("samples", [1, 7, 8, 9, 200])
def test_all_samples_are_covered_and_no_more(samples: int) -> None:
    furuta = modelgen.load("furuta", parallel=False)
    x = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    expected = furuta.jacobians(x)
    guarded = [np.full_like(array, 7.0) for array in expected]
    furuta.jacobians(x[:samples], out=tuple(array[:samples] for array in guarded))
    for found, right in zip(guarded, expected, strict=True):
        assert_close(found[:samples], right[:samples])
        assert (found[samples:] == 7.0).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [(0, 3), (5, 6), (17, 24), (40, 55), (9, 60), (60, 60)])
def test_any_range_of_samples_is_computed_in_its_place(
    evaluated: Callable[..., np.ndarray], rows: tuple[int, int], dtype: str
) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (60, 3)).astype(dtype)
    found = evaluated(lambda g, x, _: [g.mul(x[0], x[2]), x[1]], x, rows=rows)
    expected = np.full((60, 2), GUARD, dtype)
    inside = slice(*rows)
    expected[inside] = np.stack([x[inside, 0] * x[inside, 2], x[inside, 1]], 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_numba_compiles_the_emitted_functions_as_they_are() -> None:
    """And they are plain Python: two more engines for the same text."""
    njit = pytest.importorskip("numba").njit
    furuta = modelgen.load("furuta")
    (path,) = furuta.folder.glob("kernels_*.py")
    x, u, costate = np.array([[0.1, 2.0, -0.3, 0.4]]), np.array([[0.05]]), np.array([[1.0, -2.0, 0.3, 0.1]])
    expected = furuta.hamiltonian_gradient(x, u, costate)
    emitted = runpy.run_path(str(path))["hamiltonian_gradient"]
    for function in (emitted, njit(emitted)):
        results = [np.empty(size) for size in (4, 1, len(furuta.parameter_names))]
        function(x[0], u[0], costate[0], furuta.nominal_parameters, *results)
        for found, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(found, right[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("real", "limit"), [("double", 4e-16), ("float", 2e-7)])
def test_exponential_against_50_digits(real: str, limit: float) -> None:
    """As arithmetic of doubles; the vector code of both precisions is tested with the value's networks."""
    largest, degree = elementary.EXP[real]
    points = [*np.random.default_rng(0).uniform(-largest, largest, 300), 0.0, largest, -largest]
    with mpmath.workdps(50):
        errors = [
            elementary.exp(x, largest, degree, *elementary.LOG_2[real]) / mpmath.exp(mpmath.mpf(x)) - 1 for x in points
        ]
    assert max(map(abs, errors)) < limit
    assert elementary.exp(2.0 * largest, largest, degree, *elementary.LOG_2[real]) == pytest.approx(
        math.exp(largest), rel=1e-5
    )
