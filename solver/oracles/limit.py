"""The limit of a task over its starts, and how far a trained policy stays behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import modelgen
from modelgen.artifact.folder import known
from modelgen.errors import suggestion
from solver.errors import SolverError
from solver.oracles.search import search
from solver.oracles.starts import design
from solver.oracles.trajectory import Guess, Trajectory
from solver.plants.nominal import Nominal
from solver.plants.outcome import Rollouts, decimals, succeeded
from solver.plants.rollouts import Controller, rollouts, without_input
from solver.problem.parameters import Change, changed_parameters
from solver.problem.problem import Problem
from solver.problem.robots import load_robot
from solver.runs.kinds import kind_in, load_controller
from solver.runs.shipped import names, run_folder

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StartLimit:
    """The best motion that the searches found from one start, and what others make of it."""

    start: Array  # (n,)
    best: Trajectory
    solved: int  # guesses that led to a local optimum
    guesses: int
    at_target: bool  # by the evaluation's own measure of success
    idle_return: float  # of the robot without input
    run_return: float | None = None
    run_held: bool = False  # whether the simulation held a state at its limit: no motion that counts as known

    @property
    def gap(self) -> float | None:
        """The return that the run loses to the limit. Negative when no search found a motion as good as the run's."""
        return None if self.run_return is None else self.best.reward - self.run_return

    @property
    def gap_percent(self) -> float | None:
        """The gap in % of what the limit gains over the idle robot; None where it gains nothing."""
        return percent_of_gain(self.gap, self.best.reward, self.idle_return)


@dataclass(frozen=True)
class Limit:
    """The limits from all starts, and their means."""

    robot: str
    state_names: tuple[str, ...]
    parameters: dict[str, float]
    starts: tuple[StartLimit, ...]
    label: str | None = None  # of the run

    @property
    def reward(self) -> float:
        """The mean of the best returns."""
        return float(np.mean([each.best.reward for each in self.starts]))

    @property
    def idle_return(self) -> float:
        """The mean return of the robot without input."""
        return float(np.mean([each.idle_return for each in self.starts]))

    @property
    def run_return(self) -> float | None:
        """The mean return of the run, where one is compared."""
        found = [each.run_return for each in self.starts if each.run_return is not None]
        return float(np.mean(found)) if found else None

    @property
    def gap(self) -> float | None:
        """The mean return that the run loses to the limit."""
        return None if self.run_return is None else self.reward - self.run_return

    @property
    def gap_percent(self) -> float | None:
        """The gap in % of what the limit gains over the idle robot; None where it gains nothing."""
        return percent_of_gain(self.gap, self.reward, self.idle_return)

    @property
    def at_target(self) -> bool:
        """Whether the best motions from all starts end at the target."""
        return all(each.at_target for each in self.starts)

    @property
    def worst(self) -> int:
        """The number of the start with the largest gap or, without a run, with the lowest limit."""
        return int(np.argmax([-each.best.reward if each.gap is None else each.gap for each in self.starts]))

    def results(self) -> dict[str, Any]:
        """The content of `solver limit --json`: everything but the motions."""
        about: dict[str, Any] = {"limit": self.reward, "idle_return": self.idle_return}
        about["guess"] = self.starts[self.worst].best.guess
        about |= {name: sum(getattr(each, name) for each in self.starts) for name in ("solved", "guesses")}
        about["at_target"] = self.at_target
        if self.run_return is not None:
            about |= {"label": self.label, "run_return": self.run_return, "gap": self.gap}
            about["gap_percent"] = self.gap_percent
        about["worst_start"] = self.worst
        about["starts"] = [self._result(each) for each in self.starts]
        return about

    def warnings(self) -> list[str]:
        """Texts for motions that do not arrive, and for searches that are worse than the run's own motion."""
        count, texts = len(self.starts), []
        away = sum(not start.at_target for start in self.starts)
        if away:
            which = "" if count == 1 else f" from {away} of {count} starts"
            texts.append(
                f"the best motion{which} does not end at the target: it is out of reach within the horizon, or not "
                "worth its cost. Lengthen the horizon, raise the input limit, or search longer with --guesses."
            )
        better = sum(start.gap is not None and start.gap < 0.0 for start in self.starts)
        if better:
            which = "" if count == 1 else f" from {better} of {count} starts"
            texts.append(f"no search{which} found a motion as good as the run's own; give more --guesses.")
        return texts

    def text(self) -> str:
        """The means over the starts in a line, and a line for each of several starts."""
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
        """A start; the worst one is marked."""
        start = self.starts[k]
        pairs = zip(self.state_names, start.start.tolist(), strict=True)
        where = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
        line = f"  start {k} ({where}): limit {start.best.reward:.{digits}f} (from {start.best.guess})"
        line += f", idle {start.idle_return:.{digits}f}"
        if start.run_return is not None and start.gap is not None:
            line += f", return {start.run_return:.{digits}f}, gap {start.gap:.{digits}f}{_percent(start.gap_percent)}"
        line += "" if start.at_target else ", not at the target"
        return line + (", worst" if k == self.worst else "")

    def _result(self, each: StartLimit) -> dict[str, Any]:
        about: dict[str, Any] = {"start": dict(zip(self.state_names, each.start.tolist(), strict=True))}
        about |= {"limit": each.best.reward, "idle_return": each.idle_return, "guess": each.best.guess}
        about |= {"solved": each.solved, "guesses": each.guesses, "at_target": each.at_target}
        if each.run_return is not None:
            about |= {"run_return": each.run_return, "run_held": each.run_held}
            about |= {"gap": each.gap, "gap_percent": each.gap_percent}
        return about


