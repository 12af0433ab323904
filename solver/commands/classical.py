"""`solver classical`: a control engineer's controller of the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from solver.commands.training import require_alone
from solver.errors import SolverError
from solver.lab.baselines.classical import ClassicalSettings


@dataclass(frozen=True)
class Options:
    """Tunes the controller by the task's cost, as other algorithms are trained, and writes a run folder."""

    robot: Annotated[str, Positional] = ""
    """Name of a robot built with `modelgen build`."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Run folder. By default runs/ROBOT-ALGORITHM-seedN."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Annotated[Path | None, arg(metavar="DIR")] = None
    """Continue the run in this folder with its own settings. Give no other option."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    settings: ClassicalSettings = field(default_factory=ClassicalSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The defaults; --resume stands alone."""
    require_alone(given)
    return Options()


def run(options: Options) -> None:
    """Tune, and show the progress."""
    from solver.commands.training import resume, start
    from solver.lab.baselines.classical import describe
    from solver.problem.robots import load_robot
    from solver.runs.kinds import kind_that_trains

    if options.resume is not None:
        resume(options.resume)
    elif options.robot:
        run = describe(load_robot(options.robot, "cpu", options.generated), options.generated, **vars(options.settings))
        start(kind_that_trains(options.settings.algorithm), run, options.out, options.overwrite)
    else:
        raise SolverError("name a robot, for example `solver classical pendulum`, or a run with --resume DIR")
