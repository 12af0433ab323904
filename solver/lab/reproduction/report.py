"""Report of an experiment in Markdown with figures: our numbers, the paper's numbers, and the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from solver.lab.reproduction import paper_results, robustness, table1
from solver.lab.reproduction.experiments import Plan
from solver.lab.reproduction.figures import ablation_figure, learning_figure, value_figure
from solver.lab.reproduction.results_page import NONE, Page, head
from solver.lab.reproduction.runs import Runs
from solver.lab.reproduction.table1 import pair
from solver.runs.metrics import read_metrics


def write_report(plan: Plan, runs: Runs, out: Path, command: str, announce: Callable[[str], None]) -> list[Path]:
    """Evaluate the finished runs and write text and figures to `out`. Returns their paths.

    Raises SolverError if a JSON file of table 1 or of robustness there has another content.
    """
    page = Page(plan, out)
    head(page, runs, command, _known(page))
    WRITERS[plan.experiment](page, runs, announce)
    return page.write()


def _known(page: Page) -> set[tuple[str, str, int]]:
    """Method, robot and seed of runs that an earlier call measured."""
    if page.plan.experiment == "table1":
        return table1.trained(table1.known_rows(page))
    return robustness.trained(page) if page.plan.experiment == "fig-robustness" else set()


def _final_returns(page: Page, runs: Runs) -> None:
    """Append a table of the last evaluations: mean, worst and best seed, success."""
    rows = []
    for robot in page.plan.robots:
        for method in page.plan.methods:
            keys = ("return_mean", "success_rate")
            logs = [read_metrics(folder, keys) for folder in runs.of(method.name, robot).values()]
            last = [rows[-1] for rows in logs if rows]
            printed = paper_results.returns(method.name, robot)
            paper = pair(*printed[:2]) if printed else NONE
            cells = [NONE] * 3
            if last:
                means = [row["return_mean"] for row in last]
                success = np.mean([row["success_rate"] for row in last])
                cells = [f"{np.mean(means):.1f}", f"{min(means):.1f} … {max(means):.1f}", f"{100 * success:.1f} %"]
            rows.append([f"{robot}, {method.name}", *cells, paper])
    page.table(["", "return after the last iteration", "worst and best seed", "success", "paper's return"], rows)


def _learning(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say("Mean return over the seeds at every evaluation. The band is from the worst to the best seed.")
    page.show(learning_figure(page.plan, runs), "", "Learning curves")
    _final_returns(page, runs)


def _ablation(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say(
        "A share multiplies all four radii of the preset. Share 0 is cFVI. Ramped up: the radii grow over some "
        "iterations, as in the preset. At once: the radii are full from the first iteration, as in the paper. Spread "
        "states: states from rollouts plus Gaussian noise."
    )
    page.show(ablation_figure(page.plan, runs), "", "Learning curves for several admissible sets")
    _final_returns(page, runs)


def _value(page: Page, runs: Runs, _: Callable[[str], None]) -> None:
    page.say(
        "Value function and policy over one joint and its rate. Other states are at the target. Lines are rollouts."
    )
    for robot in page.plan.robots:
        figure = value_figure(page.plan, runs, robot)
        if figure is not None:
            page.show(figure, f"-{robot}", f"{robot}: value function and policy")


WRITERS = {
    "table1": table1.write_table1,
    "fig-value": _value,
    "fig-learning": _learning,
    "fig-robustness": robustness.write_robustness,
    "fig-ablation": _ablation,
}