def _percent(gap: float | None) -> str:
    return "" if gap is None else f" ({gap:.1f} %)"


def percent_of_gain(gap: float | None, limit: float, idle_return: float) -> float | None:
    """A gap in % of limit - idle return; None where there is no gap, and where the limit gains nothing."""
    return None if gap is None or limit <= idle_return else 100.0 * gap / (limit - idle_return)


def find_limit(
    subject: str, changes: Mapping[str, Change], guesses: int, seed: int, generated: str | None = None, starts: int = 5
) -> Limit:
    """Find the limit for a robot's name or a run folder; changes: parameters that differ from the model.

    guesses: random motions to begin from, shared among the starts. starts: at most so many, as in
    `solver.oracles.starts.design`. Raises SolverError for an unknown run, a start beyond the state limits, and when no
    guess leads to a motion within the limits.
    """
    act: Controller | None = None
    label = None
    if kind_in(run_folder(subject)) is not None:
        problem, act, label = load_controller(subject, generated)
        folder: str | Path | None = problem.robot.folder.parent
    elif Path(subject).is_dir() and "/" in subject:
        raise SolverError(f"{subject} is not a run folder; give one that `solver train` wrote, or the name of a robot")
    else:
        _require_no_misspelt_policy(subject, generated)
        problem, folder = Problem(load_robot(subject, "cpu", generated)), generated
    theta = changed_parameters(problem, changes)
    chosen = design(problem.robot.metadata, starts)
    robot = modelgen.load(problem.robot.name, backend="casadi", directory=folder).with_nominal(
        [each.value for each in problem.robot.metadata.parameters]
    )
    begin = problem.confine(torch.tensor(chosen, dtype=torch.float32))
    resting = rollouts(problem, without_input(problem), begin, Nominal(problem, theta)).returns.tolist()
    own = None if act is None else rollouts(problem, act, begin, Nominal(problem, theta))
    motions = [] if own is None else [_own_motion(problem, own, k, start) for k, start in enumerate(chosen)]
    searches = search(robot, theta.double().numpy() if changes else None, chosen, guesses, seed, motions)
    found = [
        StartLimit(
            start,
            motion,
            searches.solved[k],
            searches.tried[k],
            bool(succeeded(problem, problem.confine(torch.tensor(motion.x, dtype=torch.float32))[:, None])[0]),
            resting[k],
            None if own is None else float(own.returns[k]),
            own is not None and bool(own.at_limit[k].any()),
        )
        for k, (start, motion) in enumerate(zip(chosen, searches.motions(), strict=True))
    ]
    parameters = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
    return Limit(problem.robot.name, problem.robot.state_names, parameters, tuple(found), label)


def _require_no_misspelt_policy(subject: str, generated: str | None) -> None:
    """Raise SolverError for a word that is nearer to the name of a shipped policy than to that of a robot."""
    robots, policies = known(generated), names()
    near = "" if subject in robots else suggestion(subject, [*robots, *policies])
    if any(f"`{policy}`" in near for policy in policies):
        raise SolverError(f"{subject} is neither a run folder, nor a robot, nor a policy of `solver policies`.{near}")


def _own_motion(problem: Problem, result: Rollouts, k: int, start: Array) -> Guess:
    """A policy's rollout from the k-th start as a guess, with its angles unwrapped."""
    x = result.x[:, k].double().numpy()
    for i in problem.continuous:
        x[:, i] = np.unwrap(x[:, i])
        x[:, i] += 2.0 * np.pi * np.round((start[i] - x[0, i]) / (2.0 * np.pi))
    return Guess("the run's own motion", x, result.u[:, k].double().numpy())
