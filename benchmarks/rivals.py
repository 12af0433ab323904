"""What the kernels are measured beside: CasADi's map, CasADi's generated C, and Pinocchio."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.backends.arrays import run_chunks, threads
from modelgen.engines.mujoco import ASSETS

Measure = Callable[[], float]  # seconds per sample
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")

#: Calls the function that CasADi generated for one sample after another, on rows of contiguous arrays.
_DRIVER = """
#include "function.c"
#define COUNT {inputs}
#define RESULTS {outputs}
void rows(long first, long last, const double** inputs, const long* widths, double** results, const long* sizes) {{
  const double* arg[{sz_arg}]; double* res[{sz_res}]; casadi_int iw[{sz_iw} + 1]; double w[{sz_w} + 1];
  for (long i = first; i < last; ++i) {{
    for (int k = 0; k < COUNT; ++k) arg[k] = inputs[k] + i * widths[k];
    for (int k = 0; k < RESULTS; ++k) res[k] = results[k] + i * sizes[k];
    {name}(arg, res, iw, w, 0);
  }}
}}
"""


def casadi_map(function: Any, arrays: dict[str, Any], batch: int, count: int) -> Measure:
    """`casadi.Function.map` over `count` threads, or serial."""
    mapped = function.map(batch, "thread", count) if count > 1 else function.map(batch)
    buffer, evaluate = mapped.buffer()
    kept = _inputs(function, arrays) + _results(function, batch)
    for index in range(function.n_in()):
        buffer.set_arg(index, memoryview(kept[index].reshape(-1)))
    for index in range(function.n_out()):
        buffer.set_res(index, memoryview(kept[function.n_in() + index].reshape(-1)))

    def measure(_keep: Any = (buffer, kept)) -> float:  # `evaluate` holds neither
        start = time.perf_counter()
        evaluate()
        return (time.perf_counter() - start) / batch

    measure()
    return measure


def casadi_c(function: Any, arrays: dict[str, Any], batch: int) -> Measure:
    """The C that CasADi generates for one sample, compiled with -O3, in a loop over the rows on all threads."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        function.generate("function.c", {"with_header": False})
        Path("function.c").rename(folder / "function.c")
        sizes = {each: getattr(function, each)() for each in ("sz_arg", "sz_res", "sz_iw", "sz_w")}
        text = _DRIVER.format(inputs=function.n_in(), outputs=function.n_out(), name=function.name(), **sizes)
        (folder / "driver.c").write_text(text)
        command = ["gcc", *FLAGS, "-o", str(folder / "driver.so"), str(folder / "driver.c"), "-lm"]
        subprocess.run(command, check=True, cwd=folder)
        rows = ctypes.CDLL(str(folder / "driver.so")).rows
    rows.argtypes = [ctypes.c_long] * 2 + [ctypes.c_void_p] * 4
    inputs, results = _inputs(function, arrays), _results(function, batch)
    tables = [
        np.array([array.ctypes.data for array in inputs]),
        np.array([function.numel_in(k) for k in range(function.n_in())]),
        np.array([array.ctypes.data for array in results]),
        np.array([function.numel_out(k) for k in range(function.n_out())]),
    ]
    addresses = [table.ctypes.data for table in tables]

    def measure(_keep: Any = (inputs, results, tables)) -> float:
        start = time.perf_counter()
        run_chunks(
            lambda first, last: rows(first, last, *addresses), batch, 8 * function.n_instructions()
        )  # scalar code
        return (time.perf_counter() - start) / batch

    measure()
    return measure


def pinocchio_model(robot: Any) -> Any:
    """The same mechanism, from the robot's links or from its MJCF file; None without either or without Pinocchio."""
    if not importlib.util.find_spec("pinocchio"):
        return None
    import pinocchio

    from modelgen.engines.expressions import Expressions
    from modelgen.engines.pinocchio import build

    if robot.links:
        nominal = np.array([constant.value for constant in robot.parameters if not constant.fixed])
        return build(Expressions(robot).tree(nominal))._model
    mjcf = ASSETS / f"{robot.name}.xml"
    return pinocchio.buildModelFromMJCF(str(mjcf)) if mjcf.exists() else None


def pinocchio_derivatives(model: Any, samples: int = 2_000) -> Measure:
    """computeABADerivatives, called once a sample; the cost of a call that does next to nothing is taken off.

    Pinocchio has no batch of them, so the time is divided by the number of threads, as if it scaled perfectly.
    """
    import pinocchio

    data = model.createData()
    rows = np.random.default_rng(0).uniform(-1, 1, (3, samples, model.nq))

    def measure() -> float:
        start = time.perf_counter()
        for q, v, force in zip(*rows, strict=True):
            pinocchio.computeABADerivatives(model, data, q, v, force)
        middle = time.perf_counter()
        for q, v, _ in zip(*rows, strict=True):
            pinocchio.integrate(model, q, v)
        call = time.perf_counter() - middle
        return (middle - start - call) / (samples * threads())

    return measure


def _inputs(function: Any, arrays: dict[str, Any]) -> list[Any]:
    return [np.ascontiguousarray(arrays[name], np.float64) for name in function.name_in()]


def _results(function: Any, batch: int) -> list[Any]:
    return [np.empty((batch, function.numel_out(index))) for index in range(function.n_out())]
