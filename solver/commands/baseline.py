"""`solver baseline`: an algorithm of Stable-Baselines3 on the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from solver.commands.training import require_alone
from solver.errors import SolverError
from solver.lab.baselines.settings import BaselineSettings, baseline_settings

COMMON = ("robot", "algorithm", "start", "randomize", "steps", "seed", "out", "overwrite", "resume")


@dataclass(frozen=True)
class Options:
    """The defaults of the settings depend on the algorithm: `solver baseline ROBOT --algorithm ppo --help` shows the
    defaults of PPO."""

    robot: Annotated[str, Positional] = ""
    """Name of a robot built with `modelgen build`."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Run folder. By default runs/ROBOT-ALGORITHM-START-seedN, with -randomized before the seed."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Annotated[Path | None, arg(metavar="DIR")] = None
    """Continue the baseline in this folder with its own settings. Give no other option."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    settings: BaselineSettings = field(default_factory=BaselineSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The algorithm's settings, which the command line then changes."""
    require_alone(given)
    return Options(settings=baseline_settings(given.get("algorithm", BaselineSettings.algorithm)))


def run(options: Options) -> None:
    """Train, and show the progress."""
    from solver.commands.training import resume, start
    from solver.lab.baselines.settings import new_run
    from solver.problem.robots import load_robot
    from solver.runs.kinds import kind_that_trains

    if options.resume is not None:
        resume(options.resume)
    elif options.robot:
        run = new_run(load_robot(options.robot, "cpu", options.generated), options.generated, options.settings)
        start(kind_that_trains(options.settings.algorithm), run, options.out, options.overwrite)
    else:
        raise SolverError("name a robot, for example `solver baseline pendulum`, or a baseline with --resume DIR")
