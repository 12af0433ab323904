"""`solver baseline`: an algorithm of Stable-Baselines3 on the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from modelgen.commandline.options import Argument, Subjects
from solver.commands.resuming import require_alone
from solver.errors import SolverError
from solver.lab.baselines.settings import BaselineSettings, baseline_settings

#: Subject of the settings in help -> the first of them; those that follow in `BaselineSettings` belong to it too.
SUBJECTS = {
    "algorithm": "algorithm",
    "fit": "learning_rate",
    "network": "layers",
    "evaluation": "evaluate_every",
}


@dataclass(frozen=True)
class Options:
    """The defaults of the settings depend on the algorithm: `solver baseline ROBOT --algorithm ppo --help` shows those
    that the command takes."""

    robot: Annotated[str, Argument(positional=True)] = ""
    """Name of a robot built with `modelgen build`."""
    out: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Run folder. By default runs/ROBOT-ALGORITHM-START-seedN, with -randomized before the seed."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Continue the baseline in this folder, with its own settings. No other option may stand beside it."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    settings: Annotated[BaselineSettings, Subjects(SUBJECTS)] = field(default_factory=BaselineSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The algorithm's settings, which the command line then changes."""
    require_alone(given)
    return Options(settings=baseline_settings(given.get("algorithm", BaselineSettings.algorithm)))


def run(options: Options) -> None:
    """Train, and say how far it is."""
    from solver.commands.training import resume, start
    from solver.lab.baselines.run import new_run
    from solver.problem.robots import load_robot
    from solver.runs.kinds import kind_that_trains

    if options.resume is not None:
        resume(options.resume)
    elif options.robot:
        run = new_run(load_robot(options.robot, "cpu", options.generated), options.generated, options.settings)
        start(kind_that_trains(options.settings.algorithm), run, options.out, options.overwrite)
    else:
        raise SolverError("name a robot, for example `solver baseline pendulum`, or a baseline with --resume DIR")
