"""Time of a control period of the cart-pole for N robots: JAX, llvm, Torch and MuJoCo XLA (MJX).

    python benchmarks/jax_steps.py
    pip install mujoco-mjx     # for its row; without it the row is left out

Every candidate moves the states by one step of the classical Runge-Kutta method under another input each time, in
float32. The candidates in JAX take all steps in one `lax.scan`; the others in a loop of Python. Rounds are interleaved,
so that a busy machine slows all alike; medians are reported, and ratios of one run are what to compare.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch
from machine import gemm_gflops_fp32

import modelgen
from modelgen.artifact import folder as artifact
from modelgen.engines.mujoco import ASSETS
from modelgen.loader import CompiledRobot

Steps = Callable[[Any, Any], Any]  # from states (N, n) and inputs (T, N, m) to states (N, n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", type=int, nargs="+", default=[64, 4096], metavar="N", help="robots at once")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    found = [compare(size, options.steps, options.rounds) for size in options.robots]
    report = {
        "steps": options.steps,
        "device": jax.devices()[0].platform,
        "gemm_gflops_fp32": gemm_gflops_fp32(),
        "results": found,
    }
    print(json.dumps(report, indent=2))


def compare(size: int, steps: int, rounds: int) -> dict[str, Any]:
    """Nanoseconds of one step of one robot by candidate, and how far the states are from those of llvm."""
    robot = modelgen.load("cartpole", directory=artifact.SHIPPED)
    random = np.random.default_rng(0)
    x = (random.uniform(-0.3, 0.3, (size, 4)) * np.asarray(robot.state_limits)).astype(np.float32)
    u = random.uniform(-3, 3, (steps, size, 1)).astype(np.float32)
    seconds = 1.0 / robot.metadata.task.control_rate
    candidates = {
        "llvm": in_python(load("llvm"), seconds),
        "torch": in_python(load("torch"), seconds),
        "jax": in_jax(load("jax"), seconds),
    }
    arrays = {"torch": (torch.from_numpy(x), torch.from_numpy(u))}
    if (made := mjx(seconds)) is not None:
        candidates["mjx"] = made
    ends = {name: np.asarray(take(*arrays.get(name, (x, u)))) for name, take in candidates.items()}  # and compile
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, take in candidates.items():
            started = time.perf_counter()
            np.asarray(take(*arrays.get(name, (x, u))))
            times[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "robots": size,
        "candidates": {
            name: {
                "ns_per_step": round(1e9 * median / steps / size, 1),
                "ratio_to_llvm": round(median / medians["llvm"], 2),
                "largest_difference": float(np.abs(ends[name] - ends["llvm"]).max()),
            }
            for name, median in medians.items()
        },
    }


def load(backend: str) -> CompiledRobot:
    return modelgen.load("cartpole", backend=backend, dtype="float32", directory=artifact.SHIPPED)


def step(robot: CompiledRobot, x: Any, u: Any, seconds: float) -> Any:
    """One Runge-Kutta step, written once for NumPy, Torch and JAX."""
    first = robot.dynamics(x, u)
    second = robot.dynamics(x + 0.5 * seconds * first, u)
    third = robot.dynamics(x + 0.5 * seconds * second, u)
    fourth = robot.dynamics(x + seconds * third, u)
    return x + seconds / 6 * (first + 2 * second + 2 * third + fourth)


def in_python(robot: CompiledRobot, seconds: float) -> Steps:
    def take(x: Any, u: Any) -> Any:
        for inputs in u:
            x = step(robot, x, inputs, seconds)
        return x

    return take


def in_jax(robot: CompiledRobot, seconds: float) -> Steps:
    def take(x: Any, u: Any) -> Any:
        return jax.lax.scan(lambda x, inputs: (step(robot, x, inputs, seconds), None), x, u)[0]

    return jax.jit(take)  # type: ignore[no-any-return]


def mjx(seconds: float) -> Steps | None:
    """MuJoCo's own step of the shipped MJCF file, without contacts; None where MJX is not installed."""
    try:
        import mujoco
        from mujoco import mjx
    except ImportError:
        return None
    model = mujoco.MjModel.from_xml_path(str(ASSETS / "cartpole.xml"))
    model.opt.timestep, model.opt.integrator = seconds, mujoco.mjtIntegrator.mjINT_RK4
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    on_device = mjx.put_model(model)
    empty = mjx.make_data(on_device)

    def advance(data: Any, inputs: Any) -> tuple[Any, None]:
        return jax.vmap(lambda one, u: mjx.step(on_device, one.replace(ctrl=u)))(data, inputs), None

    def take(x: Any, u: Any) -> Any:
        data = jax.vmap(lambda row: empty.replace(qpos=row[:2], qvel=row[2:]))(x)
        data = jax.lax.scan(advance, data, u)[0]
        return jax.numpy.concatenate([data.qpos, data.qvel], 1)

    return jax.jit(take)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
