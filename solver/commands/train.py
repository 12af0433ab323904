"""`solver train`: a new run, or one that was interrupted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from modelgen.commandline import Range
from solver.commands.training import RunOptions, begin, require_alone
from solver.training.settings import Algorithm, Settings

COMMON = (
    "robot",
    "preset",
    "algorithm",
    "seed",
    "iterations",
    "out",
    "overwrite",
    "start_from",
    "identified",
    "given",
    "resume",
)


@dataclass(frozen=True)
class Options(RunOptions):
    """The defaults of the settings depend on the robot and the preset. The help shows the defaults of the robot that it
    is called with: `solver train ROBOT --preset paper --help`."""

    preset: Annotated[str, arg(metavar="NAME")] = "fast"
    """`fast` (minutes on two cores) or `paper` (the authors' settings). Every setting below overrides it."""
    algorithm: Algorithm = "rfvi"
    """`rfvi` plays against the adversaries of the preset, `cfvi` without adversaries."""
    start_from: Annotated[Path | None, arg(metavar="DIR")] = None
    """Start from the value function of this run, for example after a change of the model file. This takes a quarter of
    the iterations."""
    identified: Annotated[Path | None, arg(metavar="FILE")] = None
    """File of `modelgen identify`: nominal parameters, and the sets of all adversaries. --adversaries replaces radii of
    the file; the proportions between states stay."""
    given: Annotated[list[str], arg(metavar="NAME[=LOWER:UPPER] ...")] = field(default_factory=list)
    """Parameters that the policy is told, for one training of a whole family of robots. The range is by default the
    bounds of the model file: mass=0.8:1.2 in SI units, or mass=0.5x:1.5x of the nominal value. `all` or all=0.8x:1.2x:
    those that change the motion most, as many as can be told together."""
    preview: Annotated[float, Range(0.0, 86_400.0)] = 20.0
    """Seconds of a search for a motion to the target before the training, which warns of an impossible task. The
    training does not depend on it. 0: no search."""
    unheld_target: bool = False
    """Train for a target that no input within the limits holds."""
    settings: Settings = field(default_factory=Settings)


def undecided(given: Mapping[str, Any]) -> Collection[str]:
    """Settings whose defaults depend on a robot that is not given."""
    from solver.training.settings import OF_ROBOT

    return () if "robot" in given else OF_ROBOT


def defaults(given: Mapping[str, Any]) -> Options:
    """The settings that the robot and the other options give, which the command line then changes."""
    require_alone(given)
    if "robot" not in given:
        return Options()
    from solver.commands.changes import read_given
    from solver.training.lifecycle import plan

    chosen = {name: given[name] for name in ("preset", "algorithm", "identified") if given.get(name)}
    told = read_given(given.get("given", ()))
    _, run = plan(given["robot"], given.get("generated"), start_from=given.get("start_from"), given=told, **chosen)
    return Options(settings=run.settings, preset=run.preset, algorithm=chosen.get("algorithm", Options.algorithm))


def run(options: Options) -> None:
    """Train, and show the progress."""
    from solver.commands.changes import read_given

    begin(
        "train",
        options,
        options.settings,
        algorithm=options.algorithm,
        preset=options.preset,
        identified=options.identified,
        given=read_given(options.given),
        start_from=options.start_from,
        preview=options.preview,
        unheld_target=options.unheld_target,
    )
