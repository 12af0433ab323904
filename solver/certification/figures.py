"""The map of arrivals, drawn."""

from __future__ import annotations

from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from solver.certification.level_set import Map
from solver.problem.problem import Problem

COLOURS = ListedColormap(["#d9776c", "#8fbf8f"])  # failed, arrived


def map_figure(problem: Problem, drawn: Map, level: float | None) -> Figure:
    """Where starts fail and where they arrive, with the boundary of {V >= level}, and the target."""
    figure = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(*drawn.axes, drawn.arrived.astype(float), cmap=COLOURS, vmin=0.0, vmax=1.0, rasterized=True)
    lines = f"green: arrives ({100 * drawn.arrived.mean():.0f} %), red: fails"
    if level is not None and drawn.value is not None and drawn.value.min() < level <= drawn.value.max():
        axes.contour(*drawn.axes, drawn.value, [level], colors="black", linewidths=1.2)
        lines += f", line: V = {level:.3g}"
    states = [problem.robot.metadata.states[index] for index in drawn.states]
    axes.plot(*(float(problem.target[index]) for index in drawn.states), "k+")
    axes.set(title=lines, xlabel=f"{states[0].name} [{states[0].unit}]", ylabel=f"{states[1].name} [{states[1].unit}]")
    return figure
