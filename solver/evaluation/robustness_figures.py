"""Figures of robustness: curves over one parameter, maps over two, or a panel for every parameter; and their files.

`robustness` measures and draws in one call.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from modelgen.errors import checked, suggestion
from modelgen.loader import CompiledRobot
from modelgen.style import POLICIES, colour_map
from solver.errors import SolverError
from solver.evaluation.plots import save_figure
from solver.evaluation.robustness import NEAR, Robustness, Trial, measure, measure_each
from solver.evaluation.statistics import Axis, Group, ParameterRange, Statistic
from solver.jobs.engines import policy_reference, workers
from solver.plants import PlantName
from solver.problem.parameters import Change, Relative, is_number, names_in
from solver.runs.folder import write_text
from solver.streams import EVALUATION_SEED

PANELS = {
    "return": "return",
    "success_rate": "success rate",
    "state_reward": "state reward",
    "action_reward": "action reward",
}
MAPS = {"return_50": "median return", "return_worst": "lowest return", "success_rate": "success rate"}


def figure(result: Robustness) -> Figure:
    """Figure with lines for one parameter, or maps for two."""
    return _lines(result) if len(result.axes) == 1 else _maps(result)


def picture(results: Sequence[Robustness]) -> Figure:
    """Figure of `measure_each`: above each other the median return and the success rate over a parameter's error.

    Bands: from the 25th to the 75th percentile of the returns, and the interval of the success rate over the runs.
    """
    columns = min(4, len(results))
    rows = -(-len(results) // columns)
    drawn = Figure(figsize=(3.2 * columns + 0.6, 4.0 * rows + 0.5), layout="constrained")
    panels = drawn.subplots(2 * rows, columns, sharex=True, sharey="row", squeeze=False)
    for panel in panels[-2:, len(results) - columns * (rows - 1) :].ravel():
        panel.set_visible(False)
    for number, result in enumerate(results):
        (axis,), (row, column) = result.axes, divmod(number, columns)
        above, below = panels[2 * row, column], panels[2 * row + 1, column]
        errors = [100.0 * (change - 1.0) for change in axis.changes]
        for k, group in enumerate(result.groups):
            colour = POLICIES[k % len(POLICIES)]
            returns, success = group.statistics["return_50"], group.statistics["success_rate"]
            low, high = (group.statistics[f"return_{share}"].value for share in (25, 75))
            above.fill_between(errors, low, high, color=colour, alpha=0.2, lw=0)
            above.plot(errors, returns.value, color=colour, lw=1.6, label=_name(group, 150))
            if success.low is not None:
                below.fill_between(errors, success.low, success.high, color=colour, alpha=0.2, lw=0)
            below.plot(errors, success.value, color=colour, lw=1.6)
        above.set_title(axis.parameter)
        below.set(xlabel="error, %", ylim=(-0.04, 1.04))
        below.tick_params(labelbottom=True)
        for panel in (above, below):
            panel.axvspan(-100 * NEAR, 100 * NEAR, color="0.5", alpha=0.1, lw=0)
            panel.grid(alpha=0.3)
        if column == 0:
            above.set_ylabel("return")
            below.set_ylabel("success rate")
    drawn.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", fontsize=8)
    drawn.suptitle(_title(results[0]))
    return drawn


def _lines(result: Robustness) -> Figure:
    """Figure of medians, with bands from the 25th to the 75th percentile and intervals as bars, and of success
    rates."""
    (axis,) = result.axes
    drawn = Figure(figsize=(11.0, 7.4), layout="constrained")
    panels = drawn.subplots(2, 2, sharex=True).ravel()
    for panel, (quantity, title) in zip(panels, PANELS.items(), strict=True):
        for k, group in enumerate(result.groups):
            colour = POLICIES[k % len(POLICIES)]
            if quantity == "success_rate":
                _curve(panel, axis, group.statistics[quantity], colour, group)
                continue
            low, high = (group.statistics[f"{quantity}_{share}"].value for share in (25, 75))
            panel.fill_between(axis.values, low, high, color=colour, alpha=0.2, lw=0)
            _curve(panel, axis, group.statistics[f"{quantity}_50"], colour, group)
        panel.axvline(axis.nominal, color="0.5", lw=0.8, ls=":")
        panel.set(title=title)
        panel.grid(alpha=0.3)
    panels[1].set_ylim(-0.04, 1.04)
    for panel in panels[2:]:
        panel.set_xlabel(f"{axis.parameter} [{axis.unit}]")
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", fontsize=8)
    drawn.suptitle(_title(result))
    return drawn


def _curve(panel: Axes, axis: Axis, statistic: Statistic, colour: str, group: Group) -> None:
    panel.plot(axis.values, statistic.value, color=colour, lw=1.6, label=_name(group, 150))
    if statistic.low is not None:
        panel.vlines(axis.values, statistic.low, statistic.high, color=colour, lw=0.9, alpha=0.7)


def _maps(result: Robustness) -> Figure:
    """Figure with a row for every group. A column has one colour scale; + is the nominal robot, x the lowest value."""
    first, second = result.axes
    rows = len(result.groups)
    drawn = Figure(figsize=(4.4 * len(MAPS), 3.3 * rows + 0.5), layout="constrained")
    panels = drawn.subplots(rows, len(MAPS), sharex=True, sharey=True, squeeze=False)
    shades = colour_map("sequential")
    for column, (name, title) in enumerate(MAPS.items()):
        fields = [np.array(group.statistics[name].value) for group in result.groups]
        scale = (0.0, 1.0) if name == "success_rate" else (min(map(np.min, fields)), max(map(np.max, fields)))
        for row, (group, field) in enumerate(zip(result.groups, fields, strict=True)):
            panel = panels[row, column]
            limits = {"vmin": scale[0], "vmax": scale[1]}
            mesh = panel.pcolormesh(first.values, second.values, field.T, cmap=shades, rasterized=True, **limits)
            i, j = np.unravel_index(field.argmin(), field.shape)
            panel.plot(first.values[i], second.values[j], "rx")
            panel.plot(first.nominal, second.nominal, "k+")
            panel.set_title(f"{title}\n{_name(group, 60)}", fontsize=8)
        drawn.colorbar(mesh, ax=panels[:, column].tolist())
        panels[-1, column].set_xlabel(f"{first.parameter} [{first.unit}]")
    for panel in panels[:, 0]:
        panel.set_ylabel(f"{second.parameter} [{second.unit}]")
    drawn.suptitle(_title(result))
    return drawn


def _name(group: Group, width: int) -> str:
    """Label and number of runs, in lines of at most `width` letters."""
    runs = "1 run" if len(group.runs) == 1 else f"{len(group.runs)} runs"
    return textwrap.fill(f"{group.label} ({runs})", width)


def _title(result: Robustness) -> str:
    plant = " ".join([result.plant, *result.effects])
    plant += " plant, observer" if result.observer else " plant"
    return f"{result.robot}, {plant}, {result.episodes} rollouts of every run at every point"


def save_robustness(
    results: Sequence[Robustness], trial: Trial, parameters: Sequence[str], out: Path | None = None
) -> list[Path]:
    """Paths of the JSON file and the figure of `measure` with parameters, or of `measure_each` without.

    out: without ending. By default below runs/, with robot, trial and parameters in the name.
    """
    estimated = ["estimate", *trial.estimate] if trial.estimate else []
    chosen = [*trial.effects, *(["observer"] if trial.observer else []), *estimated]
    chosen += [*(["blind"] if trial.blind else [])]
    chosen += [] if trial.reaction_periods is None else [f"reaction{trial.reaction_periods:g}"]
    words = ["robustness", results[0].robot, trial.plant, *chosen, *(parameters or ["parameters"])]
    stem = out or Path("runs") / "-".join(words)
    content = results[0].to_json() if parameters else {"parameters": [each.to_json() for each in results]}
    json_file, picture_file = robustness_files(stem)
    write_text(json_file, json.dumps(content, indent=1, allow_nan=False) + "\n")
    return [json_file, save_figure(figure(results[0]) if parameters else picture(results), picture_file)]


def robustness_files(stem: Path) -> list[Path]:
    """Paths of `save_robustness`."""
    return [stem.with_name(f"{stem.name}.{ending}") for ending in ("json", "png")]


@checked(SolverError, "plant")
def robustness(
    *runs: str | PathLike[str],
    parameters: Mapping[str, tuple[Change, Change]] = MappingProxyType({}),
    points: int | None = None,
    plant: PlantName = "nominal",
    harsh: Sequence[str] = (),
    episodes: int = 100,
    seed: int = EVALUATION_SEED,
    observer: bool = False,
    estimate: Sequence[str] = (),
    blind: bool = False,
    reaction_periods: float | None = None,
    jobs: int | None = 1,
    out: str | PathLike[str] | None = None,
    generated: str | None = None,
) -> list[Robustness]:
    """Returns and successes of runs in wrong robots; `result.table()` says the worst, `result.to_json()` everything.

    runs: folders, shipped names or runs of one robot; those that differ only by their seeds form a group. parameters:
    one parameter or two with their first and last value, in SI units or both `Relative`: {"mass": (0.5, 1.5)}. There is
    one result for all. Without, there is one for every parameter that has a tolerance in the model file, from -60 to
    +60 %. points: of a range, by default 21, or 11 of each of two. jobs: processes, None for one a core. out: figure
    and JSON file without their endings. The others are those of `evaluate`. Raises SolverError as `evaluate`, for runs
    of several robots, and for an empty range.
    """
    if points is not None and not parameters:
        raise SolverError("points are of the ranges in parameters; give both, or leave points out")
    trial = Trial(plant, names_in(harsh), episodes, seed, reaction_periods, observer, names_in(estimate), blind)
    folders, count = [Path(run) for run in runs], (21 if len(parameters) == 1 else 11) if points is None else points
    with workers(jobs) as executor:
        way: dict[str, Any] = {"generated": generated, "executor": executor}
        if parameters and folders:
            robot = policy_reference(folders[0], generated).load().problem.robot
            ranges = [_range(name, ends, count, robot) for name, ends in parameters.items()]
            results = [measure(folders, ranges, trial, **way)]
        else:
            results = measure_each(folders, trial, **way)
    if out is not None:
        save_robustness(results, trial, list(parameters), Path(out))
    return results


def _range(name: str, ends: tuple[Change, Change], points: int, robot: CompiledRobot) -> ParameterRange:
    """The range of a parameter between two values. Raises SolverError for an unknown name, and for other ends."""
    if len(ends) != 2 or not all(is_number(end) or isinstance(end, Relative) for end in ends):
        raise SolverError(
            f"the range of {name} is {ends!r}; give two numbers in SI units, or solver.Relative(0.5) and "
            "solver.Relative(1.5) to multiply the nominal value"
        )
    first, last = ends
    if isinstance(first, Relative) and isinstance(last, Relative) and not (first.added or last.added):
        return ParameterRange(name, first.factor, last.factor, points, added=False)
    if name not in robot.parameter_names:
        raise SolverError(f"robot {robot.name} has no parameter '{name}'.{suggestion(name, robot.parameter_names)}")
    nominal = float(robot.nominal_parameters[robot.parameter_names.index(name)])
    values = [nominal * e.factor + e.added if isinstance(e, Relative) else float(e) for e in ends]
    if not values[0] < values[1]:
        raise SolverError(f"the range of {name} is {values[0]:g} to {values[1]:g}; give the smaller value first")
    return ParameterRange(name, values[0] - nominal, values[1] - nominal, points, added=True)
