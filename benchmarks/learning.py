"""Train every algorithm over several seeds and evaluate each policy at changed parameters: the README's table.

    python benchmarks/learning.py --robot pendulum --seeds 0 1 2 --out runs/table
    python benchmarks/learning.py --robot pendulum --seeds 0 1 2 --out runs/table --json

Runs one training at a time, as `solver train` would from a shell; a run that is already in the folder is evaluated
only. Returns are over 100 starts; +- is 1.96 standard deviations, pooled over seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import gemm_gflops_fp32

SOLVER = "import sys; from solver.cli import main; sys.exit(main())"


def main() -> None:
    """Parse, train what is missing, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", default="pendulum")
    parser.add_argument("--algorithms", nargs="+", default=["cfvi", "rfvi"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--changes", nargs="+", default=["mass=1x", "mass=0.5x", "mass=1.3x", "mass=1.5x", "mass=2x"])
    parser.add_argument("--out", type=Path, default=Path("runs/table"))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a Markdown table")
    options = parser.parse_args()
    trainings, evaluations = [], []
    for algorithm in options.algorithms:
        for seed in options.seeds:
            folder = options.out / f"{options.robot}-{algorithm}-seed{seed}"
            trainings.append({"algorithm": algorithm, "seed": seed, **train(options.robot, algorithm, seed, folder)})
            for change in options.changes:
                result = json.loads(solver("evaluate", str(folder), "--set", change, "--json"))
                evaluations.append({"algorithm": algorithm, "seed": seed, "change": change, **result})
    report = {"gemm_gflops_fp32": gemm_gflops_fp32(), "trainings": trainings, "evaluations": evaluations}
    print(json.dumps(report, indent=1) if options.json else table(report))


def train(robot: str, algorithm: str, seed: int, folder: Path) -> dict[str, float]:
    """Train one run unless it is there; wall seconds and peak memory of the whole process."""
    record = folder / "training.json"
    if not record.exists():
        started = time.perf_counter()
        solver("train", robot, "--algorithm", algorithm, "--seed", str(seed), "--out", str(folder), "--overwrite")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        record.write_text(json.dumps({"seconds": time.perf_counter() - started, "peak_rss_mb": peak}))
    measured: dict[str, float] = json.loads(record.read_text())
    return measured


def solver(*arguments: str) -> str:
    """What `solver ARGUMENTS` prints."""
    command = [sys.executable, "-c", SOLVER, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def table(report: dict[str, list[dict[str, float]]]) -> str:
    """Markdown: a row a change, a column an algorithm; every seed's mean return is in brackets."""
    algorithms = list(dict.fromkeys(str(row["algorithm"]) for row in report["evaluations"]))
    lines = ["| plant | " + " | ".join(algorithms) + " |", "|---|" + "---|" * len(algorithms)]
    for change in dict.fromkeys(str(row["change"]) for row in report["evaluations"]):
        cells = []
        for algorithm in algorithms:
            rows = [r for r in report["evaluations"] if r["algorithm"] == algorithm and r["change"] == change]
            means = [r["return_mean"] for r in rows]
            within = statistics.mean((r["return_spread"] / 1.96) ** 2 for r in rows)
            spread = 1.96 * (within + statistics.pvariance(means)) ** 0.5
            success = 100.0 * statistics.mean(r["success_rate"] for r in rows)
            each = ", ".join(f"{mean:.2f}" for mean in means)
            cells.append(f"{statistics.mean(means):.2f} ± {spread:.2f} ({each}), {success:.0f} %")
        lines.append(f"| {change} | " + " | ".join(cells) + " |")
    seconds = [row["seconds"] for row in report["trainings"]]
    memory = max(row["peak_rss_mb"] for row in report["trainings"])
    lines.append(f"\ntraining: {min(seconds):.0f} to {max(seconds):.0f} s each, at most {memory:.0f} MB; ")
    return "\n".join(lines) + f"machine: {report['gemm_gflops_fp32']:.0f} GFLOP/s in fp32 products"


if __name__ == "__main__":
    main()
