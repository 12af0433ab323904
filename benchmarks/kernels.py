"""Time per sample of the compiled functions of robots in every backend, compared with CasADi alone and Pinocchio.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --robots furuta chain3 arm7 --functions hamiltonian_gradient dynamics

All candidates evaluate the same batch on the same number of threads. Their rounds are interleaved, so that a busy
machine slows them alike; medians are reported, and ratios of one run are what to compare. llvm, numba, torch and casadi
are modelgen's backends; Numba is left out where it would compile for minutes. Pinocchio gives derivatives with respect
to the state alone and stands beside the Hamiltonian gradient of robots made of links or shipped with an MJCF file.
Robots that are not shipped (chainN, arm7) are built in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from generate import names, stated
from machine import gemm_gflops_fp32

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import MODULES
from modelgen.backends.arrays import run_chunks, threads
from modelgen.builder import build_artifact
from modelgen.derivation.model_file import SHIPPED
from modelgen.engines.mujoco import ASSETS
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from modelgen.program.functions import SIGNATURES

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
FUNCTIONS = tuple(modelgen.load("pendulum", directory=artifact.SHIPPED).operations)
BACKENDS = [name for name in MODULES if name != "js"]  # which is for checks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--robots", nargs="+", default=["furuta", "chain2", "chain3", "arm7"], choices=names(), metavar="ROBOT"
    )
    parser.add_argument("--functions", nargs="+", default=["hamiltonian_gradient"], choices=[*FUNCTIONS])
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for name in options.robots:
        for function in options.functions:
            for dtype in ("float32", "float64"):
                results += compare(name, function, dtype, options.batch, options.rounds)
    report = {
        "batch": options.batch,
        "threads": threads(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
        "results": results,
    }
    print(json.dumps(report, indent=1))


def compare(name: str, function: str, dtype: str, batch: int, rounds: int) -> list[dict[str, Any]]:
    """All candidates for one function; those that are not backends compute in float64 whatever the dtype."""
    with tempfile.TemporaryDirectory() as folder:
        directory = None if (SHIPPED / f"{name}.py").exists() else folder
        if directory:
            build_artifact(stated(name), directory)
        arrays = inputs(modelgen.load(name, directory=directory), batch)
        candidates: dict[str, Callable[[], float]] = {}
        for backend in BACKENDS:
            robot = modelgen.load(name, backend=backend, dtype=dtype, directory=directory)
            with contextlib.suppress(ModelError):  # a function that is too long for Numba
                candidates[backend] = kernel(robot, function, arrays, batch)
        candidates |= rivals(name, function, directory, arrays, batch)
        seconds: dict[str, list[float]] = {label: [] for label in candidates}
        for _ in range(rounds):
            for label, measure in candidates.items():
                seconds[label].append(measure())
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    return [
        {
            "function": function,
            "robot": name,
            "backend": label,
            "dtype": dtype if label in BACKENDS else "float64",
            "ns_per_sample": round(median * 1e9, 3),
            "ratio_to_llvm": round(median / medians["llvm"], 2),
        }
        for label, median in medians.items()
    ]


def inputs(robot: CompiledRobot, batch: int) -> dict[str, Any]:
    """Every array argument by name: uniform in [-1, 1], theta the nominal parameters in every row."""
    random = np.random.default_rng(0)
    arrays = {key: random.uniform(-1, 1, (batch, size)) for key, size in robot.program.sizes.items()}
    return arrays | {"theta": np.tile(robot.declared_parameters, (batch, 1))}


def rivals(name: str, function: str, directory: str | None, arrays: dict[str, Any], batch: int) -> dict[str, Any]:
    """What other engines make of the same function."""
    robot = modelgen.load(name, backend="casadi", directory=directory)
    single = robot.casadi_function(function)
    found = {"casadi map, serial": casadi_map(single, arrays, batch, 1)}
    if threads() > 1:
        found[f"casadi map, {threads()} threads"] = casadi_map(single, arrays, batch, threads())
    if shutil.which("gcc"):
        found["casadi C, gcc -O3"] = casadi_c(single, arrays, batch)
    model = pinocchio_model(stated(name)) if function == "hamiltonian_gradient" else None
    if model is not None:
        found["pinocchio computeABADerivatives"] = pinocchio_derivatives(model)
    return found


def kernel(robot: CompiledRobot, function: str, arrays: dict[str, Any], batch: int) -> Callable[[], float]:
    """A backend's function into arrays that are there, at the nominal parameters."""
    method = getattr(robot, function)
    arguments = [arrays[name].astype(robot.dtype) for name in SIGNATURES[function][0] if name != "theta"]
    if robot.backend == "torch":
        arguments = [torch.from_numpy(each) for each in arguments]
    results = method(*arguments)
    out = results if isinstance(results, tuple) else (results,)

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(5):
            method(*arguments, out=out)
        return (time.perf_counter() - start) / (5 * batch)

    measure()
    return measure


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


if __name__ == "__main__":
    torch.set_num_threads(threads())
    main()
