"""Robustness of policies over a grid of physical parameters that they do not know.

Runs that differ by their seeds only form one group.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.evaluation.parameter_grid import GridAxis, ParameterGrid, ParameterRange, make_grid
from solver.evaluation.statistics import Group, Samples, summarise
from solver.jobs.engines import Here, results
from solver.jobs.portions import PolicyReference, policy_reference
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.rollouts import require_episodes, rollouts, sample_starts
from solver.problem.parameters import left_all_bounds
from solver.problem.problem import Problem
from solver.runs.kinds import kind_of
from solver.runs.shipped import run_folder
from solver.serial import serial_torch

Array = NDArray[Any]
ROLLOUTS_AT_ONCE = 1024  # in one job
FEW = 2048  # rollouts of all policies: fewer are made here, because starting other processes takes longer
WORDS = {
    "return_25": "25th percentile of the return",
    "return_50": "median return",
    "return_mean": "mean return",
    "return_worst": "return of a single rollout",
    "success_rate": "success rate, %",
}


@dataclass(frozen=True)
class Trial:
    """Evaluation of every run at every point of the grid."""

    plant: PlantName = "nominal"
    effects: tuple[str, ...] = ()
    episodes: int = 100
    seed: int = 0
    reaction_periods: float | None = None  # as in `load_rollout_policy`
    observer: bool = False  # as in `solver.evaluation.evaluation.evaluate`


@dataclass(frozen=True)
class Robustness:
    """Results of all groups over one grid: the content of the JSON file."""

    robot: str
    plant: str
    effects: tuple[str, ...]
    observer: bool
    episodes: int  # of every run at every point
    seed: int
    axes: tuple[GridAxis, ...]
    groups: tuple[Group, ...]

    def to_json(self) -> dict[str, Any]:
        """Content in built-in types."""
        return dataclasses.asdict(self)

    def table(self) -> str:
        """Lowest result of every group over all points, with its interval and its parameters."""
        lines = []
        for group in self.groups:
            lines.append(f"{group.label}, {len(group.runs)} {'run' if len(group.runs) == 1 else 'runs'}")
            for name, case in group.worst.items():
                share, form = (100.0, ".0f") if name == "success_rate" else (1.0, ".2f")
                number = case.statistic
                interval = ""
                if number.low is not None:
                    interval = f"  [{share * number.low:{form}}, {share * number.high:{form}}]"
                where = ", ".join(f"{parameter} {value:.4g}" for parameter, value in case.parameters.items())
                lines.append(f"  lowest {WORDS[name]:<32}{share * number.value:>8{form}}{interval}   at {where}")
        return "\n".join(lines)


def measure(
    folders: Sequence[Path],
    ranges: Sequence[ParameterRange],
    trial: Trial,
    generated: str | None = None,
    announce: Callable[[str], None] = lambda _: None,
    executor: Executor | None = None,
) -> Robustness:
    """Robustness of runs over the grid of the ranges. folders: of runs, or names of shipped policies.

    executor: from `solver.jobs.engines.workers`, by default this process. The numbers do not depend on it. Raises
    SolverError for runs of different robots or artifacts, and for a run that is given twice.
    """
    if not folders:
        raise SolverError("name at least one run folder")
    places = list(map(run_folder, folders))
    paths = [place.resolve() for place in places]
    twice = [str(path) for path in paths if paths.count(path) > 1]
    if twice:
        raise SolverError(f"{twice[0]} is named twice, and its rollouts would count for two seeds")
    require_episodes(trial.episodes)
    policies = [policy_reference(folder, generated, trial.reaction_periods) for folder in folders]
    loaded = [policy.load() for policy in policies]
    names = sorted({policy.problem.robot.name for policy in loaded})
    if len(names) > 1:
        raise SolverError(f"the runs are of different robots, {', '.join(names)}; name runs of one robot")
    if len({policy.problem.robot.hash for policy in loaded}) > 1:
        raise SolverError(f"the runs are of different artifacts of {names[0]}; name runs of one artifact")
    contents = [policy.checkpoint for policy in policies]
    for number, content in enumerate(contents):
        if content in contents[:number]:
            first = folders[contents.index(content)]
            raise SolverError(
                f"{folders[number]} holds the same run as {first}, and its rollouts would count for two seeds"
            )
    grid = make_grid(loaded[0].problem, ranges)
    few = len(policies) * len(grid.theta) * trial.episodes <= FEW
    place = Here() if executor is None or few else executor
    jobs = [submit(place, policy, grid, trial) for policy in policies]
    samples: dict[str, dict[str, Samples]] = {}
    group_of = _labels(places, [policy.label for policy in loaded])
    for number, (folder, policy, parts) in enumerate(zip(folders, loaded, jobs, strict=True)):
        announce(f"{number + 1} of {len(folders)}: {folder} ({policy.label})")
        samples.setdefault(group_of[number], {})[str(folder)] = gathered(policy.problem, grid, parts)
    effects = tuple(all_effects(trial.plant, trial.effects))
    groups = tuple(summarise(label, tuple(runs), list(runs.values()), grid) for label, runs in samples.items())
    return Robustness(names[0], trial.plant, effects, trial.observer, trial.episodes, trial.seed, grid.axes, groups)


def _labels(folders: Sequence[Path], labels: Sequence[str]) -> list[str]:
    """Label of the group of every run. Runs that differ by their seeds only share a group.

    A group whose label belongs to another group too gets the name of its first folder.
    """
    keys = [(label, _identity_but_seed(folder)) for label, folder in zip(labels, folders, strict=True)]
    first = dict(reversed([*zip(keys, folders, strict=True)]))
    shared = Counter(label for label, _ in first)
    return [f"{key[0]} ({first[key].name})" if shared[key[0]] > 1 else key[0] for key in keys]


def _identity_but_seed(folder: Path) -> str:
    return kind_of(folder).training.read(folder).identity_but_seed()


def submit(executor: Executor, policy: PolicyReference, grid: ParameterGrid, trial: Trial) -> list[Future[Array]]:
    """Jobs with the rollouts of one policy, from the same starts at every point. A job has some of the points."""
    count = -(-len(grid.theta) * trial.episodes // ROLLOUTS_AT_ONCE)
    points = torch.tensor_split(grid.theta, min(count, len(grid.theta)))
    return [executor.submit(portion, policy, trial, theta.numpy()) for theta in points]


def portion(policy: PolicyReference, trial: Trial, theta: Array) -> Array:
    """Returns, their state and action parts, and successes (4, K, episodes) at K points theta (K, p): one job."""
    with serial_torch():
        problem, act, _ = policy.load()
        starts = sample_starts(problem, trial.episodes, trial.seed)
        robots = torch.from_numpy(theta).repeat_interleave(trial.episodes, 0)
        plant = make_plant(trial.plant, problem, robots, trial.effects, trial.seed)
        result = rollouts(problem, act, starts.repeat(len(theta), 1), plant, observed=trial.observer)
        rows = torch.stack([result.returns, result.state_reward, result.action_reward, result.success.float()])
        return rows.reshape(4, len(theta), trial.episodes).numpy()


def gathered(problem: Problem, grid: ParameterGrid, parts: Sequence[Future[Array]]) -> Samples:
    """Samples of all points. Raises SolverError for rollouts whose states are not finite."""
    samples = np.concatenate(list(results(parts)), 1).astype(np.float64)
    broken = np.argwhere(~np.isfinite(samples).all((0, 2)))
    if len(broken):
        raise left_all_bounds(problem, grid.theta[broken[0, 0]])
    return samples
