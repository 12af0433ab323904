"""Evaluation of a policy on a plant: rollouts from the task's starts, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.outcome import Jumps, Rollouts, require_episodes, rollouts, sample_starts, settling_periods, summary
from solver.problem.parameters import Change, changed_parameters, left_all_bounds
from solver.problem.problem import Problem
from solver.runs.kinds import load_rollout_policy, names_to_estimate, reference_names, told_among
from solver.streams import EVALUATION_SEED, require_seed

LISTS = ("harsh", "told", "told_estimates", "estimate", "drawn")
PARTS = 4  # of a rollout whose set-points jump; each lasts as long as a set-point


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
    states_at_limit: tuple[str, ...]  # states that were at their limit in some rollout
    innovation: float | None = None  # mean normalised innovation for each measured number; 1 if the model is right
    estimates: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and standard deviation over the rollouts of the last estimate of every estimated parameter."""
    told_estimates: tuple[str, ...] = ()  # the parameters whose estimates the policy was told
    drawn: tuple[str, ...] = ()  # references with another random value in every rollout, not in `parameters`
    jump: float | None = None  # s, after which they jump; None: they stand still
    at_rest: dict[str, tuple[float, float]] = field(default_factory=dict)
    """With references: mean and largest error of every coordinate at the end of the rollouts, in SI units."""

    def __repr__(self) -> str:
        mean, success = self.statistics["return_mean"], 100 * self.statistics["success_rate"]
        return f"<evaluation of {self.label}: {self.plant} plant, return {mean:.2f}, success {success:.0f} %>"

    def to_json(self) -> dict[str, Any]:
        """Content of `solver evaluate --json`."""
        content = dict(vars(self)) | {name: list(getattr(self, name)) for name in LISTS}
        content["estimates"] = {name: {"mean": m, "deviation": s} for name, (m, s) in self.estimates.items()}
        content["at_rest"] = {name: {"mean": m, "largest": s} for name, (m, s) in self.at_rest.items()}
        del content["statistics"], content["states_at_limit"]
        return content | self.statistics


