"""`solver evaluate`: rollouts of one policy on one plant."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import warn
from solver.commands import PlantOptions

COMMON = ("run", "episodes", "changes", "blind", "plant", "harsh", "observer", "estimate", "seed", "seconds", "json")


@dataclass(frozen=True, kw_only=True)
class Options(PlantOptions):
    """The policy does not know what is changed in the plant, apart from the parameters that its training gave."""

    run: Annotated[Path, Positional]
    """Run folder, or a policy of `solver policies`."""
    episodes: Annotated[int, Range(1, 100_000)] = 100
    """Rollouts from the task's start distribution."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Changed parameters of the plant: mass=1.3x multiplies, mass=+0.05 adds, mass=1.1 replaces. Units are SI."""
    longest_delay: Annotated[int | None, Range(0, 100)] = None
    """Upper bound of the delay in control periods, with --observer. The observer estimates the delay. By default it
    knows the delay."""
    jump: Annotated[float | None, Range(0.01, 10000.0)] = None
    """Seconds after which the references of the model file jump to other random values, three times in a rollout. A
    success reaches every target."""
    seconds: Annotated[float | None, Range(0.001, 10000.0)] = None
    """Seconds of a rollout, by default the task's horizon. A policy that fails may only be late: give more."""
    json: bool = False
    """Print JSON instead of a line."""


def run(options: Options) -> None:
    """Roll out and print."""
    from solver.commands.changes import read_changes, read_estimate
    from solver.evaluation import evaluate

    result = evaluate(
        options.run,
        episodes=options.episodes,
        parameters=read_changes(options.changes),
        plant=options.plant,
        harsh=options.effects,
        observer=options.observer,
        longest_delay=options.longest_delay,
        estimate=read_estimate(options.estimate),
        reaction_periods=options.reaction_periods,
        seed=options.seed,
        blind=options.blind,
        jump=options.jump,
        seconds=options.seconds,
        generated=options.generated,
    )
    if options.json:
        print(json.dumps(result.to_json(), indent=2, allow_nan=False))
        return
    where = [] if options.plant == "nominal" else [" ".join([options.plant, *options.effects])]
    where += [*(["observer"] if options.observer else []), " ".join(options.changes) or "nominal"]
    print(result.text(", ".join(where)))
    if result.states_at_limit:
        warn(result.text_of_limits())
