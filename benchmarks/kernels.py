"""Time per sample of the compiled functions of a robot beside CasADi's map and Pinocchio, as ratios in one run.

    python benchmarks/kernels.py --json
    python benchmarks/kernels.py --robot cartpole --functions dynamics jacobians hamiltonian_gradient

Every backend evaluates the same batch. The rounds of all candidates are interleaved, so that a busy machine
slows them alike, and medians are reported. CasADi maps the same serialized function over the batch with the
same number of threads. Pinocchio has no batch of computeABADerivatives: it is called once a sample, the cost of
a Python call that does next to nothing (integrate) is taken off, and the rest is divided by the number of threads,
as if it scaled perfectly; it gives state derivatives only.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from machine import gemm_gflops_fp32

import modelgen
from modelgen.backends.threads import threads

_ARGUMENTS = {
    "affine_dynamics": ("x",),
    "dynamics": ("x", "u"),
    "jacobians": ("x",),
    "hamiltonian_gradient": ("x", "u", "costate"),
    "state_cost": ("x",),
}


@dataclass
class Result:
    """One candidate; ratio_to_numba says how many times slower than Numba's kernel it is."""

    function: str
    robot: str
    backend: str
    dtype: str
    ns_per_sample: float
    ratio_to_numba: float = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="furuta")
    parser.add_argument("--functions", nargs="+", default=["hamiltonian_gradient"], choices=[*_ARGUMENTS])
    parser.add_argument("--batch", type=int, default=51_200)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    results = []
    for function in options.functions:
        for dtype in ("float32", "float64"):
            results += _compare(options.robot, function, dtype, options.batch, options.rounds)
    report = {
        "batch": options.batch,
        "threads": threads(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
        "results": [asdict(result) for result in results],
    }
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print(f"batch {options.batch}, {threads()} threads, {report['gemm_gflops_fp32']:.0f} GFLOP/s in fp32 products")
    for result in results:
        print(
            f"{result.robot:18} {result.function:22} {result.dtype:8} {result.backend:32}"
            f"{result.ns_per_sample:10.2f} ns/sample{result.ratio_to_numba:9.1f}x"
        )


def _compare(name: str, function: str, dtype: str, batch: int, rounds: int) -> list[Result]:
    random = np.random.default_rng(0)
    candidates: dict[str, Callable[[], float]] = {}
    for backend, parallel in (("numba", True), ("casadi", False), ("casadi", True)):
        robot = modelgen.load(name, backend=backend, dtype=dtype, parallel=parallel)
        sizes = {"x": len(robot.state_names), "u": len(robot.input_names), "costate": len(robot.state_names)}
        arrays = {key: random.uniform(-1, 1, (batch, size)).astype(dtype) for key, size in sizes.items()}
        if backend == "numba":
            candidates["numba"] = _numba(robot, function, arrays, batch)
        else:
            label = f"casadi map, {threads()} threads" if parallel else "casadi map, serial"
            candidates[label] = _casadi(robot, function, arrays, batch, threads() if parallel else 1)
    if function == "hamiltonian_gradient" and name == "furuta" and importlib.util.find_spec("pinocchio"):
        candidates["pinocchio computeABADerivatives"] = _pinocchio(random)
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
            dtype if label == "numba" else "float64",
            round(median * 1e9, 3),
            round(median / medians["numba"], 2),
        )
        for label, median in medians.items()
    ]


def _numba(robot: Any, function: str, arrays: dict[str, Any], batch: int) -> Callable[[], float]:
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


def _casadi(robot: Any, function: str, arrays: dict[str, Any], batch: int, count: int) -> Callable[[], float]:
    single = robot.casadi_function(function)
    mapped = single.map(batch, "thread", count) if count > 1 else single.map(batch)
    buffer, evaluate = mapped.buffer()
    arrays = {**arrays, "theta": np.tile(robot.nominal_parameters, (batch, 1))}
    kept = [np.ascontiguousarray(arrays[name], np.float64) for name in single.name_in()]
    kept += [np.empty(batch * single.numel_out(index)) for index in range(single.n_out())]
    for index in range(single.n_in()):
        buffer.set_arg(index, memoryview(kept[index].reshape(-1)))
    for index in range(single.n_out()):
        buffer.set_res(index, memoryview(kept[single.n_in() + index]))

    def measure(_keep: Any = (buffer, kept)) -> float:  # `evaluate` holds neither
        start = time.perf_counter()
        evaluate()
        return (time.perf_counter() - start) / batch

    measure()
    return measure


def _pinocchio(random: np.random.Generator, samples: int = 2_000) -> Callable[[], float]:
    import pinocchio

    model = _furuta(pinocchio)
    data = model.createData()
    rows = random.uniform(-1, 1, (3, samples, model.nq))

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


def _furuta(pinocchio: Any) -> Any:
    """The mechanism of the shipped furuta: arm about the vertical, pendulum about the arm."""
    arm_mass, arm, pole_mass, pole = 0.095, 0.085, 0.024, 0.129
    model = pinocchio.Model()
    first = model.addJoint(0, pinocchio.JointModelRZ(), pinocchio.SE3.Identity(), "arm")
    rod = arm_mass * arm**2 / 12
    inertia = pinocchio.Inertia(arm_mass, np.array([arm / 2, 0, 0]), np.diag([0, rod, rod]))
    model.appendBodyToJoint(first, inertia, pinocchio.SE3.Identity())
    tip = pinocchio.SE3(np.eye(3), np.array([arm, 0, 0]))
    second = model.addJoint(first, pinocchio.JointModelRX(), tip, "pendulum")
    rod = pole_mass * pole**2 / 12
    inertia = pinocchio.Inertia(pole_mass, np.array([0, 0, pole / 2]), np.diag([rod, rod, 0]))
    model.appendBodyToJoint(second, inertia, pinocchio.SE3.Identity())
    return model


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", str(threads()))
    main()