def evaluate(
    run: str | Path,
    *,
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
    generated: str | None = None,
) -> Evaluation:
    """Evaluation of the policy of a run: a run folder, or the name of a shipped policy.

    parameters: changed parameters of the plant: SI units, or `Relative` to nominal. The policy is told those that its
    training gave, and does not know the others. References that are not among them are random in every rollout.
    blind: the policy is told the nominal parameters, but still its references.
    jump: seconds after which the references jump to other random values, three times in a rollout.
    harsh: effects of the harsh plant, such as `delay` or `noise=2x`; all of them if it is empty.
    observer: the policy gets the estimates of an observer instead of the plant's measured states.
    longest_delay: in control periods; if given, the observer estimates the plant's delay up to this one.
    estimate: parameters that the observer estimates beside the state: names, or `all`, or `told` for those that the
    policy is told. The policy is told their estimates in every control period, and starts with the nominal values.
    reaction_periods: see `solver.game.policies.make_policy`; by default as in training.
    seed: of the starts and of the noise, by default the same as in the evaluations of trainings.
    generated: folder of artifacts.

    Raises SolverError for an argument out of range, for a folder without a run, and for rollouts that are not finite.
    """
    require_episodes(episodes)
    if longest_delay is not None and not (observer and longest_delay >= 0):
        raise SolverError(
            f"--longest-delay {longest_delay} needs an observer; give it with --observer, as 0 or more control periods"
        )
    if estimate and not observer:
        raise SolverError(f"--estimate {' '.join(estimate)} needs an observer; give it with --observer")
    references = reference_names(run)
    drawn = tuple(name for name in references if name not in parameters)
    if jump is not None and drawn != references:
        raise SolverError("--jump lets the references of the model file jump; leave them out of --set")
    estimate = names_to_estimate(run, estimate)
    contexts = bool(drawn) or (bool(estimate) and not blind)
    problem, act, label = load_rollout_policy(run, generated, reaction_periods, contexts=contexts)
    theta = changed_parameters(problem, parameters)
    known = [name for name in parameters if not blind or name in references]
    told = told_among(run, known) if known else ()
    if told and not contexts:
        values = {name: float(theta[problem.robot.parameter_names.index(name)]) for name in told}
        problem, act, label = load_rollout_policy(run, generated, reaction_periods, values)
    seed = EVALUATION_SEED if seed is None else seed
    require_seed(seed)
    starts, robots = begun(problem, theta, drawn, episodes, seed, blind)
    jumps = None if jump is None else _jumps(problem, starts, jump, seed)
    tested = make_plant(plant, problem, robots, harsh, seed)
    result = rollouts(
        problem,
        act,
        starts,
        tested,
        observed=observer,
        longest_delay=longest_delay,
        estimate=estimate,
        jumps=jumps,
    )
    if problem.context is not None:
        unknown = set(problem.context.names) - set(references) if blind else set()
        problem.context.require_within(theta, apart_from={*result.estimates, *unknown})
    statistics = summary(result)
    if not all(map(math.isfinite, statistics.values())):
        raise left_all_bounds(problem, theta)
    names = zip(problem.robot.state_names, result.at_limit.any(0).tolist(), strict=True)
    return Evaluation(
        run=str(run),
        robot=problem.robot.name,
        label=label,
        plant=plant,
        harsh=tuple(all_effects(plant, harsh)),
        observer=observer,
        longest_delay=longest_delay,
        estimate=tuple(estimate),
        reaction_periods=reaction_periods,
        episodes=episodes,
        seed=seed,
        parameters={
            name: value
            for name, value in zip(problem.robot.parameter_names, theta.tolist(), strict=True)
            if name not in drawn
        },
        told=tuple(name for name in told if name not in result.estimates or not contexts),
        statistics=statistics,
        states_at_limit=tuple(name for name, held in names if held),
        innovation=None if result.innovation is None else float(result.innovation.mean()),
        estimates={
            name: (float(found.mean()), float(found.std(correction=0))) for name, found in result.estimates.items()
        },
        told_estimates=() if problem.context is None or blind else told_among(run, result.estimates),
        drawn=drawn,
        jump=jump,
        at_rest=_at_rest(problem, result) if references else {},
    )


def begun(
    problem: Problem, theta: Tensor, drawn: Collection[str], episodes: int, seed: int, blind: bool = False
) -> tuple[Tensor, Tensor]:
    """Starts (episodes, n + k) as the policy is told, and parameters (p,) or (episodes, p) of the robots.

    theta: (p,) of the robots. drawn: references that are random instead. blind: the policy is told the nominal
    parameters, and the references.
    """
    starts, context = sample_starts(problem, episodes, seed), problem.context
    if context is None:
        return starts, theta
    if not drawn:
        return problem.told(problem.split(starts)[0], theta), theta
    robots = theta.repeat(episodes, 1)
    among = [context.names.index(name) for name in drawn]
    robots[:, context.columns[among]] = context.theta(starts[:, len(problem.target) :])[:, context.columns[among]]
    told = robots
    if blind:
        told, columns = problem.theta.repeat(episodes, 1), context.columns[list(context.references)]
        told[:, columns] = robots[:, columns]
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


def _at_rest(problem: Problem, result: Rollouts) -> dict[str, tuple[float, float]]:
    """Mean and largest error of every coordinate over the ends of the rollouts, each the mean over the time in which a
    success rests."""
    rows = result.x[-1 - settling_periods(problem) :]
    x = rows[..., : len(problem.target)]
    error = problem.geometry.error(x, problem.targets(rows)).abs().mean(0)  # (N, nt)
    names = problem.tangent.names[: problem.robot.metadata.pose]
    return {name: (float(error[:, i].mean()), float(error[:, i].max())) for i, name in enumerate(names)}
