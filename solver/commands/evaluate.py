"""`solver evaluate`: rollouts of one policy on one plant."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from solver.plants import PlantName


@dataclass(frozen=True)
class Options:
    """The policy is never told what is changed in the plant."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training or a baseline, or a policy of `solver policies`."""
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
    observer: bool = False
    """Give the policy the states that an observer makes of what is measured and of the inputs, predicted over the
    delay. Without it the policy gets what the plant shows: on the harsh plant, filtered differences of counts."""
    longest_delay: Annotated[int | None, Argument(metavar="PERIODS")] = None
    """Do not tell the observer the delay: it finds it, of at most so many control periods."""
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
    from solver.evaluation.evaluation import evaluate
    from solver.plants.outcome import decimals

    result = evaluate(
        options.run,
        episodes=options.episodes,
        changes=options.changes,
        plant=options.plant,
        harsh=options.harsh,
        observer=options.observer,
        longest_delay=options.longest_delay,
        reaction_periods=options.reaction_periods,
        seed=options.seed,
        generated=options.generated,
    )
    if options.json:
        print(json.dumps(result.to_json(), indent=2, allow_nan=False))
        return
    plant_name = "" if options.plant == "nominal" else f"{' '.join([options.plant, *options.harsh])}, "
    plant_name += "observer, " if options.observer else ""
    numbers = result.statistics
    digits = decimals(numbers["return_mean"])
    print(
        f"{result.label}, {plant_name}{' '.join(options.changes) or 'nominal'}, {options.episodes} rollouts:  "
        f"return {numbers['return_mean']:.{digits}f} +- {numbers['return_spread']:.{digits}f}  "
        f"(state {numbers['state_reward']:.{digits}f}, action {numbers['action_reward']:.{digits}f}, "
        f"worst {numbers['return_worst']:.{digits}f})   success {100 * numbers['success_rate']:.0f} %"
    )
    if result.states_at_limit:
        print(
            f"warning: {100 * numbers['limit_rate']:.0f} % of the rollouts reached the limit of "
            f"{', '.join(result.states_at_limit)}, where the simulation holds a state as a wall would. A robot without "
            "that wall moves on: then widen the limit in the model file, or train anew with "
            "`solver train --limit-cost 3`.",
            file=sys.stderr,
        )
