"""`solver train`: a new run, or one that was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from modelgen.commandline.options import Argument, Subjects
from solver.commands.resuming import require_alone
from solver.errors import SolverError
from solver.fvi.presets import Algorithm
from solver.fvi.settings import Settings

if TYPE_CHECKING:
    from modelgen.loader import CompiledRobot
    from solver.problem.identified import Identified

#: Subject of the settings in help -> the first of them; those that follow in `Settings` belong to it too.
SUBJECTS = {
    "general": "seed",
    "states": "states",
    "fit": "epochs",
    "target": "limit_cost",
    "policy": "reaction_periods",
    "network": "members",
    "adversary": "alpha_state",
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
    settings: Annotated[Settings, Subjects(SUBJECTS)] = field(default_factory=Settings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The preset's settings for the robot, which the command line then changes."""
    require_alone(given)
    if "robot" not in given:
        return Options()
    from solver.fvi.presets import make_settings
    from solver.fvi.warm_start import warm_settings
    from solver.problem.robots import load_robot

    robot = load_robot(given["robot"], "cpu", given.get("generated"))
    preset, algorithm = given.get("preset", Options.preset), given.get("algorithm", Options.algorithm)
    if given.get("identified"):
        robot = robot.with_nominal(_identified(given["identified"], robot).nominal)
    settings = make_settings(preset, robot, algorithm)
    if given.get("identified") and algorithm == "rfvi":
        settings = replace(settings, **_identified(given["identified"], robot).settings())
    if given.get("warm_from"):
        settings = replace(settings, **warm_settings(Path(given["warm_from"]), robot.name, settings))
    return Options(settings=settings, preset=preset, algorithm=algorithm)


def _identified(path: str | Path, robot: CompiledRobot) -> Identified:
    """Read the file. Raises SolverError for one that does not fit the robot."""
    from solver.problem.identified import read

    return read(Path(path), robot)


def run(options: Options) -> None:
    """Train, and say how far it is."""
    from solver.commands.training import resume, start
    from solver.fvi.controllable import require_controllable
    from solver.fvi.presets import require_algorithm
    from solver.fvi.run import Run
    from solver.fvi.warnings import forewarnings
    from solver.oracles.preview import previewed
    from solver.problem.robots import load_robot
    from solver.runs.folder import require_free
    from solver.runs.kinds import kind_that_trains

    if options.resume is not None:
        resume(options.resume)
    elif options.robot:
        if not 0.0 <= options.preview < float("inf"):
            raise SolverError(f"--preview is {options.preview}; give seconds, or 0 for no preview")
        robot, settings = load_robot(options.robot, "cpu", options.generated), options.settings
        require_algorithm(settings, options.algorithm)
        identified = None
        if options.identified is not None:
            identified = _identified(options.identified, robot)
            robot = robot.with_nominal(identified.nominal)
            if settings.alpha_parameters > 0.0:
                require_controllable(robot, identified.scaled(settings.alpha_parameters))
            print(identified.text(robot, settings.algorithm == "rfvi"), file=sys.stderr)
        before = str(options.warm_from) if options.warm_from else ""
        run = Run(robot.name, robot.hash, options.generated, settings, options.preset, before, identified)
        require_free(options.out or Path("runs") / run.name, "train", options.overwrite)
        load_robot(options.robot, settings.device, options.generated, settings.backend)  # what cannot start says so now
        line, found = previewed(robot, options.preview)
        if line:
            print(line, file=sys.stderr)
        for text in forewarnings(robot, settings, identified) + found:
            print(f"warning: {text}", file=sys.stderr)
        start(kind_that_trains(settings.algorithm), run, options.out, options.overwrite)
    else:
        raise SolverError("name a robot to train, for example `solver train pendulum`, or a run with --resume DIR")
