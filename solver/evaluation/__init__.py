"""Evaluation of a policy on a plant: rollouts from the task's starts, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from modelgen.errors import checked
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.evaluation.source import PolicySource, source_of
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.outcome import (
    Jumps,
    Rollouts,
    decimals,
    require_episodes,
    rollouts,
    sample_starts,
    settling_periods,
    summary,
)
from solver.problem import Problem
from solver.problem.parameters import Change, changed_parameters, expanded, is_number, left_all_bounds, names_in
from solver.streams import EVALUATION_SEED, require_seed

LISTS = ("harsh", "told", "told_estimates", "estimate", "drawn")
PARTS = 4  # of a rollout whose set-points jump; each lasts as long as a set-point
LONGEST = 1_000_000  # control periods of a rollout


@dataclass(frozen=True)
class Evaluation:
    """Statistics of the rollouts of a policy on a plant."""

    run: str
    robot: str
    label: str
    plant: str
    harsh: tuple[str, ...]  # effects of the harsh plant
    observer: bool  # whether the policy got the estimates of an observer
    longest_delay: int | None  # largest delay that the observer considered; None if it knew the delay
    estimate: tuple[str, ...]  # parameters that the observer estimated, as given: names, or `all`
    reaction_periods: float | None  # of the policy; None as in training
    episodes: int
    seed: int
    parameters: dict[str, float]  # of the plant
    told: tuple[str, ...]  # the changed parameters whose true values the policy was told
    statistics: dict[str, float]  # see `solver.plants.outcome.summary`
    states_at_limit: tuple[str, ...]  # states and rotations that were at their limit in some rollout
    innovation: float | None = (
        None  # mean normalised innovation for each measured number, see docs/concepts/observer.md
    )
    estimates: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation over the rollouts of the last estimate of every estimated parameter."""
    told_estimates: tuple[str, ...] = ()  # the parameters whose estimates the policy was told
    drawn: tuple[str, ...] = ()  # references with another random value in every rollout, not in `parameters`
    jump: float | None = None  # s, after which they jump; None: they stand still
    horizon: float | None = None  # s, where it is not the task's: as asked for, or for the slowest robot of a family
    at_rest: dict[str, tuple[float, float]] = field(default_factory=dict)
    """With references: mean and largest error of every coordinate at the end of the rollouts, in SI units."""

    def __repr__(self) -> str:
        mean, success = self.statistics["return_mean"], 100 * self.statistics["success_rate"]
        return f"<evaluation of {self.label}: {self.plant} plant, return {mean:.2f}, success {success:.0f} %>"

    def text(self, where: str) -> str:
        """Output of `solver evaluate`. where: the plant and what is changed in it."""
        numbers, digits = self.statistics, decimals(self.statistics["return_mean"])
        lines = [
            f"{self.label}, {where}, {self.episodes} rollouts:  "
            f"return {numbers['return_mean']:.{digits}f} +- {numbers['return_spread']:.{digits}f}  "
            f"(state {numbers['state_reward']:.{digits}f}, action {numbers['action_reward']:.{digits}f}, "
            f"worst {numbers['return_worst']:.{digits}f})   success {100 * numbers['success_rate']:.0f} %"
        ]
        if self.horizon is not None and self.jump is None:
            lines.append(f"a rollout lasts {self.horizon:g} s, other than the task")
        if self.drawn:
            jumping = "" if self.jump is None else f", another one after every {self.jump:g} s"
            lines.append(f"{' '.join(self.drawn)}: random in every rollout{jumping}, and told")
        rest = self.at_rest.items()
        lines += [f"{name}: {mean:.2g} from its target at the end, at most {most:.2g}" for name, (mean, most) in rest]
        lines += [f"{name}: the policy is told {self.parameters[name]:.4g}" for name in self.told]
        for name, (mean, deviation) in self.estimates.items():
            told = " (the policy is told its estimate)" if name in self.told_estimates else ""
            estimate = f"{name}: estimated {mean:.4g} +- {deviation:.2g}"
            lines.append(f"{estimate}, in the plant {self.parameters[name]:.4g}{told}")
        if self.estimates:
            lines.append(f"normalised innovation {self.innovation:.2f} (far above 1: the model is wrong)")
        return "\n    ".join(lines)

    def text_of_limits(self) -> str:
        """Warning of the states that were at their limit."""
        return (
            f"{100 * self.statistics['limit_rate']:.0f} % of the rollouts reached the limit of "
            f"{', '.join(self.states_at_limit)}, where the simulation holds a state as a wall would. If the robot "
            "has no such wall, widen the limit in the model file, or train anew with `solver train --limit-cost 3`."
        )

    def to_json(self) -> dict[str, Any]:
        """Content of `solver evaluate --json`."""
        content = dict(vars(self)) | {name: list(getattr(self, name)) for name in LISTS}
        content["estimates"] = {name: {"mean": m, "deviation": s} for name, (m, s) in self.estimates.items()}
        content["at_rest"] = {name: {"mean": m, "largest": s} for name, (m, s) in self.at_rest.items()}
        del content["statistics"], content["states_at_limit"]
        return content | self.statistics


