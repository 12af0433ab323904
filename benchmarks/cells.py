"""Share of the wrong robots on which a policy succeeds: one picture of all robots, and a table.

    python benchmarks/family.py RUN --points each=0.8,1.2 --episodes 50 --csv docs/results/data/cells.csv
    python benchmarks/cells.py    # docs/pictures/cells.png

A cell is a robot one of whose parameters is 0.8 or 1.2 times its nominal value: every parameter with bounds. A policy
holds a cell if 95 % of the rollouts succeed. Families are told the parameters, or estimate them from positions.
"""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
ROWS, PICTURE = ROOT / "docs/results/data/cells.csv", ROOT / "docs/pictures/cells.png"
HELD = 95.0  # success in % that holds a cell
METHODS = ("cFVI", "rFVI", "told", "estimated")
Shares = dict[str, dict[str, list[float]]]  # success in % of every cell, by robot and method


def read() -> Shares:
    """Success of every cell, by robot and method."""
    shares: Shares = {}
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            of_robot = shares.setdefault(row["robot"], {})
            of_robot.setdefault(row["policy"], []).append(float(row["success_percent"]))
    return dict(sorted(shares.items()))


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


if __name__ == "__main__":
    picture(shares := read())
    print(table(shares))
