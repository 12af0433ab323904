"""Share of the wrong robots on which a policy succeeds: one picture of all robots, and a table.

    python benchmarks/cells.py ROBOT-cfvi ROBOT-rfvi RUN     # docs/results/data/cells.csv: rows of one robot anew
    python benchmarks/cells.py                               # docs/pictures/cells.png

A cell is a robot one of whose parameters is 0.8 or 1.2 times its nominal value: every parameter with bounds. A policy
holds a cell if 95 % of the rollouts succeed. A family RUN is told the nearest parameters of its ranges, or estimates
them from positions. All rollouts of a robot last as long as those of its slowest run.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from solver.evaluation.robustness import Trial, measure
from solver.evaluation.statistics import ParameterRange
from solver.problem.parameters import TOLD
from solver.runs.kinds import description_of, load_rollout_policy

ROOT = Path(__file__).parents[1]
ROWS, PICTURE = ROOT / "docs/results/data/cells.csv", ROOT / "docs/pictures/cells.png"
HELD = 95.0  # success in % that holds a cell
METHODS = ("cFVI", "rFVI", "told", "estimated")
ERRORS, EPISODES = (0.8, 1.2, 2), 50  # first and last multiple and points; rollouts in a cell
COLUMNS = ("robot", "policy", "parameter", "times_nominal", "return_mean", "success_percent")
Shares = dict[str, dict[str, list[float]]]  # success in % of every cell, by robot and method


def measured(runs: list[str]) -> list[dict[str, str]]:
    """Rows of the runs of one robot."""
    problems = [load_rollout_policy(run).problem for run in runs]
    metadata, rows = problems[0].robot.metadata, []
    names = [p.name for p in metadata.parameters if p.lower < p.upper and p.name not in metadata.references and p.value]
    usual = Trial(episodes=EPISODES, seconds=max(problem.horizon for problem in problems))
    for run in runs:
        about = description_of(run)
        trials = {{"cfvi": "cFVI", "rfvi": "rFVI"}[about.settings.algorithm]: usual}
        if about.told_names:
            trials = {"told": usual, "estimated": replace(usual, observer=True, estimate=(TOLD,))}
        for policy, trial in trials.items():
            for name in names:
                (group,) = measure([Path(run)], [ParameterRange(name, *ERRORS, added=False)], trial).groups
                mean, success = (group.statistics[each].value for each in ("return_mean", "success_rate"))
                for factor, *numbers in zip(ERRORS[:2], mean, success, strict=True):
                    values = f"{factor:g}", f"{numbers[0]:.2f}", f"{100 * numbers[1]:g}"
                    rows.append(dict(zip(COLUMNS, (metadata.name, policy, name, *values), strict=True)))
    return rows


def keep(rows: list[dict[str, str]]) -> None:
    """Replace the rows of the same robot and policies."""
    replaced = {(row["robot"], row["policy"]) for row in rows}
    with ROWS.open(encoding="utf-8", newline="") as file:
        before = [row for row in csv.DictReader(file) if (row["robot"], row["policy"]) not in replaced]
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted([*before, *rows], key=lambda row: (row["robot"], METHODS.index(row["policy"]))))


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
    if sys.argv[1:]:
        keep(measured(sys.argv[1:]))
    picture(shares := read())
    print(table(shares))
