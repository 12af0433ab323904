"""What it costs to make rollouts as jobs of other processes: many short ones, and a certificate on one and more.

python benchmarks/jobs.py --json
python benchmarks/jobs.py --certificate cartpole-rfvi --failure-probability 0.001 --json
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from solver.certification import certify
from solver.jobs.engines import PolicyReference, policy_reference, results, workers
from solver.plants.outcome import rollouts, sample_starts
from solver.streams import serial_torch


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--policy", default="pendulum-rfvi")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--certificate", help="certify this run instead")
    parser.add_argument("--failure-probability", type=float, default=0.01)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    report = _certificate(options) if options.certificate else _overhead(options)
    print(json.dumps(report, indent=1) if options.json else report)


def short(policy: PolicyReference, seed: int) -> float:
    """A job of 64 rollouts of 0.2 s; returns its own seconds."""
    begun = time.perf_counter()
    with serial_torch():
        problem, act, _ = policy.load()
        rollouts(problem, act, sample_starts(problem, 64, seed), seconds=0.2)
    return time.perf_counter() - begun


def _overhead(options: argparse.Namespace) -> dict[str, float]:
    """The share of the processes' time that no job had, once every process has loaded the policy."""
    policy = policy_reference(options.policy)
    with workers(options.processes) as executor:
        begun = time.perf_counter()
        list(results([executor.submit(short, policy, 0) for _ in range(4 * options.processes)]))
        started = time.perf_counter() - begun
        begun = time.perf_counter()
        own = list(results([executor.submit(short, policy, seed) for seed in range(options.jobs)]))
        seconds = time.perf_counter() - begun
    return {
        "jobs": options.jobs,
        "processes": options.processes,
        "seconds": seconds,
        "milliseconds_of_a_job": 1e3 * float(np.median(own)),
        "overhead_percent": 100.0 * (1.0 - sum(own) / (options.processes * seconds)),
        "seconds_to_start": started,
    }


def _certificate(options: argparse.Namespace) -> dict[str, float]:
    """Seconds of a whole certificate in this process, and in several."""
    report: dict[str, float] = {"failure_probability": options.failure_probability}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.toml"
        file.write_text(f"failure_probability = {options.failure_probability}\nconfidence = 0.999999\n")
        for processes in (1, options.processes):
            begun = time.perf_counter()
            with workers(processes) as executor:
                found = certify(options.certificate, file, executor=executor)
            report[f"seconds_on_{processes}"] = time.perf_counter() - begun
            report["episodes"] = found.bound.episodes
    return report


if __name__ == "__main__":
    main()
