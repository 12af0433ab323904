"""Cost of a value target per state and n-step: one value, its gradient, all four adversaries, one step.

    python benchmarks/value_target.py --robot pendulum --json
    python benchmarks/value_target.py --robot cartpole --json

rFVI with the `paper` preset's network and trace by default.
"""

from __future__ import annotations

import argparse
import json

import torch
from machine import gemm_gflops_fp32, median_seconds, peak_rss_mb
from networks import evaluations, product_bound_us

from solver.fvi.targets import value_targets
from solver.game.adversaries import make_adversaries
from solver.game.game import Game
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.training.schedule import Schedule
from solver.training.session import workers_of
from solver.training.settings import PRESETS, make_settings
from solver.training.solution import make_ensemble
from solver.value.frozen import FrozenValue


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--preset", default="paper", choices=[*PRESETS])
    parser.add_argument("--algorithm", default="rfvi", choices=["rfvi", "cfvi"])
    parser.add_argument("--states", type=int, default=16_384)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    robot = load_robot(options.robot, "cpu", None)
    settings = make_settings(options.preset, robot, algorithm=options.algorithm, threads=options.threads)
    problem = Problem(robot)
    ensemble = make_ensemble(robot, settings)
    game, value = Game(problem, make_adversaries(settings.adversaries)), FrozenValue(ensemble)
    x = problem.sample_domain(options.states, torch.Generator().manual_seed(0))
    *_, last = Schedule(settings)
    trace = last.lookahead
    with workers_of(settings) as workers:
        seconds = median_seconds(
            lambda: value_targets(game, value, x, trace, 0, workers),
            options.rounds,
        )
    per_step = 1e6 * seconds / (options.states * trace.steps)
    bound = evaluations(problem, settings) * product_bound_us(ensemble, settings)
    report = {
        "robot": options.robot,
        "preset": options.preset,
        "algorithm": options.algorithm,
        "states": options.states,
        "steps": trace.steps,
        "threads": options.threads,
        "us_per_state_step": per_step,
        "times_product_bound": per_step / bound,
        "peak_rss_mb": peak_rss_mb(),
        "gemm_gflops_fp32": gemm_gflops_fp32(),
    }
    print(json.dumps(report, indent=1) if options.json else _line(report))


def _line(report: dict[str, object]) -> str:
    return (
        f"{report['robot']} {report['algorithm']} ({report['preset']}): {report['us_per_state_step']:.2f} us per state "
        f"and step, {report['times_product_bound']:.1f} times the product bound, {report['peak_rss_mb']:.0f} MB, "
        f"{report['gemm_gflops_fp32']:.0f} GFLOP/s in fp32 products"
    )


if __name__ == "__main__":
    main()
