"""Limit of a task: a few of its starts, the best returns from them, and the gap of a trained policy to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import ndtr, ndtri

import modelgen
from modelgen.arrays import Array
from modelgen.artifact.folder import known
from modelgen.errors import suggestion
from modelgen.metadata import Metadata
from modelgen.tangent import Tangent
from solver.errors import SolverError
from solver.oracles.search import search
from solver.oracles.trajectory import FirstMotion, PlannedMotion, require_within
from solver.plants.outcome import Controller, Rollouts, decimals, rollouts, succeeded, without_input
from solver.plants.plant import Nominal
from solver.problem import UNIFORM, Problem
from solver.problem.parameters import Change, at_references, changed_parameters
from solver.problem.robots import load_robot
from solver.runs.kinds import kind_in, load_rollout_policy, told_and_untold
from solver.runs.shipped import names, run_folder

INSIDE = 0.99  # of a limit that clips: starts lie within it, so that a motion can start there
DESIGNS = 256  # random designs, of which the most even one is used
MOST = 100  # starts
TINY = 1e-300  # rad


@dataclass(frozen=True)
class StartLimit:
    """Best motion from one start, compared with the robot without input and with a run."""

    start: Array  # (n,)
    best: PlannedMotion
    solved: int  # guesses that led to a local optimum
    guesses: int
    at_target: bool  # whether the best motion is a success by the rule of the evaluation
    idle_return: float  # of the robot without input
    run_return: float | None = None
    run_held: bool = False  # whether the simulation clipped a state of the run, which the optimisation may not do

    @property
    def gap(self) -> float | None:
        """Limit minus the return of the run. It is negative if no search found a motion as good as the run's."""
        return None if self.run_return is None else self.best.reward - self.run_return

    @property
    def gap_percent(self) -> float | None:
        """Gap in % of limit - idle return, or None if the limit is not above the idle return."""
        return percent_of_gain(self.gap, self.best.reward, self.idle_return)


@dataclass(frozen=True)
class Limit:
    """Limits from all starts, and their means."""

    robot: str
    state_names: tuple[str, ...]
    parameters: dict[str, float]
    starts: tuple[StartLimit, ...]
    label: str | None = None  # of the run

    def __repr__(self) -> str:
        gap = "" if self.gap is None else f", {self.label}: gap {self.gap:.2f}"
        return f"<limit of {self.robot}: return {self.reward:.2f} over {len(self.starts)} starts{gap}>"

    @property
    def reward(self) -> float:
        """Mean of the best returns."""
        return float(np.mean([start.best.reward for start in self.starts]))

    @property
    def idle_return(self) -> float:
        """Mean return of the robot without input."""
        return float(np.mean([start.idle_return for start in self.starts]))

    @property
    def run_return(self) -> float | None:
        """Mean return of the run, or None without a run."""
        returns = [start.run_return for start in self.starts if start.run_return is not None]
        return float(np.mean(returns)) if returns else None

    @property
    def gap(self) -> float | None:
        """Mean limit minus mean return of the run, or None without a run."""
        return None if self.run_return is None else self.reward - self.run_return

    @property
    def gap_percent(self) -> float | None:
        """Gap in % of limit - idle return, or None if the limit is not above the idle return."""
        return percent_of_gain(self.gap, self.reward, self.idle_return)

    @property
    def at_target(self) -> bool:
        """Whether the best motions from all starts end at the target."""
        return all(start.at_target for start in self.starts)

    @property
    def worst(self) -> int:
        """Index of the start with the largest gap or, without a run, with the lowest limit."""
        return int(np.argmax([-start.best.reward if start.gap is None else start.gap for start in self.starts]))

    def results(self) -> dict[str, Any]:
        """Content of `solver limit --json`: everything except the motions."""
        about: dict[str, Any] = {"limit": self.reward, "idle_return": self.idle_return}
        about["guess"] = self.starts[self.worst].best.guess
        about |= {name: sum(getattr(start, name) for start in self.starts) for name in ("solved", "guesses")}
        about["at_target"] = self.at_target
        if self.run_return is not None:
            about |= {"label": self.label, "run_return": self.run_return, "gap": self.gap}
            about["gap_percent"] = self.gap_percent
        about["worst_start"] = self.worst
        about["starts"] = [self._result(start) for start in self.starts]
        return about

    def warnings(self) -> list[str]:
        """Warnings about motions that do not end at the target, and about searches worse than the run's own motion."""
        count, texts = len(self.starts), []
        away = sum(not start.at_target for start in self.starts)
        if away:
            which = "" if count == 1 else f" from {away} of {count} starts"
            texts.append(
                f"the best motion found{which} does not end at the target: it is out of reach within the horizon, or "
                "not worth its cost. Lengthen the horizon, raise the input limit, or search longer with --guesses."
            )
        better = sum(start.gap is not None and start.gap < 0.0 for start in self.starts)
        if better:
            which = "" if count == 1 else f" from {better} of {count} starts"
            texts.append(f"no search{which} found a motion as good as the run's own; give more --guesses.")
        return texts

    def text(self) -> str:
        """One line with the means over the starts, and one line for every start if there are several."""
        count, digits = len(self.starts), decimals(self.reward)
        solved, guesses = sum(start.solved for start in self.starts), sum(start.guesses for start in self.starts)
        about = f"from {self.starts[self.worst].best.guess}" if count == 1 else f"mean of {count} starts"
        line = f"limit {self.reward:.{digits}f} ({about}; {solved} of {guesses} searches)"
        line += f"   idle {self.idle_return:.{digits}f}"
        if self.run_return is not None and self.gap is not None:
            line += f"   {self.label}: return {self.run_return:.{digits}f}, gap {self.gap:.{digits}f}"
            line += _percent(self.gap_percent)
        return "\n".join([line, *(self._line(k, digits) for k in range(count) if count > 1)])

    def _line(self, k: int, digits: int) -> str:
        """Line of one start. The worst one is marked."""
        start = self.starts[k]
        pairs = zip(self.state_names, start.start.tolist(), strict=True)
        where = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
        line = f"  start {k} ({where}): limit {start.best.reward:.{digits}f} (from {start.best.guess})"
        line += f", idle {start.idle_return:.{digits}f}"
        if start.run_return is not None and start.gap is not None:
            line += f", return {start.run_return:.{digits}f}, gap {start.gap:.{digits}f}{_percent(start.gap_percent)}"
        line += "" if start.at_target else ", not at the target"
        return line + (", worst" if k == self.worst else "")

    def _result(self, limit: StartLimit) -> dict[str, Any]:
        about: dict[str, Any] = {"start": dict(zip(self.state_names, limit.start.tolist(), strict=True))}
        about |= {"limit": limit.best.reward, "idle_return": limit.idle_return, "guess": limit.best.guess}
        about |= {"solved": limit.solved, "guesses": limit.guesses, "at_target": limit.at_target}
        if limit.run_return is not None:
            about |= {"run_return": limit.run_return, "run_held": limit.run_held}
            about |= {"gap": limit.gap, "gap_percent": limit.gap_percent}
        return about


