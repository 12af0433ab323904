"""Time per sample of the compiled functions of robots in every backend, beside CasADi alone and Pinocchio.

    python benchmarks/kernels.py
    python benchmarks/kernels.py --robots furuta chain3 arm7 --functions hamiltonian_gradient dynamics

All candidates evaluate the same batch on the same number of threads. Their rounds are interleaved, so that a busy
machine slows them alike; medians are reported, and ratios of one run are what to compare. llvm, numba, torch and casadi
are modelgen's backends; Numba is left out where it would compile for minutes. `rivals.py` says how the others are
called; Pinocchio gives derivatives with respect to the state alone and stands beside the Hamiltonian gradient of robots
made of links or shipped with an MJCF file. Robots that are not shipped (chainN, arm7) are built in a temporary folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from generate import names, stated
from machine import gemm_gflops_fp32
from rivals import casadi_c, casadi_map, pinocchio_derivatives, pinocchio_model

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.backends import MODULES
from modelgen.backends.arrays import threads
from modelgen.builder import build_artifact
from modelgen.derivation.model_file import SHIPPED
from modelgen.errors import ModelError
from modelgen.loader import CompiledRobot
from modelgen.program.functions import SIGNATURES

FUNCTIONS = tuple(modelgen.load("pendulum", directory=artifact.SHIPPED).operations)
BACKENDS = [name for name in MODULES if name != "js"]  # which is for checks


@dataclass
class Result:
    """One candidate. ratio_to_llvm: how many times slower than the default backend it is."""

    function: str
    robot: str
    backend: str
    dtype: str
    ns_per_sample: float
    ratio_to_llvm: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--robots", nargs="+", default=["furuta", "chain2", "chain3", "arm7"], choices=names(), metavar="ROBOT"
    )
    parser.add_argument("--functions", nargs="+", default=["hamiltonian_gradient"], choices=[*FUNCTIONS])
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    results: list[Result] = []
    for name in options.robots:
        for function in options.functions:
            for dtype in ("float32", "float64"):
                results += compare(name, function, dtype, options.batch, options.rounds)
    report = {
        "batch": options.batch,
        "threads": threads(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
        "results": [asdict(result) for result in results],
    }
    print(json.dumps(report, indent=1))


def compare(name: str, function: str, dtype: str, batch: int, rounds: int) -> list[Result]:
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
    results = []
    for label, median in medians.items():
        used = dtype if label in BACKENDS else "float64"
        results.append(Result(function, name, label, used, round(median * 1e9, 3), round(median / medians["llvm"], 2)))
    return results


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


if __name__ == "__main__":
    torch.set_num_threads(threads())
    main()
