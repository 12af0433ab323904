"""Share of the wrong robots on which a policy succeeds: one picture of all shipped robots.

    python benchmarks/cells.py measure [POLICY ...] [--episodes 50]   # rows of docs/results/cells.json
    python benchmarks/cells.py figure                                 # docs/pictures/cells.png and a table

A cell is a robot one of whose parameters is 0.8 or 1.2 times its nominal value: every parameter with bounds. A policy
holds a cell if 95 % of the rollouts succeed. `measure` evaluates shipped policies, by default all that have no rows,
and writes each as soon as it is finished. `figure` adds the tables that `benchmarks/family.py --points each=0.8,1.2`
printed, as rows of docs/results/data/cells.csv: families (told, and estimated from positions), and shipped policies
without rows in cells.json.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

import solver
from solver.problem.parameters import Relative
from solver.runs.kinds import load_rollout_policy
from solver.runs.shipped import names

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
ROWS, FAMILIES = ROOT / "docs/results/cells.json", ROOT / "docs/results/data/cells.csv"
PICTURE = ROOT / "docs/pictures/cells.png"
FACTORS, HELD = (0.8, 1.2), 95.0  # of a nominal value; success in % that holds a cell
METHODS = ("cFVI", "rFVI", "told", "estimated")
Shares = dict[str, dict[str, list[float]]]  # success in % of every cell, by robot and method


def measured(name: str, episodes: int) -> dict[str, list[float]]:
    """Mean return and success in % of a shipped policy, by parameter and factor."""
    problem = load_rollout_policy(name).problem
    bounded = [one.name for one in problem.robot.metadata.parameters if one.lower < one.upper]
    found = {}
    for parameter in bounded:
        for factor in FACTORS:
            change = {parameter: Relative(factor)}
            statistics = solver.evaluate(name, parameters=change, episodes=episodes).statistics
            row = [round(statistics["return_mean"], 3), round(100 * statistics["success_rate"], 1)]
            found[f"{parameter} {factor:g}"] = row
    return found


def read() -> Shares:
    """Success of every cell, by robot and method."""
    shares: Shares = {}
    for name, cells in json.loads(ROWS.read_text(encoding="utf-8"))["policies"].items():
        robot, method = name.rsplit("-", 1)
        column = next(each for each in METHODS if each.lower() == method)
        shares.setdefault(robot, {})[column] = [success for _, success in cells.values()]
    tables: Shares = {}
    with FAMILIES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of_robot = tables.setdefault(row["robot"], {})
            of_robot.setdefault(row["policy"], []).append(float(row["success_percent"]))
    return {robot: tables.get(robot, {}) | shares.get(robot, {}) for robot in sorted({*tables, *shares})}


def held(cells: list[float]) -> float:
    """Share of cells that are held, in %."""
    return 100 * float(np.mean([success >= HELD for success in cells]))


def picture(shares: Shares) -> None:
    """A square for every robot and method: green if all cells are held."""
    values = np.array([[held(of[m]) if m in of else np.nan for m in METHODS] for of in shares.values()])
    figure, axes = plt.subplots(figsize=(6.2, 0.8 + 0.32 * len(shares)), layout="constrained")
    axes.imshow(values, cmap="RdYlGn", vmin=0, vmax=100, aspect="auto", alpha=0.6)
    for (row, column), value in np.ndenumerate(values):
        text = "–" if np.isnan(value) else f"{value:.0f} %"
        axes.text(column, row, text, ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(METHODS)), METHODS)
    axes.set_yticks(range(len(shares)), [f"{robot} ({max(map(len, of.values()))})" for robot, of in shares.items()])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    figure.supxlabel(f"Share of the wrong robots (number) on which\n{HELD:.0f} % of the rollouts succeed", fontsize=10)
    figure.savefig(PICTURE, dpi=130)


def table(shares: Shares) -> str:
    """Robots with a cell that is not held, as a table in Markdown."""
    lines = ["| robot | cells | " + " | ".join(METHODS) + " |", "|---|---" + "|---" * len(METHODS) + "|"]
    for robot, of in shares.items():
        cells = [f"{held(of[m]):.0f} %" if m in of else "" for m in METHODS]
        if {*cells} <= {"", "100 %"}:
            continue
        lines.append(f"| {robot} | {max(map(len, of.values()))} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure policies, or draw the picture and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "figure"))
    parser.add_argument("policies", nargs="*", help="shipped policies; by default all that have no rows")
    parser.add_argument("--episodes", type=int, default=50)
    options = parser.parse_args()
    if options.what == "measure":
        content = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {"policies": {}}
        for name in options.policies or [name for name in names() if name not in content["policies"]]:
            content["policies"][name] = measured(name, options.episodes)
            rows = [f"{json.dumps(each)}: {json.dumps(cells)}" for each, cells in sorted(content["policies"].items())]
            ROWS.write_text('{"policies": {\n' + ",\n".join(rows) + "\n}}\n", encoding="utf-8")
            print(name, f"{held([success for _, success in content['policies'][name].values()]):.0f} %", flush=True)
        return
    picture(shares := read())
    print(table(shares))


if __name__ == "__main__":
    main()
