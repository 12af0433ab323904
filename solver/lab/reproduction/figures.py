"""Figures of an experiment: learning curves of several methods, and value functions side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import ColorType

from modelgen.style import colour_map
from solver.evaluation.plots import DRAWN, coordinate, draw_value_and_policy
from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import Plan
from solver.lab.reproduction.runs import Runs
from solver.plants.rollouts import rollouts, sample_starts
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
            curve(panel, runs.of(method.name, robot), f"C{k}", method.name)
        for name in PRINTED:
            printed = paper_results.returns(name, robot)
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
