"""What policies are worth over a range of physical parameters that they do not know: rollouts, then statistics.

Runs with the same label, which differ by their seeds, are one group. Statistics pool the rollouts of a group; their
intervals are bootstrapped over its runs, since rollouts of one policy say nothing about the next training.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.fvi.run_folder import CHECKPOINT
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.rollouts import Controller, require_episodes, rollouts, sample_starts
from solver.policies.load import load_controller
from solver.problem.parameters import changed_parameters, left_all_bounds
from solver.problem.problem import Problem

Array = NDArray[np.float64]
Samples = Array  # (4, points, episodes) of one run: QUANTITIES and success

ROLLOUTS_AT_ONCE = 4096
RESAMPLES = 1000
CONFIDENCE = (2.5, 97.5)  # percentiles of the resampled statistics
PERCENTILES = (25, 50, 75)
QUANTITIES = ("return", "state_reward", "action_reward")
STATISTICS = (
    *(f"{quantity}_{percentile}" for quantity in QUANTITIES for percentile in PERCENTILES),
    "return_mean",
    "return_worst",  # of all rollouts
    "success_rate",
)
WORST_CASES = ("return_25", "return_50", "return_mean", "return_worst", "success_rate")  # lowest over the box


@dataclass(frozen=True)
class Range:
    """A parameter over evenly spaced changes: added to the nominal value, in its unit, or multiples of it."""

    parameter: str
    start: float
    end: float
    points: int
    added: bool


@dataclass(frozen=True)
class Axis:
    """A parameter and what it is changed to."""

    parameter: str
    unit: str
    nominal: float
    added: bool  # the changes are added to the nominal value; else they multiply it
    changes: tuple[float, ...]
    values: tuple[float, ...]  # what comes out, in the unit


@dataclass(frozen=True)
class Box:
    """The grid of all combinations of one or two parameters, the last one fastest."""

    axes: tuple[Axis, ...]
    theta: torch.Tensor  # (points, p)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(len(axis.changes) for axis in self.axes)


@dataclass(frozen=True)
class Trial:
    """How every run is tried: on which plant, with how many rollouts at every point of the box."""

    plant: PlantName = "nominal"
    effects: tuple[str, ...] = ()
    episodes: int = 100
    seed: int = 0
    sampled: float | None = None  # as `load_controller` takes it


@dataclass(frozen=True)
class Statistic:
    """One number at every point of the box, or one for the whole box; no interval when there is only one run."""

    value: Any  # nested lists in the shape of the box, or a number
    low: Any = None
    high: Any = None


@dataclass(frozen=True)
class WorstCase:
    """The lowest value of a statistic over the box, and the parameters where it is found."""

    statistic: Statistic
    parameters: dict[str, float]


@dataclass(frozen=True)
class Group:
    """Runs that differ by their seeds, on every point of the box."""

    label: str
    runs: tuple[str, ...]
    statistics: dict[str, Statistic]  # by the names in STATISTICS
    worst: dict[str, WorstCase]  # by the names in WORST_CASES


@dataclass(frozen=True)
class Robustness:
    """All groups over one box, as the JSON file has it."""

    robot: str
    plant: str
    effects: tuple[str, ...]
    episodes: int  # of every run at every point
    seed: int
    axes: tuple[Axis, ...]
    groups: tuple[Group, ...]

    def to_json(self) -> dict[str, Any]:
        """Built-in types only."""
        return dataclasses.asdict(self)


def measure(
    folders: Sequence[Path],
    ranges: Sequence[Range],
    trial: Trial,
    generated: str | None = None,
    announce: Callable[[str], None] = lambda _: None,
) -> Robustness:
    """Roll out every run over the box of the ranges. SolverError for runs of different robots, or one given twice."""
    if not folders:
        raise SolverError("name at least one run folder")
    paths = [folder.resolve() for folder in folders]
    twice = [str(path) for path in paths if paths.count(path) > 1]
    if twice:
        raise SolverError(f"{twice[0]} is named twice; its rollouts would count as those of two seeds")
    require_episodes(trial.episodes)
    loaded = [load_controller(folder, generated, trial.sampled) for folder in folders]
    names = sorted({problem.robot.name for problem, _, _ in loaded})
    if len(names) > 1:
        raise SolverError(f"the runs are of different robots, {', '.join(names)}; give those of one at a time")
    if len({problem.robot.hash for problem, _, _ in loaded}) > 1:
        raise SolverError(f"the runs are of different artifacts of {names[0]}; give those of one model at a time")
    contents = [hashlib.sha256((folder / CHECKPOINT).read_bytes()).digest() for folder in folders]
    for number, content in enumerate(contents):
        if content in contents[:number]:
            first = folders[contents.index(content)]
            raise SolverError(
                f"{folders[number]} holds what {first} holds; its rollouts would count as those of two seeds"
            )
    box = make_box(loaded[0][0], ranges)
    samples: dict[str, dict[str, Samples]] = {}
    for number, (folder, (problem, act, label)) in enumerate(zip(folders, loaded, strict=True), start=1):
        announce(f"{number} of {len(folders)}: {folder} ({label})")
        samples.setdefault(label, {})[str(folder)] = sweep(problem, act, box, trial)
    effects = tuple(all_effects(trial.plant, trial.effects))
    groups = tuple(summarise(label, tuple(runs), list(runs.values()), box) for label, runs in samples.items())
    return Robustness(names[0], trial.plant, effects, trial.episodes, trial.seed, box.axes, groups)


def make_box(problem: Problem, ranges: Sequence[Range]) -> Box:
    """The grid of one or two ranges. SolverError for other numbers, unknown parameters and impossible values."""
    names = [each.parameter for each in ranges]
    if not 1 <= len(set(names)) == len(names) <= 2:
        raise SolverError(f"the parameters are {' '.join(names) or 'none'}; give one, or two different ones")
    for each in ranges:
        if each.points < 2 or not math.isfinite(each.start) or not each.start < each.end < math.inf:
            raise SolverError(
                f"{each.points} points from {each.start:g} to {each.end:g} are no range of {each.parameter}; give at "
                "least two points and a --from below the --to"
            )
    spread = [np.linspace(each.start, each.end, each.points).tolist() for each in ranges]
    words = [
        [f"{each.parameter}={change:+.9g}" if each.added else f"{each.parameter}={change:.9g}x" for change in changes]
        for each, changes in zip(ranges, spread, strict=True)
    ]
    theta = torch.stack([changed_parameters(problem, list(row)) for row in product(*words)])
    axes = []
    for each, changes in zip(ranges, spread, strict=True):
        parameter = next(known for known in problem.robot.metadata.parameters if known.name == each.parameter)
        values = [parameter.value + change if each.added else parameter.value * change for change in changes]
        axes.append(Axis(each.parameter, parameter.unit, parameter.value, each.added, tuple(changes), tuple(values)))
    return Box(tuple(axes), theta)


def sweep(problem: Problem, act: Controller, box: Box, trial: Trial) -> Samples:
    """The rollouts of one controller, from the same starts at every point."""
    starts = sample_starts(problem, trial.episodes, trial.seed)
    found = []
    for theta in torch.split(box.theta, max(1, ROLLOUTS_AT_ONCE // trial.episodes)):
        plant = make_plant(trial.plant, problem, theta.repeat_interleave(trial.episodes, 0), trial.effects, trial.seed)
        result = rollouts(problem, act, starts.repeat(len(theta), 1), plant)
        each = torch.stack([result.returns, result.state_reward, result.action_reward, result.success.float()])
        found.append(each.reshape(4, len(theta), trial.episodes))
    samples = torch.cat(found, 1).double().numpy()
    broken = np.argwhere(~np.isfinite(samples).all((0, 2)))
    if len(broken):
        raise left_all_bounds(problem, box.theta[broken[0, 0]])
    return samples


def summarise(label: str, runs: tuple[str, ...], samples: Sequence[Samples], box: Box) -> Group:
    """Statistics of a group with the intervals of a bootstrap over its runs."""
    pooled = np.stack(samples)
    value = statistics(pooled)
    lowest = {name: value[name].argmin() for name in WORST_CASES}

    def all_of(pooled: Array) -> Array:
        """Every statistic at every point, and below them the lowest of each in another row."""
        found = np.stack(list(statistics(pooled).values()))
        return np.hstack([found, found.min(1, keepdims=True)])

    bounds = bootstrap(all_of, pooled)

    def nested(row: Array) -> Any:
        return row.reshape(box.shape).tolist()

    stated, worst = {}, {}
    for i, name in enumerate(STATISTICS):
        limits = () if bounds is None else tuple(bounds[:, i])
        stated[name] = Statistic(nested(value[name]), *(nested(each[:-1]) for each in limits))
        if name in lowest:
            at = lowest[name]
            places = np.unravel_index(at, box.shape)
            parameters = {axis.parameter: axis.values[k] for axis, k in zip(box.axes, places, strict=True)}
            worst[name] = WorstCase(
                Statistic(float(value[name][at]), *(float(each[-1]) for each in limits)), parameters
            )
    return Group(label, runs, stated, {name: worst[name] for name in WORST_CASES})


def statistics(pooled: Array) -> dict[str, Array]:
    """From samples (runs, 4, points, episodes), every one of STATISTICS (points,), over all runs and episodes."""
    _, kinds, points, _ = pooled.shape
    together = pooled.transpose(1, 2, 0, 3).reshape(kinds, points, -1)
    found: dict[str, Array] = {}
    for quantity, values in zip(QUANTITIES, together[:3], strict=True):
        rows = np.percentile(values, PERCENTILES, axis=1)
        found |= {f"{quantity}_{share}": row for share, row in zip(PERCENTILES, rows, strict=True)}
    returns, success = together[0], together[3]
    found |= {"return_mean": returns.mean(1), "return_worst": returns.min(1), "success_rate": success.mean(1)}
    return found


def bootstrap(function: Callable[[Array], Array], pooled: Array) -> Array | None:
    """Percentile interval (2, ...) of function(runs resampled with replacement); None for a single run.

    Few runs make few different samples, each of which is computed once.
    """
    runs = len(pooled)
    if runs < 2:
        return None
    drawn = np.sort(np.random.default_rng(0).integers(runs, size=(RESAMPLES, runs)), axis=1)
    different, which = np.unique(drawn, axis=0, return_inverse=True)
    found = np.stack([function(pooled[picked]) for picked in different])
    bounds: Array = np.percentile(found[which.ravel()], CONFIDENCE, axis=0)
    return bounds
