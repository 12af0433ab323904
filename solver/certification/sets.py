"""Distributions of starts and parameters: maps from the unit cube, and the tables of a specification that name them.

Random points of the cube give the samples of a certificate. The search for the worst case searches in the cube.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation as AnyRotation
from scipy.special import ndtr, ndtri
from torch import Tensor

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification import identified_file
from modelgen.metadata import Rotation
from solver.certification.toml_table import TomlTable
from solver.errors import SolverError
from solver.game.adversaries import Ellipsoid
from solver.problem import UNIFORM, Problem
from solver.problem.geometry import angles_within

FLAT = 1e-6  # of the parameters' own semi-axes: a shorter axis of an ellipsoid is rounding, and no dimension
TAIL = float(ndtr(-3.0))  # the search is limited to three standard deviations of a Gaussian


class Part(Protocol):
    """Distribution of d quantities as a function of k independent uniform numbers."""

    @property
    def search(self) -> Array:
        """Bounds (k, 2) of the uniform numbers in the search for the worst case."""

    def __call__(self, z: Array) -> Array:
        """Quantities (N, d) for the uniform numbers z (N, k)."""


@dataclass(frozen=True)
class Uniform:
    """Independent uniform quantities between lower and upper, (d,) each. A quantity with equal bounds is constant."""

    lower: Array
    upper: Array

    @cached_property
    def _spread(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.upper > self.lower)

    @property
    def search(self) -> Array:
        """The whole box."""
        return np.tile([0.0, 1.0], (len(self._spread), 1))

    def __call__(self, z: Array) -> Array:
        """lower + z (upper - lower)."""
        values = np.tile(self.lower, (len(z), 1))
        values[:, self._spread] += z * (self.upper - self.lower)[self._spread]
        return values


@dataclass(frozen=True)
class Gaussian:
    """Independent Gaussian quantities with mean and standard deviation (d,). With a deviation of 0 they are
    constant."""

    mean: Array
    deviation: Array

    @cached_property
    def _spread(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.deviation > 0.0)

    @property
    def search(self) -> Array:
        """Three standard deviations on both sides."""
        return np.tile([TAIL, 1.0 - TAIL], (len(self._spread), 1))

    def __call__(self, z: Array) -> Array:
        """mean + deviation * quantile(z)."""
        values = np.tile(self.mean, (len(z), 1))
        values[:, self._spread] += self.deviation[self._spread] * ndtri(z)
        return values


@dataclass(frozen=True)
class Turned:
    """One more rotation of starts, from three uniform numbers: `mean` turned by a random vector.

    The vector is Gaussian with a deviation, or uniform over the turns by at most an angle.
    """

    others: Part  # of the states before, in which the quaternion is constant
    rotation: Rotation
    mean: Array  # (4,)
    deviation: float | None  # rad
    most: float  # rad, where there is no deviation

    @property
    def search(self) -> Array:
        """That of the others, and as in `Gaussian` or `Uniform`."""
        ends = [0.0, 1.0] if self.deviation is None else [TAIL, 1.0 - TAIL]
        return np.concatenate([self.others.search.reshape(-1, 2), [ends] * 3])

    def __call__(self, z: Array) -> Array:
        """Starts (N, n)."""
        values, share = self.others(z[:, :-3]), z[:, -3:]
        if self.deviation is not None:
            vector = self.deviation * ndtri(share)
        else:
            shares, angles = (each.numpy() for each in angles_within(self.most))
            up, around = 2.0 * share[:, 1] - 1.0, 2.0 * np.pi * share[:, 2]
            level = np.sqrt(1.0 - up**2)
            axis = np.stack([level * np.cos(around), level * np.sin(around), up], axis=1)
            vector = np.interp(share[:, 0], shares, angles)[:, None] * axis
        goal = AnyRotation.from_quat(self.mean, scalar_first=True)
        values[:, self.rotation.quaternion] = (goal * AnyRotation.from_rotvec(vector)).as_quat(scalar_first=True)
        return values


@dataclass(frozen=True)
class InEllipsoid:
    """Quantities uniform in the ellipsoid centre + factor b with |b| <= 1, factor (d, r), then clipped to their bounds.

    The direction of b is the direction of r Gaussian numbers, and its length the r-th root of a uniform number.
    """

    centre: Array
    factor: Array
    lower: Array
    upper: Array

    @property
    def search(self) -> Array:
        """All lengths, and all directions within three standard deviations of the Gaussian numbers."""
        rank = self.factor.shape[1]
        return np.array([[TAIL, 1.0 - TAIL]] * rank + [[0.0, 1.0]] * (rank > 0))

    def __call__(self, z: Array) -> Array:
        """centre + factor b."""
        rank = self.factor.shape[1]
        if rank == 0:
            return np.tile(np.clip(self.centre, self.lower, self.upper), (len(z), 1))
        draw = ndtri(z[:, :rank])
        length = np.linalg.norm(draw, axis=1, keepdims=True)
        b = draw / np.maximum(length, np.finfo(float).tiny) * z[:, rank:] ** (1.0 / rank)
        clipped: Array = np.clip(self.centre + b @ self.factor.T, self.lower, self.upper)
        return clipped


@dataclass(frozen=True)
class Distribution:
    """Starts and parameters, independent of each other but for starts that parameters move."""

    starts: Part
    parameters: Part
    moved: Array | None = None  # (p, n) what a unit of every parameter, from its nominal value, adds to the start

    @cached_property
    def search(self) -> Array:
        """Bounds (k, 2) of all uniform numbers in the search; the numbers of the starts come first."""
        return np.concatenate([part.search.reshape(-1, 2) for part in (self.starts, self.parameters)])

    def sample(self, size: int, seed: int) -> Array:
        """Random points (size, k) of the open unit cube."""
        smallest = np.finfo(float).tiny  # the quantile of 0 is infinite
        return np.random.default_rng(seed).uniform(smallest, 1.0, (size, len(self.search)))

    def __call__(self, problem: Problem, z: Array) -> tuple[Tensor, Tensor]:
        """Starts (N, n) in the state domain and parameters (N, p) for points z (N, k) of the cube, float32."""
        first = len(self.starts.search)
        x = torch.from_numpy(np.ascontiguousarray(self.starts(z[:, :first]), np.float32))
        theta = torch.from_numpy(np.ascontiguousarray(self.parameters(z[:, first:]), np.float32))
        if self.moved is not None:
            x = x + (theta - problem.theta) @ theta.new_tensor(self.moved)
        return problem.confine(x), theta


def starts(table: TomlTable, problem: Problem) -> Part:
    """Distribution of the key `starts`: the task's Gaussian, the whole domain, or an interval for every state.

    A rotation has its largest angle from the target instead of intervals. Raises SolverError for a missing interval,
    and for one beyond a state limit.
    """
    metadata, task = problem.robot.metadata, problem.robot.metadata.task
    entry = table.content.get("starts", "task")
    if entry == "task":
        mean, deviation = np.array(task.start_mean), np.array(task.start_deviation)
        spreads = [float(deviation[rotation.coordinate]) for rotation in metadata.rotations]
        deviation[list(metadata.turning)] = 0.0
        part: Part = Gaussian(mean, deviation)
        for rotation, spread in zip(metadata.rotations, spreads, strict=True):
            size = None if spread >= UNIFORM else spread
            part = Turned(part, rotation, mean[rotation.quaternion], size, np.pi)
        return part
    return domain(problem) if entry == "domain" else domain(problem, *_box_of_starts(table, problem))


def domain(problem: Problem, bounds: Array | None = None, reach: Mapping[str, float] = MappingProxyType({})) -> Part:
    """Uniform distribution over the state domain, or between bounds (n, 2) of its states and within the angles `reach`
    of its rotations from the target, by name."""
    metadata = problem.robot.metadata
    target, turning = np.array(metadata.task.target), list(metadata.turning)
    if bounds is None:
        bounds = np.array([(-state.limit, state.limit) for state in metadata.states])
    bounds[turning] = target[turning, None]
    part: Part = Uniform(bounds[:, 0], bounds[:, 1])
    for rotation in metadata.rotations:
        most = reach.get(rotation.name, rotation.limit)
        part = Turned(part, rotation, target[rotation.quaternion], None, most)
    return part


def _box_of_starts(table: TomlTable, problem: Problem) -> tuple[Array, dict[str, float]]:
    """Intervals (n, 2) of the states, zeros for quaternions, and the largest angle of every rotation."""
    metadata, entry = problem.robot.metadata, table.content["starts"]
    states = {i: state for i, state in enumerate(metadata.states) if i not in metadata.turning}
    names = [state.name for state in states.values()] + [rotation.name for rotation in metadata.rotations]
    if not isinstance(entry, Mapping):
        raise table.mistake(
            "starts", f'is {entry!r}; write "task", "domain", or a table with [lowest, highest] for every state'
        )
    box = table.inner("starts")
    box.require_keys(names)
    missing = [name for name in names if name not in box.content]
    if missing:
        turned = {rotation.name for rotation in metadata.rotations}
        size = "its largest angle from the target in rad" if missing[0] in turned else "[lowest, highest]"
        raise table.mistake("starts", f"has no interval for {', '.join(missing)}; write {missing[0]} = {size}")
    result = np.zeros((len(metadata.states), 2))
    for i, state in states.items():
        low, high = result[i] = box.interval(state.name)
        if not state.continuous and max(abs(low), abs(high)) > state.limit:
            raise box.mistake(state.name, f"reaches beyond the limit of {state.limit:g} {state.unit} in the model file")
    return result, {each.name: box.number(each.name, 0.0, above=0.0, most=each.limit) for each in metadata.rotations}


def parameters(table: TomlTable, problem: Problem, folder: Path) -> Part:
    """Distribution of the key `parameters`: nominal values, a box, an ellipsoid, or a file of `modelgen identify`.

    folder: of the specification, from which the path of the file starts. Raises SolverError for a set that is not
    valid.
    """
    nominal = np.array(problem.robot.nominal_parameters, float)
    entry = table.content.get("parameters", "nominal")
    if entry == "nominal":
        return Uniform(nominal, nominal)
    if not isinstance(entry, Mapping):
        raise table.mistake(
            "parameters", f'is {entry!r}; write "nominal", or a table with relative, absolute, ellipsoid or identified'
        )
    chosen = table.inner("parameters")
    chosen.require_keys(("relative", "absolute", "ellipsoid", "identified"))
    kinds = {"box" if key in ("relative", "absolute") else key for key in chosen.content}
    if len(kinds) != 1:
        raise table.mistake(
            "parameters",
            "must have exactly one set: a box (relative, absolute), an ellipsoid, or identified; remove the others",
        )
    if kinds == {"box"}:
        return _box(chosen, problem, nominal)
    if kinds == {"ellipsoid"}:
        inner = chosen.inner("ellipsoid")
        inner.require_keys(("names", "centre", "shape"))
        return _ellipsoid(inner, problem, nominal)
    return _identified(chosen, problem, nominal, folder)


def _box(table: TomlTable, problem: Problem, nominal: Array) -> Uniform:
    """Box with relative intervals, as multiples of the nominal value, and absolute ones in SI units.

    Other parameters are nominal.
    """
    names, bounds = problem.robot.parameter_names, np.stack([nominal, nominal], 1)
    declared = set[str]()
    for kind in table.content:
        inner = table.inner(kind)
        inner.require_keys(names)
        for name in inner.content:
            if name in declared:
                raise inner.mistake(name, "is in relative and in absolute; remove it from one of them")
            declared.add(name)
            i, interval = names.index(name), np.array(inner.interval(name))
            if kind == "relative" and nominal[i] == 0:
                raise inner.mistake(name, f"is 0 in the model, and no factor changes it; write {name} in absolute")
            bounds[i] = np.sort(interval * nominal[i]) if kind == "relative" else interval
            _require_trained(inner, name, bounds[i], problem)
            _require_positive(inner, name, bounds[i, 0], problem)
    return Uniform(bounds[:, 0], bounds[:, 1])


def _require_trained(table: TomlTable, name: str, interval: Array, problem: Problem) -> None:
    """Raises SolverError if the interval of a reference is wider than in the training."""
    if problem.context is None or name not in problem.robot.metadata.references:
        return
    entry = next(entry for entry in problem.context.given if entry.name == name)
    if interval[0] < entry.lower or interval[1] > entry.upper:
        raise table.mistake(
            name, f"is {interval.tolist()}, beyond the range of the training, {entry.lower:g} to {entry.upper:g}"
        )


def _require_positive(table: TomlTable, name: str, lowest: float, problem: Problem) -> None:
    """Raises SolverError if the lowest value of a parameter with positive bounds in the model file is not positive."""
    declared = next(parameter for parameter in problem.robot.metadata.parameters if parameter.name == name)
    if declared.lower > 0.0 >= lowest:
        raise table.mistake(
            name,
            f"has the lowest value {lowest:g} {declared.unit}, but must be positive by its bounds in the model file",
        )


def _ellipsoid(table: TomlTable, problem: Problem, nominal: Array) -> InEllipsoid:
    """Uniform distribution of the parameters `names` in (theta - centre)' shape^-1 (theta - centre) <= 1, SI units."""
    known, names = problem.robot.parameter_names, table.words("names")
    for name in names:
        if name not in known:
            raise table.mistake("names", f"has {name}, which is not a parameter. Parameters: {', '.join(known)}")
    count = len(names)
    if not count or len(set(names)) < count:
        raise table.mistake("names", "must list different parameters, at least one")
    centre, shape = table.numbers("centre", (count,)), table.numbers("shape", (count, count))
    rows = [known.index(name) for name in names]
    bounds = np.array(problem.robot.parameter_bounds, float)[rows]
    for name, value, (low, high) in zip(names, centre, bounds, strict=True):
        if not low <= value <= high:
            raise table.mistake("centre", f"has {name} = {value:g}, outside its bounds {low:g} to {high:g}")
    scale = np.sqrt(np.diag(shape).clip(min=0.0))  # parameters, and their rounding, differ by orders of magnitude
    unit = np.where(scale > 0.0, scale, 1.0)
    try:
        scaled = torch.from_numpy(shape / np.outer(unit, unit))
        factor = Ellipsoid.from_matrix(torch.from_numpy(centre), scaled).factor.numpy()
    except SolverError as error:
        raise table.mistake("shape", f"is not valid: {error}") from error
    axes = factor[:, np.abs(factor).max(0) > FLAT] * unit[:, None]
    whole = np.zeros((len(nominal), axes.shape[1]))
    whole[rows] = axes
    middle, lower, upper = nominal.copy(), nominal.copy(), nominal.copy()
    middle[rows], lower[rows], upper[rows] = centre, bounds[:, 0], bounds[:, 1]
    return InEllipsoid(middle, whole, lower, upper)


def _identified(table: TomlTable, problem: Problem, nominal: Array, folder: Path) -> InEllipsoid:
    """Uniform distribution in the confidence ellipsoid of a file of `modelgen identify`."""
    name = table.content["identified"]
    if not isinstance(name, str):
        raise table.mistake("identified", f"is {name!r}; write the path of a file of `modelgen identify` in quotes")
    try:
        content, _ = identified_file.read(folder / name, problem.robot)
    except ModelError as error:
        raise table.mistake("identified", f"is refused: {error}") from error
    region = {name: list(entries) for name, entries in vars(content.ellipsoid).items()}
    return _ellipsoid(TomlTable(str(folder / name), "ellipsoid.", region), problem, nominal)
