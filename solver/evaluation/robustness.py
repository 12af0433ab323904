"""Robustness of policies: rollouts over a grid of physical parameters.

The policies do not know the parameters, apart from those that their training gave, within their ranges. Runs that
differ only in their seeds form one group.
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

from modelgen.errors import warn
from solver.errors import SolverError
from solver.evaluation import begun, require_observer
from solver.evaluation.statistics import (
    Axis,
    Group,
    ParameterBox,
    ParameterRange,
    Samples,
    make_box,
    summarise,
)
from solver.jobs.engines import Here, PolicyReference, policy_reference, results
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.outcome import require_episodes, rollouts
from solver.problem import Problem
from solver.problem.parameters import left_all_bounds
from solver.runs.kinds import description_of, names_to_estimate
from solver.runs.shipped import run_folder
from solver.streams import EVALUATION_SEED, serial_torch

Array = NDArray[Any]
AT_ONCE = 1024  # rollouts in one job
ERRORS = (0.4, 1.6, 25)  # of every parameter in the picture: first and last multiple, and points
NEAR, RELIABLE = 0.2, 0.95  # errors and success rate of `shares`
WORDS = {
    "return_25": "25th percentile of the return",
    "return_50": "median return",
    "return_mean": "mean return",
    "return_worst": "return of a single rollout",
    "success_rate": "success rate, %",
}


@dataclass(frozen=True)
class Trial:
    """Settings of the evaluation of every run at every point of the grid."""

    plant: PlantName = "nominal"
    effects: tuple[str, ...] = ()
    episodes: int = 100
    seed: int = EVALUATION_SEED
    reaction_periods: float | None = None  # see `load_rollout_policy`
    observer: bool = False  # see `solver.evaluation.evaluate`
    estimate: tuple[str, ...] = ()  # likewise
    blind: bool = False  # likewise
    seconds: float | None = None  # of every rollout; by default the longest horizon of the runs


@dataclass(frozen=True)
class Robustness:
    """Results of all groups over one grid."""

    robot: str
    plant: str
    effects: tuple[str, ...]
    observer: bool
    episodes: int  # of every run at every point
    seed: int
    axes: tuple[Axis, ...]
    groups: tuple[Group, ...]
    reaction_periods: float | None = None  # of the policies; None as in training
    estimate: tuple[str, ...] = ()  # parameters that the observer estimated: names, or `all`
    blind: bool = False  # whether policies that can be told parameters were told the nominal ones

    def to_json(self) -> dict[str, Any]:
        """Content of the JSON file."""
        return dataclasses.asdict(self)

    def table(self) -> str:
        """Lowest result of every group over all points, with its interval and its parameters, as text."""
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
    at_once: int = AT_ONCE,
) -> Robustness:
    """Robustness of runs over the grid of one or two parameter ranges.

    folders: of runs, or names of shipped policies. generated: folder of artifacts. announce: receives lines on
    progress.
    executor: runs the rollouts, see `solver.jobs.engines.workers`; by default this process, as for two jobs or fewer,
    because starting others would take longer. Results do not depend on it. at_once: rollouts in one job.

    Raises SolverError for runs of different robots or artifacts, and for a run that is given twice.
    """
    require_observer(trial.estimate, trial.observer)
    if not folders:
        raise SolverError("there is no run; give at least one run folder")
    paths = [run_folder(folder).resolve() for folder in folders]
    twice = [str(path) for path in paths if paths.count(path) > 1]
    if twice:
        raise SolverError(f"{twice[0]} is given twice, so its rollouts would count as two seeds; give it once")
    require_episodes(trial.episodes)
    effects = tuple(all_effects(trial.plant, trial.effects))
    policies = [policy_reference(folder, generated, trial.reaction_periods) for folder in folders]
    loaded = [reference.load() for reference in policies]
    names = sorted({policy.problem.robot.name for policy in loaded})
    if len(names) > 1:
        raise SolverError(f"the runs belong to different robots, {', '.join(names)}; give runs of one robot")
    if len({policy.problem.robot.hash for policy in loaded}) > 1:
        raise SolverError(f"the runs belong to different artifacts of {names[0]}; give runs of one artifact")
    contents = [reference.checkpoint for reference in policies]
    for number, content in enumerate(contents):
        if content in contents[:number]:
            first = folders[contents.index(content)]
            raise SolverError(
                f"{folders[number]} is a copy of {first}, so its rollouts would count as two seeds; give one of them"
            )
    box = make_box(loaded[0].problem, ranges)
    if trial.seconds is None:
        trial = dataclasses.replace(trial, seconds=max(policy.problem.horizon for policy in loaded))
    samples: dict[str, dict[str, Samples]] = {}
    few = len(policies) * len(box.theta) * trial.episodes <= 2 * at_once
    chosen = Here() if executor is None or few else executor
    jobs = [submit(chosen, reference, box, trial, at_once) for reference in policies]
    labels = _group_labels(folders, [policy.label for policy in loaded])
    for number, (folder, label, parts) in enumerate(zip(folders, labels, jobs, strict=True), start=1):
        announce(f"{number} of {len(folders)}: {folder} ({label})")
        samples.setdefault(label, {})[str(folder)] = gathered(loaded[0].problem, box, parts)
    groups = tuple(summarise(label, tuple(runs), list(runs.values()), box) for label, runs in samples.items())
    conditions = trial.plant, effects, trial.observer, trial.episodes, trial.seed
    shown = trial.reaction_periods, trial.estimate, trial.blind
    return Robustness(names[0], *conditions, box.axes, groups, *shown)


def measure_each(
    folders: Sequence[Path],
    trial: Trial,
    generated: str | None = None,
    announce: Callable[[str], None] = lambda _: None,
    executor: Executor | None = None,
) -> list[Robustness]:
    """Robustness of runs against the error of every parameter that has a tolerance, one after the other, as `measure`.

    Raises SolverError for a robot without such a parameter.
    """
    if not folders:
        raise SolverError("there is no run; give at least one run folder")
    metadata = policy_reference(folders[0], generated, trial.reaction_periods).load().problem.robot.metadata
    bounded = [p for p in metadata.parameters if p.lower < p.upper and p.name not in metadata.references]
    for p in bounded:
        if not p.value:
            warn(
                f"{p.name} is 0 in the model, and no factor changes it: it is left out. "
                f"`--parameter {p.name} --from {p.lower:g} --to {p.upper:g}` makes it wrong"
            )
    inner = [p.name for p in bounded if p.value]
    if not inner:
        raise SolverError(
            f"no parameter of {metadata.name} has a tolerance in its model file; name one with --parameter"
        )
    ranges = [ParameterRange(name, *ERRORS, added=False) for name in inner]
    return [measure(folders, [each], trial, generated, announce, executor) for each in ranges]


def shares(results: Sequence[Robustness]) -> dict[str, float]:
    """By group: share of the points with an error of at most NEAR whose success rate is at least RELIABLE."""
    points: dict[str, list[bool]] = {}
    for result in results:
        (axis,) = result.axes
        near = [abs(change - 1.0) < NEAR + 1e-6 for change in axis.changes]
        for group in result.groups:
            rates = group.statistics["success_rate"].value
            points.setdefault(group.label, []).extend(
                rate >= RELIABLE for rate, is_near in zip(rates, near, strict=True) if is_near
            )
    return {label: float(np.mean(each)) for label, each in points.items()}


def _group_labels(folders: Sequence[Path], labels: Sequence[str]) -> list[str]:
    """Label of the group of every run. Runs that differ only in their seeds have the same label.

    Two groups with the same label get the folders of their first runs in addition.
    """
    groups = [
        (label, description_of(folder).identity_but_seed()) for label, folder in zip(labels, folders, strict=True)
    ]
    first = {group: folders[groups.index(group)].name for group in groups}
    count = Counter(label for label, _ in first)
    return [f"{group[0]} ({first[group]})" if count[group[0]] > 1 else group[0] for group in groups]


def submit(
    executor: Executor, reference: PolicyReference, box: ParameterBox, trial: Trial, at_once: int = AT_ONCE
) -> list[Future[Array]]:
    """Jobs with the rollouts of one policy from the same starts at every point, several points in one job."""
    count = -(-len(box.theta) * trial.episodes // at_once)
    points = torch.tensor_split(box.theta, min(count, len(box.theta)))
    return [executor.submit(portion, reference, trial, theta.numpy()) for theta in points]


def portion(reference: PolicyReference, trial: Trial, theta: Array) -> Array:
    """Returns, their state and action parts, and successes (4, K, episodes) at K points theta (K, p): a job."""
    references, points = description_of(reference.run).reference_names, torch.from_numpy(theta)
    with serial_torch():
        problem, act, _ = reference.load()
        begin = [
            begun(problem, point, problem.theta if trial.blind else point, references, trial.episodes, trial.seed)
            for point in points
        ]
        robots = torch.cat([each.expand(trial.episodes, -1) for _, each in begin])
        seeds = [trial.seed] * len(points)  # every point has the noise of an evaluation there
        plant = make_plant(trial.plant, problem, robots, trial.effects, seeds)
        rows = torch.cat([starts for starts, _ in begin])
        estimate = names_to_estimate(reference.run, trial.estimate)
        how: dict[str, Any] = {"observed": trial.observer, "estimate": estimate, "blind": trial.blind}
        result = rollouts(problem, act, rows, plant, trial.seconds, **how)
    if problem.context is not None:
        for point in points:
            problem.context.require_within(point, apart_from={*problem.context.names} - {*references})
    numbers = torch.stack([result.returns, result.state_reward, result.action_reward, result.success.float()])
    return numbers.reshape(4, len(theta), trial.episodes).numpy()


def gathered(problem: Problem, box: ParameterBox, parts: Sequence[Future[Array]]) -> Samples:
    """Results of the jobs of all points. Raises SolverError if states are not finite."""
    samples = np.concatenate(list(results(parts)), 1).astype(np.float64)
    broken = np.argwhere(~np.isfinite(samples).all((0, 2)))
    if len(broken):
        raise left_all_bounds(problem, box.theta[broken[0, 0]])
    return samples
