"""Success and mean return of policies over a grid of one or two parameters, which families of policies are told.

    python benchmarks/family.py RUN [RUN ...] --points mass=0.5,0.75,1 length=0.5,1,1.5 [--ways told estimated blind]

Values are factors of the nominal ones. A row is a point of the grid. A run that is told parameters has one column for
each way: it is told the true values, the estimates of an observer that measures positions, or the nominal values.
Another run has one column. All rollouts last as long as those of the first run.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import solver
from solver.plants import PLANTS
from solver.problem.parameters import TOLD, Relative
from solver.runs.kinds import description_of, load_rollout_policy

WAYS: dict[str, dict[str, Any]] = {
    "told": {},
    "estimated": {"observer": True, "estimate": [TOLD]},
    "blind": {"blind": True},
}


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--points", nargs="+", required=True, metavar="NAME=F,F,...")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["told"], help="of runs that are told parameters")
    parser.add_argument("--plant", choices=PLANTS, default="nominal", help="with an observer for all if harsh")
    parser.add_argument("--seconds", type=float, help="of a rollout, in place of the horizon of the first run")
    options = parser.parse_args()
    first = load_rollout_policy(options.runs[0]).problem
    names, factors = zip(*(word.split("=") for word in options.points), strict=True)
    grid = list(product(*([float(number) for number in entry.split(",")] for entry in factors)))
    columns = [
        (run, way) for run in options.runs for way in (options.ways if description_of(run).told_among(names) else [""])
    ]
    heads = [f"{run} {way}" if description_of(run).told_among(names) else run for run, way in columns]
    print("| " + " | ".join([*names, *heads]) + " |\n|" + "---|" * (len(names) + len(columns)))
    seconds = options.seconds or first.horizon
    points = [dict(zip(names, point, strict=True)) for point in grid]
    totals = {column: [0.0, 0.0] for column in columns}
    for point in points:
        cells = [f"{factor:g}" for factor in point.values()]
        for run, way in columns:
            changes = {name: Relative(factor) for name, factor in point.items()}
            how = {"observer": options.plant == "harsh", **WAYS.get(way, {}), "seconds": seconds}
            tested = solver.evaluate(run, parameters=changes, plant=options.plant, episodes=options.episodes, **how)
            found = tested.statistics
            totals[run, way][0] += found["success_rate"] / len(points)
            totals[run, way][1] += found["return_mean"] / len(points)
            cells.append(f"{found['return_mean']:.2f}, {100 * found['success_rate']:.0f} %")
        print("| " + " | ".join(cells) + " |", flush=True)
    means = [f"{mean:.2f}, {100 * success:.1f} %" for success, mean in totals.values()]
    print("| " + " | ".join(["mean", *[""] * (len(names) - 1), *means]) + " |")


if __name__ == "__main__":
    main()
