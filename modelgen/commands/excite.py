"""`modelgen excite`: an input within the limits that shows the parameters of a robot, to be played on it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.errors import ModelError


@dataclass(frozen=True)
class Options:
    """Search for the sum of sines within the limits that makes the confidence set smallest. The robot starts at rest,
    and the input begins and ends at zero."""

    name: Annotated[str, Argument(positional=True)]
    """Name of a built robot."""
    identified: Annotated[Path | None, Argument(metavar="FILE")] = None
    """A file of `modelgen identify` with the set that is known. By default the bounds of the model file."""
    out: Annotated[Path | None, Argument(metavar="FILE.csv")] = None
    """The file to write: time and inputs. By default NAME.excite.csv."""
    seconds: float = 10.0
    """Length of the motion, at most 60."""
    highest: float = 3.0
    """The highest frequency of the input, in Hz."""
    share: float = 0.8
    """The share of the inputs' limits that is used."""
    start: Annotated[tuple[str, ...], Argument(metavar="STATE=VALUE")] = ()
    """Where the robot rests at the start. By default the mean start of its task; states left out are the same."""
    noise: Annotated[tuple[str, ...], Argument(metavar="STATE=VALUE")] = ()
    """Standard deviations of sensors. By default those of FILE, or a thousandth of every coordinate's limit."""
    window: float = 0.5
    """The --window of the identification."""
    generations: int = 60
    """Length of the search."""
    directory: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Search, write the input, and print what it makes visible."""
    import numpy as np

    from modelgen.commandline.assignments import assigned, number
    from modelgen.identification import experiment
    from modelgen.identification.excitation import Task, excite
    from modelgen.loader import load

    _check(options)
    robot = load(options.name, directory=options.directory, parallel=False)
    rate = robot.metadata.task.control_rate
    if not (robot.parameter_names and robot.input_names):
        raise ModelError(f"`{robot.name}` has no parameters to identify, or no inputs to excite it with.")
    if options.highest > rate / 4:
        raise ModelError(
            f"--highest {options.highest:g} Hz is too fast: the input changes {rate} times a second. Write at most "
            f"--highest {rate / 4:g}."
        )
    kind = f"state of `{robot.name}`"
    start = np.array(robot.metadata.task.start_mean)
    for name, value in assigned("--start", options.start, robot.state_names, kind).items():
        start[robot.state_names.index(name)] = number("--start", name, value)
    noise = assigned("--noise", options.noise, robot.state_names, kind)
    known = experiment.read(options.identified, robot) if options.identified else experiment.bounds(robot)
    known = experiment.with_sensors(
        known, robot, {name: number("--noise", name, value) for name, value in noise.items()}
    )
    task = Task(
        start,
        options.seconds,
        options.window,
        options.highest,
        options.share,
        known.deviations,
        known.weight,
        known.centre,
        known.shape,
    )
    excitation = excite(robot, task, options.generations, lambda line: print(line, file=sys.stderr, flush=True))
    path = options.out or Path(f"{robot.name}.excite.csv")
    experiment.write(path, robot, excitation)
    print(f"{experiment.text(robot, task, excitation)}\n{path} is written")


def _check(options: Options) -> None:
    """Raise ModelError for an option outside of its range."""
    ranges = (("seconds", 60.0), ("highest", 1000.0), ("share", 1.0), ("window", 60.0), ("generations", 1e5))
    for name, most in ranges:
        value = getattr(options, name)
        if not (math.isfinite(value) and 0 < value <= most):
            raise ModelError(f"--{name} {value:g} cannot be used; write a number above 0, at most {most:g}.")
    if options.window > options.seconds:
        raise ModelError(
            f"--seconds {options.seconds:g} is shorter than a window of the identification, {options.window:g} s. "
            f"Write longer --seconds, or a shorter --window here and in `modelgen identify`."
        )
