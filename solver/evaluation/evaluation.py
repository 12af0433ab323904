"""Evaluate one policy on one plant: rollouts from the task's starts, and their statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from solver.errors import SolverError
from solver.plants import PlantName, all_effects, make_plant
from solver.plants.outcome import summary
from solver.plants.rollouts import require_episodes, rollouts, sample_starts
from solver.problem.parameters import Change, changed_parameters, left_all_bounds
from solver.runs.kinds import load_controller
from solver.streams import EVALUATION_SEED, require_seed


@dataclass(frozen=True)
class Evaluation:
    """What the rollouts of a policy on a plant came to."""

    run: str
    robot: str
    label: str
    plant: str
    harsh: tuple[str, ...]  # the effects of the harsh plant
    observer: bool  # whether an observer made the states that the policy saw
    longest_delay: int | None  # of those that it looked for; None where it was told the delay
    episodes: int
    seed: int
    parameters: dict[str, float]  # of the plant
    statistics: dict[str, float]  # as `solver.plants.rollouts.summary` names them
    states_at_limit: tuple[str, ...]  # states that the simulation stopped at their limit in some rollout

    def to_json(self) -> dict[str, Any]:
        """The content of `solver evaluate --json`."""
        content = dict(vars(self)) | {"harsh": list(self.harsh)}
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
    reaction_periods: float | None = None,
    seed: int | None = None,
    generated: str | None = None,
) -> Evaluation:
    """Roll out the policy in a run folder; the arguments are the options of `solver evaluate`.

    parameters: changed parameters of the plant, which the policy does not know: SI units, or `Relative` to nominal.
    harsh: effects of the harsh plant, as `delay` or `noise=2x`; all of them when none is named. observer: the policy
    gets the states that an observer makes of the measured positions and of the inputs, in place of those that the plant
    shows. longest_delay: the observer is not told the plant's delay, and finds it among so many control periods.
    seed: of the starts and of the noise, by default the one that trainings use for their evaluations.

    Raises SolverError for bad arguments, a folder without a run, and rollouts that are not finite.
    """
    require_episodes(episodes)
    if longest_delay is not None and not (observer and longest_delay >= 0):
        raise SolverError(
            f"--longest-delay {longest_delay} is of the observer: give it with --observer, as 0 or more control periods"
        )
    problem, act, label = load_controller(run, generated, reaction_periods)
    theta = changed_parameters(problem, parameters)
    seed = EVALUATION_SEED if seed is None else seed
    require_seed(seed)
    starts, tested = sample_starts(problem, episodes, seed), make_plant(plant, problem, theta, harsh, seed)
    found = rollouts(problem, act, starts, tested, observed=observer, longest_delay=longest_delay)
    statistics = summary(found)
    if not all(map(math.isfinite, statistics.values())):
        raise left_all_bounds(problem, theta)
    names = zip(problem.robot.state_names, found.at_limit.any(0).tolist(), strict=True)
    return Evaluation(
        run=str(run),
        robot=problem.robot.name,
        label=label,
        plant=plant,
        harsh=tuple(all_effects(plant, harsh)),
        observer=observer,
        longest_delay=longest_delay,
        episodes=episodes,
        seed=seed,
        parameters=dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True)),
        statistics=statistics,
        states_at_limit=tuple(name for name, held in names if held),
    )