@dataclass(frozen=True)
class Tested:
    """Rollouts of a policy on a plant, and what they were made with."""

    problem: Problem
    label: str
    theta: Tensor  # (p,) parameters of the plant
    told: tuple[str, ...]  # changed parameters whose true values the policy was told
    told_estimates: tuple[str, ...]  # parameters whose estimates it was told
    estimate: tuple[str, ...]  # parameters that the observer was asked for
    result: Rollouts


@dataclass(frozen=True)
class Circumstances:
    """What a policy is tested on; see `evaluate`."""

    parameters: Mapping[str, Change]
    plant: PlantName
    harsh: Sequence[str]
    observer: bool
    longest_delay: int | None
    estimate: Sequence[str]
    seed: int | None
    blind: bool
    jump: float | None = None  # s


#: Makes starts (N, n + k) as the policy is told, and parameters (p,) or (N, p) of the robots, from the parameters (p,)
#: of the robot, those that the policy takes for them, and a seed.
Begin = Callable[[Problem, Tensor, Tensor, int], tuple[Tensor, Tensor]]


def roll_out(
    source: PolicySource, conditions: Circumstances, begin: Begin, seconds: float | None, drawn: tuple[str, ...] = ()
) -> Tested:
    """Rollouts of a policy.

    seconds: of every rollout, by default the horizon. drawn: references that `begin` draws. Raises the errors of
    `evaluate`.
    """
    c = conditions
    if c.longest_delay is not None and not (c.observer and c.longest_delay >= 0):
        raise SolverError(
            f"--longest-delay {c.longest_delay} counts control periods of an observer; give --observer too, and 0 or "
            "more"
        )
    require_observer(c.estimate, c.observer)
    if c.jump is not None and drawn != source.references:
        raise SolverError("--jump lets the references of the model file jump; leave them out of --set")
    references = {name: value for name, value in source.told.items() if name in source.references}
    given = {**references, **c.parameters}
    estimate = expanded(tuple(c.estimate), source.estimated, source.name)
    contexts = bool(drawn) or (bool(estimate) and not c.blind)
    problem, act, label = source.load({} if contexts else source.told, contexts)
    nominal = problem if contexts or not source.told else source.load({}, False).problem
    theta = changed_parameters(nominal, given)
    known = {**source.told, **given}
    if c.blind:
        known = {name: value for name, value in given.items() if name in source.references}
    believed = changed_parameters(nominal, known)
    told = source.told_among([name for name in given if not c.blind or name in source.references])
    held = (*told, *(name for name in given if name in source.untold))
    if held and not contexts:
        values = {name: float(theta[problem.robot.parameter_names.index(name)]) for name in held}
        problem, act, label = source.load({**source.told, **values}, False)
    seed = EVALUATION_SEED if c.seed is None else c.seed
    require_seed(seed)
    starts, robots = begin(problem, theta, believed, seed)
    jumps = None if c.jump is None else _jumps(problem, starts, c.jump, seed)
    plant = make_plant(c.plant, problem, robots, c.harsh, seed)
    result = rollouts(
        problem,
        act,
        starts,
        plant,
        seconds,
        observed=c.observer,
        longest_delay=c.longest_delay,
        estimate=estimate,
        jumps=jumps,
        blind=c.blind,
    )
    if problem.context is not None:
        unknown = set(problem.context.names) - {*source.references} if c.blind else set()
        problem.context.require_within(theta, apart_from={*result.estimates, *unknown})
    if not bool(torch.isfinite(result.returns).all()):
        raise left_all_bounds(problem, theta)
    told = tuple(name for name in told if name not in result.estimates or not contexts)
    told_estimates = () if problem.context is None or c.blind else source.told_among(tuple(result.estimates))
    return Tested(problem, label, theta, told, told_estimates, estimate, result)


