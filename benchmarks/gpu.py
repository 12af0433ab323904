"""Training on a GPU beside the CPU: the policies, seconds, memory, share of the product bound, and what failed.

    python benchmarks/gpu.py --json                                  # pendulum, cart-pole and planar quadrotor
    python benchmarks/gpu.py --robots pendulum --devices cpu --iterations 4 --json

Each robot is trained once a device with the same seed, and both policies are evaluated on the CPU from the same starts.
The product bound is the time of the matrix products alone, at the rate that products of the networks' size reach on the
device in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from machine import median_seconds, peak_rss_mb, value_flops

from solver.fvi import training
from solver.fvi.initial_value import make_ensemble
from solver.fvi.settings import Settings
from solver.plants.outcome import summary
from solver.plants.rollouts import rollouts, sample_starts
from solver.problem.robots import load_robot
from solver.runs.metrics import read_metrics
from solver.streams import EVALUATION_SEED

ROBOTS = ("pendulum", "cartpole", "planar_quadrotor")
PRODUCTS = 100  # in one measurement of the rate


def main() -> None:
    """Parse, train, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS))
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"], choices=["cpu", "cuda"])
    parser.add_argument("--algorithm", default="cfvi", choices=["rfvi", "cfvi"])
    parser.add_argument("--iterations", type=int, help="by default the preset's")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    changes = {"threads": options.threads} | ({"iterations": options.iterations} if options.iterations else {})
    report: dict[str, Any] = {"torch": torch.__version__, "threads": options.threads, "runs": []}
    report["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    for robot in options.robots:
        for device in options.devices:
            about = {"robot": robot, "device": device, "algorithm": options.algorithm}
            try:
                about |= trained(robot, options.algorithm, device, changes)
            except Exception as error:
                about["failed"] = f"{type(error).__name__}: {error}"
            report["runs"].append(about)
            if not options.json:
                print(", ".join(f"{name} {value}" for name, value in about.items()), flush=True)
    if options.json:
        print(json.dumps(report, indent=1))


def trained(name: str, algorithm: str, device: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Train, and say what it took and what the policy is worth."""
    run = training.describe(load_robot(name, device, None), None, algorithm=algorithm, device=device, **changes)
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "run"
        training.start(run, folder, lambda _: None)
        rows = read_metrics(folder)
        problem, act, _ = training.load_controller(folder)
        found = summary(rollouts(problem, act, sample_starts(problem, run.settings.episodes, EVALUATION_SEED)))
    settings, steps = run.settings, [row["steps"] for row in rows]
    targets, fits = ([row[key] for row in rows] for key in ("seconds_targets", "seconds_fit"))
    per_step = statistics.median(t / (n * settings.states) for t, n in zip(targets, steps, strict=True))
    per_sample = statistics.median(fits) / (settings.states * settings.epochs)
    flops = value_flops(make_ensemble(load_robot(name, "cpu", None), settings))
    bound = flops / (rate(settings, device) * (settings.threads if device == "cpu" else 1))
    evaluations = 1 + (len(problem.input_limits) if settings.reaction_periods else 0)  # of V, in a step of a target
    return {
        "iterations": len(rows),
        "seconds": sum(targets) + sum(fits),
        "us_per_state_step": 1e6 * per_step,
        "us_per_sample_gradient": 1e6 * per_sample,
        "product_bound_us": 1e6 * bound,
        "target_times_bound": per_step / (evaluations * bound),
        "fit_times_bound": per_sample / (1.5 * bound),
        "return_mean": found["return_mean"],
        "success_rate": found["success_rate"],
        "peak_mb": torch.cuda.max_memory_allocated() / 1e6 if device == "cuda" else peak_rss_mb(),
    }


def rate(settings: Settings, device: str) -> float:
    """FLOP/s of a product of a minibatch with a hidden layer, on one thread of a CPU."""
    a = torch.rand(settings.minibatch, settings.width, device=device)
    b = torch.rand(settings.width, settings.width, device=device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def products() -> None:
        for _ in range(PRODUCTS):
            torch.mm(a, b)
        if device == "cuda":
            torch.cuda.synchronize()

    seconds = median_seconds(products, 5) / PRODUCTS
    torch.set_num_threads(threads)
    return 2.0 * settings.minibatch * settings.width**2 / seconds


if __name__ == "__main__":
    main()
