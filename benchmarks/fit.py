"""Cost of fitting the value function, per sample and gradient step of the whole ensemble.

    python benchmarks/fit.py --robot pendulum --json
    python benchmarks/fit.py --robot cartpole --json

The `paper` preset's network and minibatch by default.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import torch
from machine import gemm_gflops_fp32, median_seconds, peak_rss_mb
from networks import WEIGHTS, product_bound_us

from solver.fvi.fit import FitPlan, fit_ensemble
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.training.session import workers_of
from solver.training.settings import PRESETS, make_settings
from solver.training.solution import make_ensemble, make_optimiser


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--preset", default="paper", choices=[*PRESETS])
    parser.add_argument("--soap", action="store_true", help="in place of the preset's optimiser")
    parser.add_argument("--states", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    robot = load_robot(options.robot, "cpu", None)
    settings = make_settings(options.preset, robot, threads=options.threads)
    settings = replace(settings, authors=settings.authors and not options.soap)
    ensemble = make_ensemble(robot, settings)
    optimisers = [make_optimiser(member, settings) for member in ensemble.factors]
    x = Problem(robot).sample_domain(options.states, torch.Generator().manual_seed(0))
    rates = settings.epochs * (1e-5,)
    target, fit = -(x * x).sum(1), FitPlan(settings.minibatch, rates)
    with workers_of(settings) as workers:
        seconds = median_seconds(lambda: fit_ensemble(ensemble, optimisers, x, target, fit, 0, workers), options.rounds)
    per_sample = 1e6 * seconds / options.states / settings.epochs
    report = {
        "robot": options.robot,
        "preset": options.preset,
        "optimiser": "amsgrad" if settings.authors else "soap",
        "minibatch": settings.minibatch,
        "threads": options.threads,
        "us_per_sample_gradient": per_sample,
        "times_product_bound": per_sample / (WEIGHTS * product_bound_us(ensemble, settings)),
        "peak_rss_mb": peak_rss_mb(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
    }
    print(json.dumps(report, indent=1) if options.json else _line(report))


def _line(report: dict[str, object]) -> str:
    return (
        f"{report['robot']} ({report['preset']}): {report['us_per_sample_gradient']:.2f} us per sample and gradient "
        f"step, {report['times_product_bound']:.1f} times the product bound, {report['peak_rss_mb']:.0f} MB, "
        f"{report['gemm_gflops_fp32']:.0f} GFLOP/s in fp32 products"
    )


if __name__ == "__main__":
    main()
