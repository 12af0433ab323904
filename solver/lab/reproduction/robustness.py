"""Robustness over the mass of each of the paper's robots: a figure, a JSON file and a table for each robot and plant.

A later call keeps the methods of the JSON file whose runs are not there any more, if they were measured in the same
way, so that the figure can be made on several machines.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.artifact.typed import typed
from solver.evaluation.robustness import Robustness, Trial, measure
from solver.evaluation.robustness_plot import figure
from solver.evaluation.statistics import STATISTICS, WORST_CASES, Group
from solver.lab.reproduction import paper_results
from solver.lab.reproduction.experiments import MASSES
from solver.lab.reproduction.page import NONE, Page
from solver.lab.reproduction.rows import read_known
from solver.lab.reproduction.runs import Runs
from solver.plants import PlantName
from solver.streams import EVALUATION_SEED


def write_robustness(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """The page's text and figures, for the robots that have runs or results of an earlier call."""
    plan = page.plan
    page.say(
        f"The mass changes in the plant, not in the policy; {plan.budget.episodes} rollouts of every seed at every "
        "mass. Lowest is over the range of masses. The paper shows percentiles of experiments on hardware, in figures "
        "only; where the pendulum's table has a second line, it is from the authors' published checkpoints, rerun."
    )
    for robot, plant, before in _before(page):
        labels = {folder: method.name for method in plan.methods for folder in runs.of(method.name, robot).values()}
        found = before
        if labels:
            trial = Trial(plant, (), plan.budget.episodes, EVALUATION_SEED, observer=plant == "harsh")
            announce(f"robustness of {robot} on the {plant} plant")
            now = measure(list(labels), [MASSES[robot]], trial, plan.generated, announce)
            now = replace(now, groups=tuple(_named(group, labels) for group in now.groups))
            found = _merged(now, before, [method.name for method in plan.methods])
        if found is not None:
            _show(page, found)


def trained(page: Page) -> set[tuple[str, str, int]]:
    """Method, robot and seed of what an earlier call measured."""
    groups = ((robot, group) for robot, _, before in _before(page) if before for group in before.groups)
    return {(group.label, robot, seed) for robot, group in groups for seed in _seeds(group)}


def _seeds(group: Group) -> set[int]:
    """What the names of the runs end with: other settings give a run another name, and not another seed."""
    return {int(seed[1]) for run in group.runs if (seed := re.search(r"(\d+)$", run))}


def _before(page: Page) -> Iterator[tuple[str, PlantName, Robustness | None]]:
    """Robot, plant, and the results of an earlier call. Raises SolverError for a JSON file of another content."""
    for robot in page.plan.robots:
        for plant in page.plan.budget.plants:
            yield robot, plant, read_known(page.out / f"{page.name}-{robot}-{plant}.json", _read)


def _read(content: Any) -> Robustness:
    found: Robustness = typed(Robustness, content, "robustness")
    _require_shapes(found)
    return found


def _require_shapes(found: Robustness) -> None:
    """Raise ValueError where a group lacks a statistic, or has a number too few."""
    shape = tuple(len(axis.values) for axis in found.axes)
    for group in found.groups:
        if not {*STATISTICS} <= group.statistics.keys() or not {*WORST_CASES} <= group.worst.keys():
            raise ValueError(f"{group.label} lacks a statistic")
        numbers = [(each, shape) for each in group.statistics.values()]
        numbers += [(each.statistic, ()) for each in group.worst.values()]
        for each, expected in numbers:
            bounds = [bound for bound in (each.low, each.high) if bound is not None]
            for value in (each.value, *bounds):
                if np.asarray(value, float).shape != expected:
                    raise ValueError(f"{group.label} has other points than the axes")


def _merged(now: Robustness, before: Robustness | None, order: list[str]) -> Robustness:
    """The groups of both, in order. One of before stays where now lacks one of its seeds."""
    if before is None or replace(before, groups=()) != replace(now, groups=()):
        return now
    groups = {group.label: group for group in before.groups}
    for group in now.groups:
        if group.label not in groups or _seeds(groups[group.label]) <= _seeds(group):
            groups[group.label] = group
    place = {label: number for number, label in enumerate(order)}
    return replace(now, groups=tuple(sorted(groups.values(), key=lambda group: place.get(group.label, len(place)))))


def _show(page: Page, found: Robustness) -> None:
    page.say(f"## {found.robot}, {found.plant} plant{', states from the observer' if found.observer else ''}")
    suffix = f"-{found.robot}-{found.plant}"
    page.show(figure(found), suffix, f"{found.robot}: rewards and success over the mass")
    page.keep(json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n", f"{suffix}.json")
    _masses(page, found)


def _named(group: Group, labels: dict[Path, str]) -> Group:
    """Under its method's name, its runs without the way to them."""
    names = {str(folder): name for folder, name in labels.items()}
    return replace(group, label=names[group.runs[0]], runs=tuple(Path(run).name for run in group.runs))


def _masses(page: Page, found: Robustness) -> None:
    """Lowest over the range, and mean return with success at masses along it."""
    (axis,) = found.axes
    shown = [k for k in range(len(axis.changes)) if k % 2 == 0 or math.isclose(axis.values[k], axis.nominal)]
    changes = [f"{axis.changes[k]:+.3g} {axis.unit}" if axis.added else f"x{axis.changes[k]:.3g}" for k in shown]
    header = ["mean return (success)", *changes, "lowest mean return", "lowest return of a rollout", "lowest success"]
    rows = []
    for group in found.groups:
        mean, success = (group.statistics[name].value for name in ("return_mean", "success_rate"))
        cells = [f"{mean[k]:.1f} ({100 * success[k]:.0f} %)" for k in shown]
        worst = [group.worst[name].statistic.value for name in ("return_mean", "return_worst", "success_rate")]
        rows.append([group.label, *cells, f"{worst[0]:.1f}", f"{worst[1]:.1f}", f"{100 * worst[2]:.0f} %"])
        printed = paper_results.CHECKPOINTS.get(group.label, {})
        if found.robot == "pendulum" and found.plant == "nominal" and printed:
            near = {round(axis.changes[k], 6): k for k in shown}
            texts = {near[x]: f"{y:.1f}" + ("" if z is None else f" ({z:.0f} %)") for x, (y, z) in printed.items()}
            rows.append([f"authors' {group.label}", *(texts.get(k, NONE) for k in shown), NONE, NONE, NONE])
    page.table(header, rows)