@checked(SolverError, "plant")
def evaluate(
    run: Any,
    *,
    robot: str | CompiledRobot | None = None,
    episodes: int = 100,
    parameters: Mapping[str, Change] = MappingProxyType({}),
    plant: PlantName = "nominal",
    harsh: Sequence[str] = (),
    observer: bool = False,
    longest_delay: int | None = None,
    estimate: Sequence[str] = (),
    reaction_periods: float | None = None,
    seed: int | None = None,
    blind: bool = False,
    jump: float | None = None,
    seconds: float | None = None,
    generated: str | None = None,
) -> Evaluation:
    """Evaluation of a policy.

    run: a run folder, the name of a shipped policy, a `Run`, a `Policy`, an agent of Stable-Baselines3, or a function
    that maps states (N, n) of NumPy to inputs (N, m) within the limits.
    robot: name of the robot of a function, or of an agent without an environment.
    parameters: changed parameters of the plant: SI units, or `Relative` to nominal. The policy is told those that its
    training gave, and does not know the others. References that are not among them are random in every rollout.
    blind: the policy is told the nominal parameters, but still its references.
    jump: seconds after which the references jump to other random values, three times in a rollout.
    seconds: of a rollout without jumps, by default the task's horizon. In a family it is that of the slowest robot.
    harsh: effects of the harsh plant, such as `delay` or `noise=2x`; all of them if it is empty.
    observer: the policy gets the estimates of an observer instead of the plant's measured states.
    longest_delay: in control periods; if given, the observer estimates the plant's delay up to this one.
    estimate: parameters that the observer estimates beside the state: names, or `all`, or `told` for those that the
    policy is told. The policy is told their estimates in every control period, and starts with the nominal values.
    reaction_periods: see `solver.Settings`; by default as in training.
    seed: of the starts and of the noise, by default the same for all runs; a training chooses its V from other starts.
    generated: folder of artifacts.

    Raises SolverError for an argument out of range, for a folder without a run, and for rollouts that are not finite.
    """
    require_episodes(episodes)
    source = source_of(run, generated, reaction_periods, robot)
    if blind and not source.estimated:
        raise SolverError(f"--blind is for policies that are told parameters, and {source.name} is not; leave it out")
    harsh, estimate = names_in(harsh), names_in(estimate)
    conditions = Circumstances(parameters, plant, harsh, observer, longest_delay, estimate, seed, blind, jump)
    drawn = tuple(name for name in source.references if name not in {*parameters, *source.told})

    def begin(problem: Problem, theta: Tensor, believed: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        require_seconds(problem, seconds)
        if jump is not None and seconds is not None:
            raise SolverError(f"seconds is {seconds:g}, but --jump {jump:g} says how long a rollout is; leave one out")
        return begun(problem, theta, believed, drawn, episodes, seed)

    found = roll_out(source, conditions, begin, seconds, drawn)
    problem, result, names = found.problem, found.result, found.problem.robot.parameter_names
    statistics, horizon = summary(result), problem.horizon if seconds is None else float(seconds)
    if not all(map(math.isfinite, statistics.values())):
        raise left_all_bounds(problem, found.theta)
    return Evaluation(
        run=source.name,
        robot=problem.robot.name,
        label=found.label,
        plant=plant,
        harsh=tuple(all_effects(plant, harsh)),
        observer=observer,
        longest_delay=longest_delay,
        estimate=found.estimate,
        reaction_periods=source.reaction_periods,
        episodes=int(episodes),
        seed=EVALUATION_SEED if seed is None else seed,
        parameters={name: value for name, value in zip(names, found.theta.tolist(), strict=True) if name not in drawn},
        told=found.told,
        statistics=statistics,
        states_at_limit=held_names(problem, result.at_limit.any(0).tolist()),
        innovation=None if result.innovation is None else float(result.innovation.mean()),
        estimates={
            name: (float(found.mean()), float(found.std(correction=0))) for name, found in result.estimates.items()
        },
        told_estimates=found.told_estimates,
        drawn=drawn,
        jump=jump,
        horizon=None if horizon == problem.robot.metadata.task.horizon else horizon,
        at_rest=at_rest(problem, result) if source.references else {},
    )


def held_names(problem: Problem, held: Sequence[bool]) -> tuple[str, ...]:
    """Names of the states that are held (n,) at their limit; a rotation has one for its four entries."""
    turning = {i: each.name for each in problem.geometry.rotations for i in range(each.coordinate, each.coordinate + 4)}
    names = (turning.get(i, name) for i, name in enumerate(problem.robot.state_names) if held[i])
    return tuple(dict.fromkeys(names))


def require_observer(estimate: Sequence[str], observer: bool) -> None:
    """Raises SolverError for parameters to estimate without an observer."""
    if estimate and not observer:
        raise SolverError(f"--estimate {' '.join(estimate)} is for --observer; give both, or leave it out")


def require_seconds(problem: Problem, seconds: float | None) -> None:
    """Raises SolverError for a time that is not one control period or more."""
    rate = problem.robot.metadata.task.control_rate
    if seconds is None or (is_number(seconds) and 0.5 < seconds * rate <= LONGEST):
        return
    raise SolverError(f"seconds is {seconds!r}; give a time from {1 / rate:g} to {LONGEST / rate:g}")


def begun(
    problem: Problem, theta: Tensor, believed: Tensor, drawn: Collection[str], episodes: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Starts (episodes, n + k) as the policy is told, and parameters (p,) or (episodes, p) of the robots.

    theta: (p,) of the robots. believed: (p,) of which the policy is told its part. drawn: references that are random in
    both instead.
    """
    context = problem.context
    if context is None:
        return sample_starts(problem, episodes, seed), theta
    told, robots = believed.repeat(episodes, 1), theta
    if drawn:
        columns = context.columns[[context.names.index(name) for name in drawn]]
        c = sample_starts(problem, episodes, seed)[:, len(problem.target) :]
        robots = theta.repeat(episodes, 1)
        told[:, columns] = robots[:, columns] = context.theta(c)[:, columns]
    return sample_starts(problem, episodes, seed, context.of(told)), robots


def _jumps(problem: Problem, starts: Tensor, seconds: float, seed: int) -> Jumps:
    """Jumps of the references. Raises SolverError for a time in which no success can be seen."""
    context, least = problem.context, 2 * settling_periods(problem)
    if context is None or not context.references:
        raise SolverError(
            f"--jump {seconds:g}: the policy is told no reference; declare one with robot.reference(...) in the model "
            "file, or leave it out"
        )
    periods = round(seconds / problem.control_step) if math.isfinite(seconds) else 0
    if periods < least:
        raise SolverError(
            f"--jump {seconds:g}: a target is reached when the robot rests there; give "
            f"{least * problem.control_step:g} seconds or more"
        )
    generator = torch.Generator().manual_seed(seed + 1)
    contexts = [starts[:, len(problem.target) :]]
    for _ in range(PARTS - 1):
        contexts.append(context.redrawn(contexts[-1], generator))
    return Jumps(periods, torch.stack(contexts[1:]))


def at_rest(problem: Problem, result: Rollouts) -> dict[str, tuple[float, float]]:
    """Mean and largest error of every coordinate over the ends of the rollouts, each the mean over the time in which a
    success rests."""
    rows = result.x[-1 - settling_periods(problem) :]
    x = rows[..., : len(problem.target)]
    error = problem.geometry.error(x, problem.targets(rows)).abs().mean(0)  # (N, nt)
    names = problem.tangent.names[: problem.robot.metadata.pose]
    return {name: (float(error[:, i].mean()), float(error[:, i].max())) for i, name in enumerate(names)}
