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

COMMON = ("run", "episodes", "changes", "blind", "plant", "harsh", "observer", "estimate", "seed", "json")


@dataclass(frozen=True, kw_only=True)
class Options(PlantOptions):
    """The policy does not know what is changed in the plant, apart from the parameters that its training gave."""

    run: Annotated[Path, Positional]
    """Run folder of a training or a baseline, or a policy of `solver policies`."""
    episodes: Annotated[int, Range(1, 100_000)] = 100
    """Rollouts from the task's start distribution."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Changed parameters of the plant: mass=1.3x multiplies, mass=+0.05 adds, mass=1.1 replaces. Units are SI."""
    longest_delay: Annotated[int | None, Range(0, 1000)] = None
    """Upper bound of the delay in control periods, with --observer. The observer estimates the delay. By default it
    knows the delay."""
    jump: Annotated[float | None, Range(0.01, 10000.0)] = None
    """Seconds after which the references of the model file jump to other random values, three times in a rollout. A
    success reaches every target."""
    json: bool = False
    """Print JSON instead of a line."""


def run(options: Options) -> None:
    """Roll out and print."""
    from solver.commands.changes import read_changes, read_estimate
    from solver.evaluation.evaluation import evaluate
    from solver.plants.outcome import decimals

    result = evaluate(
        options.run,
        episodes=options.episodes,
        parameters=read_changes(options.changes),
        plant=options.plant,
        harsh=options.harsh,
        observer=options.observer,
        longest_delay=options.longest_delay,
        estimate=read_estimate(options.estimate),
        reaction_periods=options.reaction_periods,
        seed=options.seed,
        blind=options.blind,
        jump=options.jump,
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
    if result.horizon is not None and result.jump is None:
        print(f"    a rollout lasts {result.horizon:g} s, for the slowest robot of the family")
    if result.drawn:
        jumping = "" if result.jump is None else f", another one after every {result.jump:g} s"
        print(f"    {' '.join(result.drawn)}: random in every rollout{jumping}, and told")
    for name, (mean, largest) in result.at_rest.items():
        print(f"    {name}: {mean:.2g} from its target at the end, at most {largest:.2g}")
    for name in result.told:
        print(f"    {name}: the policy is told {result.parameters[name]:.4g}")
    for name, (mean, deviation) in result.estimates.items():
        told = " (the policy is told its estimate)" if name in result.told_estimates else ""
        true = result.parameters[name]
        print(f"    {name}: estimated {mean:.4g} +- {deviation:.2g}, in the plant {true:.4g}{told}")
    if result.estimates:
        print(f"    normalised innovation {result.innovation:.2f} (1 if the model is right)")
    if result.states_at_limit:
        warn(
            f"{100 * numbers['limit_rate']:.0f} % of the rollouts reached the limit of "
            f"{', '.join(result.states_at_limit)}, where the simulation holds a state as a wall would. If the robot "
            "has no such wall, widen the limit in the model file, or train anew with `solver train --limit-cost 3`."
        )
