"""The sets of starts and of parameters that a specification declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from modelgen.errors import ModelError
from modelgen.identification import identified_file
from solver.certification.distribution import Gaussian, InEllipsoid, Part, Uniform
from solver.certification.reading import LARGEST, Table
from solver.errors import SolverError
from solver.game.admissible_sets import Ellipsoid
from solver.problem.problem import Problem

Array = NDArray[np.float64]


def starts(table: Table, problem: Problem) -> Part:
    """`starts`: the task's Gaussian, the whole domain, or a box with an interval for every state."""
    metadata = problem.robot.metadata
    limits, given = np.array([state.limit for state in metadata.states]), table.content.get("starts", "task")
    if given == "task":
        return Gaussian(np.array(metadata.task.start_mean), np.array(metadata.task.start_deviation))
    if given == "domain":
        return Uniform(-limits, limits)
    names = [state.name for state in metadata.states]
    if not isinstance(given, Mapping):
        raise table.mistake(
            "starts", f'is {given!r}; write "task", "domain", or a table with [lowest, highest] a state'
        )
    box = table.inner("starts")
    box.require_keys(names)
    missing = [name for name in names if name not in box.content]
    if missing:
        raise table.mistake(
            "starts", f"has no interval for {', '.join(missing)}; write {missing[0]} = [lowest, highest]"
        )
    intervals = np.array([box.interval(name) for name in names])
    for state, (low, high) in zip(metadata.states, intervals, strict=True):
        if not state.continuous and max(abs(low), abs(high)) > state.limit:
            raise box.mistake(state.name, f"reaches beyond the limit of {state.limit:g} {state.unit} in the model file")
    return Uniform(intervals[:, 0], intervals[:, 1])


def parameters(table: Table, problem: Problem, folder: Path) -> Part:
    """`parameters`: the nominal ones, a box, an ellipsoid, or the file of `modelgen identify`, found from `folder`."""
    nominal = np.array(problem.robot.nominal_parameters, float)
    given = table.content.get("parameters", "nominal")
    if given == "nominal":
        return Uniform(nominal, nominal)
    if not isinstance(given, Mapping):
        raise table.mistake(
            "parameters", f'is {given!r}; write "nominal", or a table with relative, absolute, ellipsoid or identified'
        )
    chosen = table.inner("parameters")
    chosen.require_keys(("relative", "absolute", "ellipsoid", "identified"))
    kinds = {"box" if key in ("relative", "absolute") else key for key in chosen.content}
    if len(kinds) != 1:
        raise table.mistake("parameters", "is one set: a box (relative, absolute), an ellipsoid, or identified")
    if kinds == {"box"}:
        return _box(chosen, problem, nominal)
    if kinds == {"ellipsoid"}:
        inner = chosen.inner("ellipsoid")
        inner.require_keys(("names", "centre", "shape"))
        return _ellipsoid(inner, problem, nominal)
    return _identified(chosen, problem, nominal, folder)


def _box(table: Table, problem: Problem, nominal: Array) -> Uniform:
    """relative: intervals of multiples of the nominal value; absolute: in SI units. The others stay nominal."""
    names, bounds = problem.robot.parameter_names, np.stack([nominal, nominal], 1)
    stated = set[str]()
    for kind in table.content:
        inner = table.inner(kind)
        inner.require_keys(names)
        for name in inner.content:
            if name in stated:
                raise inner.mistake(name, "is in relative and in absolute; state it once")
            stated.add(name)
            i, interval = names.index(name), np.array(inner.interval(name))
            bounds[i] = np.sort(interval * nominal[i]) if kind == "relative" else interval
            _require_positive(inner, name, bounds[i, 0], problem)
    return Uniform(bounds[:, 0], bounds[:, 1])


def _require_positive(table: Table, name: str, lowest: float, problem: Problem) -> None:
    """SolverError when a parameter that the model declares positive is not."""
    parameter = next(each for each in problem.robot.metadata.parameters if each.name == name)
    if parameter.lower > 0.0 >= lowest:
        raise table.mistake(name, f"reaches down to {lowest:g} {parameter.unit}, and is positive by the model file")


def _ellipsoid(table: Table, problem: Problem, nominal: Array) -> InEllipsoid:
    """Parameters `names` in the ellipsoid (theta - centre)' shape^-1 (theta - centre) <= 1, SI units."""
    known, names = problem.robot.parameter_names, table.words("names")
    for name in names:
        if name not in known:
            raise table.mistake("names", f"has {name}, and the parameters are {', '.join(known)}")
    count = len(names)
    if not count or len(set(names)) < count:
        raise table.mistake("names", "must list different parameters, at least one")
    centre, shape = _numbers(table, "centre", (count,)), _numbers(table, "shape", (count, count))
    rows = [known.index(name) for name in names]
    bounds = np.array(problem.robot.parameter_bounds, float)[rows]
    for name, value, (low, high) in zip(names, centre, bounds, strict=True):
        if not low <= value <= high:
            raise table.mistake("centre", f"has {name} = {value:g}, outside of its bounds {low:g} to {high:g}")
    scale = np.sqrt(np.diag(shape).clip(min=0.0))  # parameters differ by orders of magnitude, and rounding with them
    unit = np.where(scale > 0.0, scale, 1.0)
    try:
        scaled = torch.from_numpy(shape / np.outer(unit, unit))
        factor = Ellipsoid.from_matrix(torch.from_numpy(centre), scaled).factor.numpy() * unit[:, None]
    except SolverError as error:
        raise table.mistake("shape", f"is refused: {error}") from error
    whole = np.zeros((len(nominal), count))
    whole[rows] = factor
    middle, lower, upper = nominal.copy(), nominal.copy(), nominal.copy()
    middle[rows], lower[rows], upper[rows] = centre, bounds[:, 0], bounds[:, 1]
    return InEllipsoid(middle, whole[:, np.abs(whole).max(0) > 0.0], lower, upper)


def _identified(table: Table, problem: Problem, nominal: Array, folder: Path) -> InEllipsoid:
    """The confidence set in a file of `modelgen identify` for the model of the run."""
    name = table.content["identified"]
    if not isinstance(name, str):
        raise table.mistake("identified", f"is {name!r}; write the file of `modelgen identify` in quotes")
    try:
        content, _ = identified_file.read(folder / name, problem.robot)
    except ModelError as error:
        raise table.mistake("identified", f"is refused: {error}") from error
    region = {
        "names": list(content.ellipsoid.names),
        "centre": list(content.ellipsoid.centre),
        "shape": list(content.ellipsoid.shape),
    }
    return _ellipsoid(Table(str(folder / name), "ellipsoid.", region), problem, nominal)


def _numbers(table: Table, key: str, shape: tuple[int, ...]) -> Array:
    """An array of finite numbers of a shape."""
    given: Any = table.content.get(key)
    try:
        found = np.asarray(given, float)
    except (ValueError, TypeError):
        found = np.array(np.nan)
    if found.shape != shape or not (np.abs(found) <= LARGEST).all():
        raise table.mistake(key, f"is {given!r}, and must hold {' x '.join(map(str, shape))} finite numbers")
    return found