def _percent(gap: float | None) -> str:
    return "" if gap is None else f" ({gap:.1f} %)"


def percent_of_gain(gap: float | None, limit: float, idle_return: float) -> float | None:
    """Gap in % of limit - idle return. None without a gap, or if the limit is not above the idle return."""
    return None if gap is None or limit <= idle_return else 100.0 * gap / (limit - idle_return)


def design(metadata: Metadata, count: int) -> Array:
    """At most `count` starts (N, n): quantiles of the Gaussian, or only its mean if it has no spread.

    All states have the same quantiles in different orders, of least discrepancy among DESIGNS. The quantiles are scaled
    to variance 1, so that a quadratic function has nearly its mean over the distribution.

    A rotation is turned by a vector of such quantiles; with a deviation of pi they are uniform over the rotations.

    Raises SolverError for a mean beyond a limit, and for a count out of range.
    """
    if not 1 <= count <= MOST:
        raise SolverError(f"--starts is {count}; give a number from 1 to {MOST}")
    mean, tangent = np.array(metadata.task.start_mean), Tangent(metadata)
    deviation = np.array(metadata.task.start_deviation)[tangent.states]
    require_within(metadata, mean, "the mean start")
    spread = np.flatnonzero(deviation > 0.0)
    if count == 1 or not len(spread):
        return mean[None]
    from scipy.spatial.transform import Rotation as Turned

    starts, moved = np.tile(mean, (count, 1)), np.zeros((count, tangent.size))
    moved[:, spread] = _normal(count, len(spread))
    for i, place in zip(*tangent.plain, strict=True):
        starts[:, i] += deviation[place] * moved[:, place]
        reach = np.inf if metadata.states[i].continuous else INSIDE * metadata.states[i].limit
        starts[:, i] = np.clip(starts[:, i], -reach, reach) if deviation[place] else mean[i]
    for rotation, places in tangent.rotations:
        entries, size = rotation.quaternion, float(deviation[places][0])
        turned = Turned.from_quat(starts[:, entries], scalar_first=True)
        if size >= UNIFORM:
            turned = Turned.from_quat(_uniform(ndtr(moved[:, places])), scalar_first=True)
        elif size:
            turned = turned * Turned.from_rotvec(size * moved[:, places])
        goal = Turned.from_quat(np.array(metadata.task.target)[entries], scalar_first=True)
        away = (goal.inv() * turned).as_rotvec()
        angle = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), TINY)
        inside = Turned.from_rotvec(away * np.minimum(1.0, INSIDE * rotation.limit / angle))
        starts[:, entries] = (goal * inside).as_quat(scalar_first=True)
    return starts


