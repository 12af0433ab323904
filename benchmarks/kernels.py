"""Time per sample of the compiled functions of robots beside CasADi and Pinocchio, as ratios in one run.

    python benchmarks/kernels.py --json
    python benchmarks/kernels.py --robots furuta chain3 arm7 --functions hamiltonian_gradient dynamics

All candidates evaluate the same batch on the same number of threads. Their rounds are interleaved, so that a busy
machine slows them alike, and medians are reported. `rivals.py` says how each rival is called; Pinocchio, which gives
derivatives with respect to the state alone, stands beside the Hamiltonian gradient of robots made of links or shipped
with an MJCF file.
Robots that are not shipped (chainN, arm7) are built into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from generate import names, stated
from machine import gemm_gflops_fp32
from rivals import casadi_c, casadi_map, pinocchio_derivatives, pinocchio_model

import modelgen
from modelgen.backends.threads import threads
from modelgen.build import build_artifact
from modelgen.derivation.model_file import SHIPPED

_ARGUMENTS = {
    "affine_dynamics": ("x",),
    "dynamics": ("x", "u"),
    "jacobians": ("x",),
    "hamiltonian_gradient": ("x", "u", "costate"),
    "state_cost": ("x",),
}


@dataclass
class Result:
    """One candidate; ratio_to_numba says how many times slower than modelgen's kernel it is."""

    function: str
    robot: str
    backend: str
    dtype: str
    ns_per_sample: float
    ratio_to_numba: float = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--robots", nargs="+", default=["furuta", "chain2", "chain3", "arm7"], choices=names(), metavar="ROBOT"
    )
    parser.add_argument("--functions", nargs="+", default=["hamiltonian_gradient"], choices=[*_ARGUMENTS])
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    results: list[Result] = []
    for name in options.robots:
        for function in options.functions:
            for dtype in ("float32", "float64"):
                found = compare(name, function, dtype, options.batch, options.rounds)
                results += found
                if not options.json:
                    print(*map(line, found), sep="\n", flush=True)
    report = {
        "batch": options.batch,
        "threads": threads(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
        "results": [asdict(result) for result in results],
    }
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        print(f"batch {options.batch}, {threads()} threads, {report['gemm_gflops_fp32']:.0f} GFLOP/s in fp32 products")


def line(result: Result) -> str:
    return (
        f"{result.robot:12} {result.function:22} {result.dtype:8} {result.backend:32}"
        f"{result.ns_per_sample:10.2f} ns/sample{result.ratio_to_numba:9.1f}x"
    )


def compare(name: str, function: str, dtype: str, batch: int, rounds: int) -> list[Result]:
    """All candidates for one function; the rivals compute in float64 whatever the kernel's dtype."""
    with tempfile.TemporaryDirectory() as folder:
        directory = None if (SHIPPED / f"{name}.py").exists() else folder
        if directory:
            build_artifact(stated(name), directory)
        robot = modelgen.load(name, dtype=dtype, directory=directory)
        single = modelgen.load(name, backend="casadi", directory=directory)._kernels.casadi_function(function)
        random = np.random.default_rng(0)
        sizes = {"x": len(robot.state_names), "u": len(robot.input_names), "costate": len(robot.state_names)}
        arrays = {key: random.uniform(-1, 1, (batch, size)).astype(dtype) for key, size in sizes.items()}
        candidates = {"llvm": kernel(robot, function, arrays, batch)}
        arrays["theta"] = np.tile(robot.nominal_parameters, (batch, 1))
        candidates["casadi map, serial"] = casadi_map(single, arrays, batch, 1)
        if threads() > 1:
            candidates[f"casadi map, {threads()} threads"] = casadi_map(single, arrays, batch, threads())
        if shutil.which("gcc"):
            candidates["casadi C, gcc -O3"] = casadi_c(single, arrays, batch)
        model = pinocchio_model(stated(name)) if function == "hamiltonian_gradient" else None
        if model is not None:
            candidates["pinocchio computeABADerivatives"] = pinocchio_derivatives(model)
        seconds: dict[str, list[float]] = {label: [] for label in candidates}
        for _ in range(rounds):
            for label, measure in candidates.items():
                seconds[label].append(measure())
    medians = {label: statistics.median(values) for label, values in seconds.items()}
    return [
        Result(
            function,
            name,
            label,
            dtype if label == "llvm" else "float64",
            round(median * 1e9, 3),
            round(median / medians["llvm"], 2),
        )
        for label, median in medians.items()
    ]


def kernel(robot: Any, function: str, arrays: dict[str, Any], batch: int) -> Callable[[], float]:
    """modelgen's kernel into arrays that are there, at the nominal parameters."""
    method = getattr(robot, function)
    arguments = [arrays[name] for name in _ARGUMENTS[function]]
    results = method(*arguments)
    out = results if isinstance(results, tuple) else (results,)

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(5):
            method(*arguments, out=out)
        return (time.perf_counter() - start) / (5 * batch)

    measure()
    return measure


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", str(threads()))
    main()
