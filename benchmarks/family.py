"""Success and mean return of policies over a grid of one or two parameters, which families of policies are told.

    python benchmarks/family.py RUN [RUN ...] --points mass=0.5,0.75,1 length=0.5,1,1.5

Values are factors of the nominal ones. A row is a point of the grid, a pair of columns a run.
"""

from __future__ import annotations

import argparse
from itertools import product

import solver
from solver.problem.parameters import Relative
from solver.runs.kinds import told_among


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--points", nargs="+", required=True, metavar="NAME=F,F,...")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--blind", action="store_true", help="tell no policy the parameters")
    options = parser.parse_args()
    names, factors = zip(*(word.split("=") for word in options.points), strict=True)
    grid = list(product(*([float(number) for number in entry.split(",")] for entry in factors)))
    print("| " + " | ".join([*names, *options.runs]) + " |\n|" + "---|" * (len(names) + len(options.runs)))
    totals = {run: [0.0, 0.0] for run in options.runs}
    for point in grid:
        cells = [f"{factor:g}" for factor in point]
        for run in options.runs:
            changes = {name: Relative(factor) for name, factor in zip(names, point, strict=True)}
            blind = options.blind or not told_among(run, names)
            found = solver.evaluate(run, parameters=changes, episodes=options.episodes, blind=blind).statistics
            totals[run][0] += found["success_rate"] / len(grid)
            totals[run][1] += found["return_mean"] / len(grid)
            cells.append(f"{found['return_mean']:.2f}, {100 * found['success_rate']:.0f} %")
        print("| " + " | ".join(cells) + " |", flush=True)
    means = [f"{mean:.2f}, {100 * success:.1f} %" for success, mean in totals.values()]
    print("| " + " | ".join(["mean", *[""] * (len(names) - 1), *means]) + " |")


if __name__ == "__main__":
    main()