def _uniform(share: Array) -> Array:
    """Unit quaternions (N, 4) of three shares (N, 3) from 0 to 1: uniform over the rotations (Shoemake, 1992)."""
    first, angles = share[:, :1], 2.0 * np.pi * share[:, 1:]
    low, high = np.sqrt(1.0 - first), np.sqrt(first)
    sine, cosine = np.sin(angles), np.cos(angles)
    return np.hstack([low * sine[:, :1], low * cosine[:, :1], high * sine[:, 1:], high * cosine[:, 1:]])


def _normal(count: int, dimensions: int) -> Array:
    """Standard normal samples (count, dimensions). All columns have the same quantiles."""
    from scipy.stats import qmc  # takes longer to import than a preview

    rng, strata = np.random.default_rng(0), (np.arange(count) + 0.5) / count
    designs = [np.column_stack([rng.permutation(strata) for _ in range(dimensions)]) for _ in range(DESIGNS)]
    samples: Array = ndtri(min(designs, key=qmc.discrepancy))
    samples /= samples.std(axis=0)
    return samples


def find_limit(
    subject: str, changes: Mapping[str, Change], guesses: int, seed: int, generated: str | None = None, starts: int = 5
) -> Limit:
    """Limit of the task of a robot, and the gap of a run to it.

    subject: name of a robot, run folder, or name of a shipped policy.
    changes: parameters that differ from their nominal values. A family is told those that its training gave.
    guesses: number of random motions from which searches start, shared among the starts. seed: of these motions.
    starts: largest number of starts, see `design`.

    Raises SolverError for an unknown run, for a reference out of its range, for a start beyond the state limits, and if
    no guess leads to a motion within the limits.
    """
    if guesses < 0:
        raise SolverError(f"--guesses is {guesses}; give 0 or more")
    act: Controller | None = None
    label, unknown = None, dict(changes)
    if kind_in(run_folder(subject)) is not None:
        told, unknown = told_and_untold(subject, changes)
        problem, act, label = load_rollout_policy(subject, generated, told=told)
        folder: str | Path | None = problem.robot.folder.parent
    elif Path(subject).is_dir() and "/" in subject:
        raise SolverError(f"{subject} is not a run folder; give one that `solver train` wrote, or the name of a robot")
    else:
        _require_no_misspelt_policy(subject, generated)
        robot, folder = load_robot(subject, "cpu", generated), generated
        told = {name: unknown.pop(name) for name in robot.metadata.references if name in changes}
        problem = at_references(robot, told)
    theta = changed_parameters(problem, unknown)
    chosen = design(problem.robot.metadata, starts)
    kernels = modelgen.load(problem.robot.name, backend="casadi", directory=folder).with_nominal(
        [parameter.value for parameter in problem.robot.metadata.parameters]
    )
    begin = problem.confine(torch.tensor(chosen, dtype=torch.float32))
    resting = rollouts(problem, without_input(problem), begin, Nominal(problem, theta)).returns.tolist()
    own = None if act is None else rollouts(problem, act, begin, Nominal(problem, theta))
    motions = [] if own is None else [_own_motion(problem, own, k, start) for k, start in enumerate(chosen)]
    parameters = theta.double().numpy() if changes else None
    trim = None if problem.action_cost.slope is None else problem.trim.double().numpy()
    searches = search(kernels, parameters, chosen, guesses, seed, motions, problem.horizon, trim)
    limits = [
        StartLimit(
            start,
            motion,
            searches.solved[k],
            searches.tried[k],
            bool(succeeded(problem, problem.confine(torch.tensor(motion.x, dtype=torch.float32))[:, None], theta)[0]),
            resting[k],
            None if own is None else float(own.returns[k]),
            own is not None and bool(own.at_limit[k].any()),
        )
        for k, (start, motion) in enumerate(zip(chosen, searches.motions(), strict=True))
    ]
    named = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return Limit(problem.robot.name, problem.robot.state_names, named, tuple(limits), label)


def _require_no_misspelt_policy(subject: str, generated: str | None) -> None:
    """Raises SolverError for a name that is more similar to a shipped policy than to a robot."""
    robots, policies = known(generated), names()
    near = "" if subject in robots else suggestion(subject, [*robots, *policies])
    if any(f"`{policy}`" in near for policy in policies):
        raise SolverError(f"{subject} is neither a run folder, nor a robot, nor a policy of `solver policies`.{near}")


def _own_motion(problem: Problem, result: Rollouts, k: int, start: Array) -> FirstMotion:
    """Rollout of a policy from the k-th start, as a guess with unwrapped angles."""
    x = result.x[:, k].double().numpy()
    for i in problem.continuous:
        x[:, i] = np.unwrap(x[:, i])
        x[:, i] += 2.0 * np.pi * np.round((start[i] - x[0, i]) / (2.0 * np.pi))
    return FirstMotion("the run's own motion", x, result.u[:, k].double().numpy())
