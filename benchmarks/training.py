"""Training on the CPU and on a GPU: the policies, seconds, memory, share of the product bound, and what failed.

    python benchmarks/training.py    # pendulum, cart-pole and planar quadrotor
    python benchmarks/training.py --robots pendulum --devices cpu --preset paper --iterations 3

Each robot is trained once a device with the same seed, and both policies are evaluated on the CPU from the same starts.
`networks.py` has the product bound.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from machine import median_seconds, peak_rss_mb
from networks import WEIGHTS, evaluations, product_bound_us

from solver.fvi import targets
from solver.game import Game
from solver.game.adversaries import make_adversaries
from solver.plants.outcome import rollouts, sample_starts, summary
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.metrics import read_metrics
from solver.streams import EVALUATION_SEED
from solver.training import lifecycle as training
from solver.training.schedule import Schedule
from solver.training.settings import PRESETS, Settings
from solver.training.solution import make_ensemble
from solver.value.frozen import FrozenValue

ROBOTS = ("pendulum", "cartpole", "planar_quadrotor")


def main() -> None:
    """Parse, train, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS))
    parser.add_argument("--devices", nargs="+", default=["cpu", "cuda"], choices=["cpu", "cuda"])
    parser.add_argument("--algorithm", default="cfvi", choices=["rfvi", "cfvi"])
    parser.add_argument("--preset", default="fast", choices=[*PRESETS])
    parser.add_argument("--iterations", type=int, help="by default the preset's")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    changes: dict[str, Any] = {"preset": options.preset, "threads": options.threads}
    changes |= {"iterations": options.iterations} if options.iterations else {}
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
            print(f"{robot} on {device}: {about.get('failed', 'trained')}", file=sys.stderr, flush=True)
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
        problem, act, _ = training.load_rollout_policy(folder)
        found = summary(rollouts(problem, act, sample_starts(problem, run.settings.episodes, EVALUATION_SEED)))
    problem = Problem(load_robot(name, device, None), device, "euler" if run.settings.authors else "rk4")
    settings, steps = run.settings, [row["steps"] for row in rows]
    made, fits = ([row[key] for row in rows] for key in ("seconds_targets", "seconds_fit"))
    per_step = 1e6 * statistics.median(t / (n * settings.states) for t, n in zip(made, steps, strict=True))
    per_sample = 1e6 * statistics.median(fits) / (settings.states * settings.epochs)
    bound = product_bound_us(make_ensemble(load_robot(name, "cpu", None), settings), settings, device)
    return {
        "iterations": len(rows),
        "seconds": sum(made) + sum(fits),
        "us_per_state_step": per_step,
        "us_per_sample_gradient": per_sample,
        "product_bound_us": bound,
        "target_times_bound": per_step / (evaluations(problem, settings) * bound),
        "fit_times_bound": per_sample / (WEIGHTS * bound),
        "return_mean": found["return_mean"],
        "success_rate": found["success_rate"],
        "peak_mb": torch.cuda.max_memory_allocated() / 1e6 if device == "cuda" else peak_rss_mb(),
        "targets_ms": targets_ms(problem, settings),  # last: it takes memory of its own
    }


def targets_ms(problem: Problem, settings: Settings) -> dict[str, float]:
    """Of all states, with the first weights: as CUDA graphs and, on a GPU, with a launch for each operation too."""
    x = problem.sample_domain(settings.states, torch.Generator(device=problem.device).manual_seed(0))
    value = FrozenValue(make_ensemble(problem.robot, settings).to(problem.device))
    game = Game(problem, make_adversaries(settings.adversaries), settings.limit_cost)

    lookahead = next(iter(Schedule(settings))).lookahead

    def once() -> None:
        targets.chunk_targets(game, value, x, lookahead, 0)
        if x.device.type == "cuda":
            torch.cuda.synchronize()

    found = {"replayed": 1e3 * median_seconds(once, 3)}
    if x.device.type == "cuda":
        with mock.patch.object(targets, "Replayed", lambda function, _: function):
            found["launched"] = 1e3 * median_seconds(once, 3)
    return found


if __name__ == "__main__":
    main()
