"""`solver evaluate`: rollouts of one policy on one plant."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from modelgen.commandline.options import Argument
from solver.plants import PlantName


@dataclass(frozen=True)
class Options:
    """The policy is never told what is changed in the plant."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training or a baseline."""
    episodes: int = 100
    """Rollouts from the task's start distribution."""
    changes: Annotated[list[str], Argument("set", "NAME=VALUE")] = field(default_factory=list)
    """Parameters to change in the plant: mass=1.3x multiplies, mass=+0.05 adds, mass=1.1 replaces. Units are SI."""
    plant: PlantName = "nominal"
    """`nominal` is the model. `harsh` is the model with the drive and the sensors of a small laboratory robot. `mujoco`
    is another engine."""
    harsh: Annotated[list[str], Argument(metavar="EFFECT[=MULTIPLEx]")] = field(default_factory=list)
    """Effects of the harsh plant: delay, saturation, backlash, stiction, encoder, noise. noise=2x doubles one. By
    default all of them."""
    reaction_periods: float | None = None
    """Control periods that an input acts before the next one can: 1 for a zero-order hold, 2 with one period of sensor
    delay. The policy then takes into account what its own input does in that time. 0 is the closed form of continuous
    time. By default as in training."""
    seed: int | None = None
    """Seed of the starts and of the harsh plant's noise. By default the one of the evaluations in training."""
    json: bool = False
    """Print JSON instead of a line."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""


def run(options: Options) -> None:
    """Roll out and print."""
    from solver.plants import all_effects, make_plant
    from solver.plants.rollouts import require_episodes, rollouts, sample_starts, summary
    from solver.policies.load import load_controller
    from solver.problem.parameters import changed_parameters, left_all_bounds
    from solver.streams import EVALUATION_SEED, require_seed

    require_episodes(options.episodes)
    problem, act, label = load_controller(options.run, options.generated, options.reaction_periods)
    theta = changed_parameters(problem, options.changes)
    seed = EVALUATION_SEED if options.seed is None else options.seed
    require_seed(seed)
    plant = make_plant(options.plant, problem, theta, options.harsh, seed)
    found = rollouts(problem, act, sample_starts(problem, options.episodes, seed), plant)
    result = summary(found)
    if not all(map(math.isfinite, result.values())):
        raise left_all_bounds(problem, theta)
    if options.json:
        parameters = dict(zip(problem.robot.parameter_names, theta.tolist(), strict=True))
        about: dict[str, Any] = {
            "run": str(options.run),
            "robot": problem.robot.name,
            "label": label,
            "plant": options.plant,
        }
        effects = all_effects(options.plant, options.harsh)
        about |= {
            "harsh": effects,
            "episodes": options.episodes,
            "seed": seed,
            "parameters": parameters,
        }
        print(json.dumps(about | result, indent=2, allow_nan=False))
        return
    plant_name = "" if options.plant == "nominal" else f"{' '.join([options.plant, *options.harsh])}, "
    print(
        f"{label}, {plant_name}{' '.join(options.changes) or 'nominal'}, {options.episodes} rollouts:  "
        f"return {result['return_mean']:.2f} +- {result['return_spread']:.2f}  (state {result['state_reward']:.2f}, "
        f"action {result['action_reward']:.2f}, worst {result['return_worst']:.2f})   "
        f"success {100 * result['success_rate']:.0f} %"
    )
    if found.at_limit.any():
        states = problem.robot.metadata.states
        names = ", ".join(state.name for state, held in zip(states, found.at_limit.any(0), strict=True) if held)
        print(
            f"warning: {100 * result['limit_rate']:.0f} % of the rollouts reached the limit of {names}, where the "
            "simulation holds a state as a wall would. A robot without that wall moves on: then widen the limit in "
            "the model file, or train anew with `solver train --limit-cost 3`.",
            file=sys.stderr,
        )
