"""Robustness of runs: a figure and a JSON file for each robot (and plant, over the mass of the paper's robots), tables.

A later call keeps methods of the JSON file without a run if they were measured in the same way, so that several
machines can make the figure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from modelgen.artifact.manifest import typed
from solver.evaluation.robustness import Robustness, Trial, measure, measure_each, shares
from solver.evaluation.robustness_figures import figure, picture
from solver.evaluation.statistics import STATISTICS, WORST_CASES, Group
from solver.lab.reproduction import results_page
from solver.lab.reproduction.experiments import MASSES, methods
from solver.lab.reproduction.results_page import NONE, Page, cell, read_known
from solver.lab.reproduction.runs import Runs
from solver.plants import PlantName
from solver.problem.parameters import TOLD
from solver.problem.robots import load_robot

HELD = 0.95  # success rate of a mass that does not fail


def write_robustness(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """Write text and figures of all robots with runs or with results of an earlier call."""
    plan = page.plan
    page.say(
        f"The mass changes in the plant, not in the policy. A cell is the mean return of {plan.budget.episodes} "
        "rollouts of every seed, with the success rate if it is not 100 %. The lowest return is of one rollout at any "
        "mass. Plants with equal rows share a line. On the harsh plant the policy gets the states of the observer. "
        f"Every mass: `{page.name}/ROBOT-PLANT.json`."
    )
    results: dict[str, list[Robustness]] = {}
    for robot, plant, before in _before(page):
        labels, result = _labels(page, runs, robot), before
        if labels:
            trial = Trial(plant, episodes=plan.budget.episodes, observer=plant == "harsh")
            announce(f"robustness of {robot} on the {plant} plant")
            now = measure(list(labels), [MASSES[robot]], trial, plan.generated, announce)
            result = _merged(_named(now, labels), before, [method.name for method in plan.methods])
        if result is not None:
            page.keep(result.to_json(), f"/{robot}-{plant}.json")
            results.setdefault(robot, []).append(result)
    for robot, plants in results.items():
        page.say(f"### {robot}: {plants[0].axes[0].parameter}")
        for result in plants:
            page.show(figure(result), f"/{robot}-{result.plant}", f"{robot}, {result.plant} plant")
        _masses(page, plants)


def write_parameters(page: Page, runs: Runs, announce: Callable[[str], None]) -> None:
    """Write one picture of every robot with runs or with results of an earlier call, and the shares of all robots."""
    plan = page.plan
    page.say(
        "One parameter is wrong in the plant, the others are nominal. A policy does not know the error, unless it is "
        "told the parameter: its true value, or the estimate of an observer that measures positions, within the "
        f"bounds of the model file. Above: median return of {plan.budget.episodes} rollouts of every seed, with a band "
        "from the 25th to the 75th percentile. Below: success rate, with its interval over the seeds. Grey: errors of "
        "at most 20 %."
    )
    found: dict[str, list[Robustness]] = {}
    order = [method.name for method in methods(plan.experiment, plan.budget)]
    for robot, results in _before_each(page):
        for estimates in (False, True):
            if labels := _labels(page, runs, robot, estimates):
                announce(f"every parameter of {robot}")
                now = _measured(page, robot, labels, estimates, announce)
                earlier = {each.axes: each for each in results}
                results = [_merged(each, earlier.get(each.axes), order) for each in now]
                page.keep({"parameters": [each.to_json() for each in results]}, f"/{robot}.json")
        if results:
            found[robot] = results
    page.say("Share of the points with an error of at most 20 % where 95 % of the rollouts succeed:")
    share = {robot: shares(results) for robot, results in found.items()}
    names = list(dict.fromkeys(name for each in share.values() for name in each))
    cells = {
        robot: [f"{100 * each[name]:.0f} %" if name in each else NONE for name in names]
        for robot, each in share.items()
    }
    page.table(["", *names], [[robot, *row] for robot, row in cells.items()])
    for robot, results in found.items():
        page.show(picture(results), f"/{robot}", f"{robot}: return and success against the error of every parameter")


def _measured(
    page: Page, robot: str, labels: dict[Path, str], estimates: bool, announce: Callable[[str], None]
) -> list[Robustness]:
    """Results by parameter, whose groups have the names of the methods. All rollouts last as long as the task.

    Only the name of its method says that a group had an observer, so that all groups join in one result.
    """
    plan = page.plan
    trial = Trial(
        episodes=plan.budget.episodes,
        observer=estimates,
        estimate=(TOLD,) if estimates else (),
        seconds=load_robot(robot, "cpu", plan.generated).metadata.task.horizon,
    )
    measured = measure_each(list(labels), trial, plan.generated, announce)
    return [replace(_named(each, labels), observer=False, estimate=()) for each in measured]


def trained(page: Page) -> set[tuple[str, str, int]]:
    """Method, robot and seed of runs that an earlier call measured."""
    known = [(robot, before) for robot, _, before in _before(page) if before]
    if page.plan.experiment == "fig-parameters":
        known = [(robot, each) for robot, results in _before_each(page) for each in results]
    groups = ((robot, group) for robot, before in known for group in before.groups)
    return {(group.label, robot, seed) for robot, group in groups for seed in _seeds(group)}


def _labels(page: Page, runs: Runs, robot: str, estimates: bool = False) -> dict[Path, str]:
    """Methods of the finished runs of a robot, by folder: those of policies that are told estimates, or the others."""
    names = [method.name for method in page.plan.methods if (method.told == "estimated") == estimates]
    return {folder: name for name in names for folder in runs.of(name, robot).values()}


def _before_each(page: Page) -> Iterator[tuple[str, list[Robustness]]]:
    """Robot and results by parameter of an earlier call; see `_before`."""
    for robot in page.plan.robots:
        path = page.out / page.name / f"{robot}.json"
        yield robot, read_known(path, lambda content: [_read(each) for each in content["parameters"]]) or []


def _seeds(group: Group) -> set[int]:
    """Seeds of the runs of a group: the numbers at the end of their names."""
    return {int(seed[1]) for run in group.runs if (seed := re.search(r"(\d+)$", run))}


def _before(page: Page) -> Iterator[tuple[str, PlantName, Robustness | None]]:
    """Robot, plant, and results of an earlier call. Raises SolverError for a JSON file with other content."""
    for robot in page.plan.robots:
        for plant in page.plan.budget.plants:
            yield robot, plant, read_known(page.out / page.name / f"{robot}-{plant}.json", _read)


def _read(content: Any) -> Robustness:
    result: Robustness = typed(Robustness, content, "robustness")
    _require_shapes(result)
    return result


def _require_shapes(result: Robustness) -> None:
    """Raises ValueError if a group lacks a statistic or a number."""
    shape = tuple(len(axis.values) for axis in result.axes)
    for group in result.groups:
        if not {*STATISTICS} <= group.statistics.keys() or not {*WORST_CASES} <= group.worst.keys():
            raise ValueError(f"{group.label} lacks a statistic")
        numbers = [(statistic, shape) for statistic in group.statistics.values()]
        numbers += [(case.statistic, ()) for case in group.worst.values()]
        for statistic, expected in numbers:
            bounds = [bound for bound in (statistic.low, statistic.high) if bound is not None]
            for value in (statistic.value, *bounds):
                if np.asarray(value, float).shape != expected:
                    raise ValueError(f"{group.label} has other points than the axes")


def _merged(now: Robustness, before: Robustness | None, order: list[str]) -> Robustness:
    """Results of both calls, in order. An earlier group stays if the new group lacks one of its seeds."""
    if before is None or replace(before, groups=()) != replace(now, groups=()):
        return now
    groups = {group.label: group for group in before.groups}
    for group in now.groups:
        if group.label not in groups or _seeds(groups[group.label]) <= _seeds(group):
            groups[group.label] = group
    place = {label: number for number, label in enumerate(order)}
    return replace(now, groups=tuple(sorted(groups.values(), key=lambda group: place.get(group.label, len(place)))))


def _named(result: Robustness, labels: dict[Path, str]) -> Robustness:
    """Results whose groups have the names of their methods, and runs without their folders."""
    names = {str(folder): name for folder, name in labels.items()}
    groups = (
        replace(group, label=names[group.runs[0]], runs=tuple(Path(run).name for run in group.runs))
        for group in result.groups
    )
    return replace(result, groups=tuple(groups))


def _masses(page: Page, plants: Sequence[Robustness]) -> None:
    """Append a table: returns at the least, nominal and largest mass, the masses that fail, and the lowest return."""
    (axis,) = plants[0].axes
    masses = [f"{change:+.3g} {axis.unit}" if axis.added else f"x{change:.3g}" for change in axis.changes]
    nominal = min(range(len(masses)), key=lambda k: abs(axis.changes[k] - (0.0 if axis.added else 1.0)))
    shown = (0, nominal, len(masses) - 1)
    lines: dict[tuple[str, ...], list[str]] = {}  # plants, by method and cells
    for result in plants:
        for group in result.groups:
            mean, success = (group.statistics[name].value for name in ("return_mean", "success_rate"))
            failing = [f"{mass} {100 * rate:.3g} %" for mass, rate in zip(masses, success, strict=True) if rate < HELD]
            if len(failing) == len(masses):
                failing = [f"all: {100 * min(success):.3g} to {100 * max(success):.3g} %"]
            lowest = f"{group.worst['return_worst'].statistic.value:.1f}"
            cells = [*(cell(mean[k], 100 * success[k]) for k in shown), ", ".join(failing), lowest]
            lines.setdefault((group.label, *cells), []).append(result.plant)
    header = ["plant", "policy", *(masses[k] for k in shown), f"below {100 * HELD:.0f} % success", "lowest return"]
    page.table(header, [[", ".join(names), *cells] for cells, names in lines.items()])
    if plants[0].robot == "pendulum":
        theirs = (
            f"{name}: {', '.join(f'x{mass:g} {cell(*point)}' for mass, point in points.items())}"
            for name, points in results_page.CHECKPOINTS.items()
        )
        page.say(f"Rollouts of the authors' checkpoints. {'. '.join(theirs)}. (–) is an unknown success rate.")


WRITERS = {"fig-robustness": write_robustness, "fig-parameters": write_parameters}
