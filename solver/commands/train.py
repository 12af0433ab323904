"""`solver train`: a new run, or one that was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from modelgen.commandline.options import Argument, Subjects
from solver.commands.resuming import require_alone
from solver.errors import SolverError
from solver.training.presets import Algorithm
from solver.training.settings import Settings

#: Subject of the settings in help -> the first of them; those that follow in `Settings` belong to it too.
SUBJECTS = {
    "general": "seed",
    "states": "states",
    "fit": "epochs",
    "target": "trace_decay",
    "network": "members",
    "adversary": "adversaries",
    "evaluation": "evaluate_every",
    "machine": "device",
}


@dataclass(frozen=True)
class Options:
    """The defaults of the settings depend on the robot and the preset: `solver train ROBOT --preset paper --help` shows
    those that the command takes."""

    robot: Annotated[str, Argument(positional=True)] = ""
    """Name of a robot built with `modelgen build`."""
    preset: Annotated[str, Argument(metavar="NAME")] = "fast"
    """`fast` (minutes on two cores) or `paper` (the authors' settings). Every setting below overrides it."""
    algorithm: Algorithm = "rfvi"
    """`rfvi` plays the adversaries of the preset. `cfvi` sets all their radii to zero."""
    out: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Run folder. By default runs/ROBOT-ALGORITHM-PRESET-seedN."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    warm_from: Annotated[Path | None, Argument(name="from", metavar="DIR")] = None
    """Begin from the value function of this run, for example after a parameter or a limit was changed in the model
    file. It takes a quarter of the iterations."""
    identified: Annotated[Path | None, Argument(metavar="FILE")] = None
    """What `modelgen identify` wrote: nominal parameters, and the sets of all adversaries. A radius that is given
    beside it replaces the file's; its proportions between states stay."""
    resume: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Continue the run in this folder, with its own settings. No other option may stand beside it."""
    preview: Annotated[float, Argument(metavar="SECONDS")] = 20.0
    """Look so long for a motion to the target before training, and say if none is found or if it leans on a limit. The
    training does not depend on it. 0 leaves it out."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    trust: Annotated[tuple[str, ...], Argument(metavar="HASH")] = ()
    """Let code of these artifacts run, which were neither built here nor shipped. A message names the hash."""
    settings: Annotated[Settings, Subjects(SUBJECTS)] = field(default_factory=Settings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The settings that the robot and the other options give, which the command line then changes."""
    require_alone(given)
    if "robot" not in given:
        return Options()
    from solver.training.plan import plan

    chosen = {name: given[name] for name in ("preset", "algorithm", "identified") if given.get(name)}
    _, run = plan(given["robot"], given.get("generated"), start_from=given.get("warm_from"), **chosen)
    return Options(settings=run.settings, preset=run.preset, algorithm=chosen.get("algorithm", Options.algorithm))


def run(options: Options) -> None:
    """Train, and show the progress."""
    from solver.commands.training import resume, start
    from solver.preflight.check import preflight
    from solver.runs.folder import require_free
    from solver.runs.kinds import kind_that_trains
    from solver.training.plan import plan

    if options.resume is not None:
        resume(options.resume)
        return
    if not options.robot:
        raise SolverError("name a robot to train, for example `solver train pendulum`, or a run with --resume DIR")
    robot, described = plan(
        options.robot,
        options.generated,
        algorithm=options.algorithm,
        preset=options.preset,
        identified=options.identified,
        start_from=options.warm_from,
        **vars(options.settings),
    )
    require_free(options.out or Path("runs") / described.name, "train", options.overwrite)
    checks = preflight(robot, described.settings, described.identified, options.preview)
    for line in [*checks.lines, *(f"warning: {text}" for text in checks.warnings)]:
        print(line, file=sys.stderr)
    start(kind_that_trains(described.settings.algorithm), described, options.out, options.overwrite)
