"""Evaluation of a policy on a plant: rollouts from the task's starts, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from solver.errors import SolverError
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.outcome import summary
from solver.plants.rollouts import require_episodes, rollouts, sample_starts
from solver.problem.parameters import Change, changed_parameters, left_all_bounds
from solver.runs.kinds import load_rollout_policy, names_to_estimate, told_among
from solver.streams import EVALUATION_SEED, require_seed

LISTS = ("harsh", "told", "told_estimates", "estimate")


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

    def __repr__(self) -> str:
        mean, success = self.statistics["return_mean"], 100 * self.statistics["success_rate"]
        return f"<evaluation of {self.label}: {self.plant} plant, return {mean:.2f}, success {success:.0f} %>"

    def to_json(self) -> dict[str, Any]:
        """Content of `solver evaluate --json`."""
        content = dict(vars(self)) | {name: list(getattr(self, name)) for name in LISTS}
        content["estimates"] = {name: {"mean": m, "deviation": s} for name, (m, s) in self.estimates.items()}
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
    generated: str | None = None,
) -> Evaluation:
    """Evaluation of the policy of a run: a run folder, or the name of a shipped policy.

    parameters: changed parameters of the plant: SI units, or `Relative` to nominal. The policy is told those that its
    training gave, and does not know the others.
    blind: the policy is told the nominal parameters.
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
    estimate, contexts = names_to_estimate(run, estimate), bool(estimate) and not blind
    problem, act, label = load_rollout_policy(run, generated, reaction_periods, contexts=contexts)
    theta = changed_parameters(problem, parameters)
    told = () if blind or not parameters else told_among(run, parameters)
    if told and not contexts:
        values = {name: float(theta[problem.robot.parameter_names.index(name)]) for name in told}
        problem, act, label = load_rollout_policy(run, generated, reaction_periods, values)
    seed = EVALUATION_SEED if seed is None else seed
    require_seed(seed)
    starts = problem.told(problem.split(sample_starts(problem, episodes, seed))[0], theta)
    tested = make_plant(plant, problem, theta, harsh, seed)
    result = rollouts(problem, act, starts, tested, observed=observer, longest_delay=longest_delay, estimate=estimate)
    if problem.context is not None:
        problem.context.require_within(theta, apart_from=result.estimates)
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
        parameters=dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True)),
        told=tuple(name for name in told if name not in result.estimates or not contexts),
        statistics=statistics,
        states_at_limit=tuple(name for name, held in names if held),
        innovation=None if result.innovation is None else float(result.innovation.mean()),
        estimates={
            name: (float(found.mean()), float(found.std(correction=0))) for name, found in result.estimates.items()
        },
        told_estimates=() if problem.context is None else told_among(run, result.estimates),
    )
