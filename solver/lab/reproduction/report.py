"""Report of an experiment in Markdown: our numbers, the paper's numbers, learning curves and value functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from modelgen.style import POLICIES, colour_map
from solver.evaluation.plots import DRAWN, coordinate, draw_value_and_policy
from solver.lab.reproduction import results_page, robustness, table1
from solver.lab.reproduction.by_run import Certificates, Gallery, PageByRun
from solver.lab.reproduction.experiments import Plan, PlannedRun
from solver.lab.reproduction.results_page import NONE, Page, head
from solver.lab.reproduction.runs import Runs
from solver.lab.reproduction.table1 import pair
from solver.plants.outcome import rollouts, sample_starts
from solver.runs.metrics import read_metrics
from solver.streams import EVALUATION_SEED
from solver.training.solution import load_solution

PRINTED = ("cFVI", "rFVI")  # methods whose returns in the paper are drawn as lines
ENTRY = 1.5  # width of a legend entry in inches


def value_figure(plan: Plan, runs: Runs, robot: str) -> Figure | None:
    """Rows of maps, one row a method, with one colour scale of V. None without a trained run."""
    trained = [(method.name, runs.of(method.name, robot)) for method in plan.methods]
    rows = [(name, load_solution(folders[plan.seeds[0]], plan.generated)) for name, folders in trained if folders]
    if not rows:
        return None
    columns = 1 + len(rows[0][1].problem.robot.metadata.inputs)
    figure = Figure(figsize=(5.2 * columns, 4.2 * len(rows)), layout="constrained")
    meshes = []
    for part, (name, solution) in zip(figure.subfigures(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
        problem = solution.problem
        starts = sample_starts(problem, DRAWN, EVALUATION_SEED)
        result = rollouts(problem, solution.controller(), starts)
        title = f"{robot}, {name}, seed {plan.seeds[0]}"
        meshes.append(draw_value_and_policy(part, solution, coordinate(problem, None), result, title))
    limits = [mesh.get_clim() for mesh in meshes]
    for mesh in meshes:
        mesh.set_clim(min(low for low, _ in limits), max(high for _, high in limits))
    return figure


def learning_figure(plan: Plan, runs: Runs) -> Figure:
    """Learning curves: one panel a robot, one curve with a band a method."""
    figure = Figure(figsize=(5.6 * len(plan.robots), 4.4), layout="constrained")
    panels = figure.subplots(1, len(plan.robots), squeeze=False)[0]
    for panel, robot in zip(panels, plan.robots, strict=True):
        for k, method in enumerate(plan.methods):
            curve(panel, runs.of(method.name, robot), POLICIES[k % len(POLICIES)], method.name)
        for name in PRINTED:
            printed = results_page.returns(name, robot)
            if printed:
                panel.axhline(
                    printed[0], color="0.4", lw=0.9, ls="--" if "rFVI" in name else ":", label=f"paper, {name}"
                )
        _label(panel, robot)
    panels[0].set_ylabel("return")
    _legend(figure, panels.tolist())
    return figure


def ablation_figure(plan: Plan, runs: Runs) -> Figure:
    """Learning curves: one row a robot, one panel a way to train, one curve a share of the admissible set."""
    titles = list(dict.fromkeys(method.panel for method in plan.methods))
    size = (4.0 * len(titles), 3.4 * len(plan.robots) + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(plan.robots), len(titles), squeeze=False, sharex="row", sharey="row")
    for row, robot in zip(panels, plan.robots, strict=True):
        for panel, title in zip(row, titles, strict=True):
            for method in plan.methods:
                if method.panel == title:
                    colour = colour_map("sequential")(0.9 * (method.share or 0.0))
                    curve(panel, runs.of(method.name, robot), colour, f"share {method.share:g}")
            _label(panel, f"{robot}\n{title}")
        row[0].set_ylabel("return")
    _legend(figure, panels.ravel().tolist())
    return figure


def curve(panel: Axes, folders: Mapping[int, Path], colour: ColorType, label: str) -> None:
    """Draw the mean return over the seeds, with a band from the worst to the best seed.

    A point needs an evaluation of every seed at this iteration.
    """
    histories = [
        {int(row["iteration"]): row["return_mean"] for row in read_metrics(folder, ("iteration", "return_mean"))}
        for folder in folders.values()
    ]
    if not histories:
        return
    iterations = sorted(set.intersection(*map(set, histories)))
    values = np.array([[history[k] for k in iterations] for history in histories])
    panel.fill_between(iterations, values.min(0), values.max(0), color=colour, alpha=0.2, lw=0)
    panel.plot(iterations, values.mean(0), color=colour, lw=1.5, label=label)


def _label(panel: Axes, title: str) -> None:
    panel.set(title=title, xlabel="iteration")
    panel.grid(alpha=0.3)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Draw one legend for all panels, below them."""
    entries: dict[str, Artist] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        columns = min(6, int(figure.get_figwidth() / ENTRY))
        figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns, fontsize=8)


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
    return robustness.trained(page) if page.plan.experiment in robustness.WRITERS else set()


def _final_returns(page: Page, runs: Runs) -> None:
    """Append a table of the last evaluations: mean, worst and best seed, success."""
    rows = []
    for robot in page.plan.robots:
        for method in page.plan.methods:
            keys = ("return_mean", "success_rate")
            logs = [read_metrics(folder, keys) for folder in runs.of(method.name, robot).values()]
            last = [rows[-1] for rows in logs if rows]
            printed = results_page.returns(method.name, robot)
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
    "fig-ablation": _ablation,
    **robustness.WRITERS,
}
#: Pages that are written run by run.
BY_RUN: dict[str, type[PageByRun]] = {"gallery": Gallery, "certificates": Certificates}


class Train(Protocol):
    """`solver.lab.reproduction.runs.run_plan` with the options of a command."""

    def __call__(
        self, trainings: Sequence[PlannedRun], *, finished: Callable[[PlannedRun, Path], None] = lambda *_: None
    ) -> Runs: ...


def reproduce(
    plan: Plan, train: Train, out: Path, command: str, announce: Callable[[str], None]
) -> tuple[Runs, list[Path]]:
    """The runs of an experiment, trained where they are missing, and the paths of its page and figures.

    command: for the page. announce: shows a line on the progress.
    """
    if plan.experiment in BY_RUN:
        page = BY_RUN[plan.experiment](plan, out, command, announce)
        return train(plan.trainings, finished=page.add), page.write()
    runs = train(plan.trainings)
    return runs, write_report(plan, runs, out, command, announce)
