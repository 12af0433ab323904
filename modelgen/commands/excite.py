"""`modelgen excite`: an input within the limits that shows the parameters of a robot, to be played on it."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.errors import ModelError


@dataclass(frozen=True)
class Options:
    """Of all sums of sines within the limits, look for the one after which the confidence set is smallest. The robot
    starts at rest, the input begins and ends at zero."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    identified: Annotated[Path | None, arg(metavar="FILE")] = None
    """What is known already, a file of `modelgen identify`. By default the bounds of the model file."""
    out: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """The file to write: time and inputs. By default NAME.excite.csv."""
    seconds: float = 10.0
    """Length of the motion, at most 60."""
    highest: float = 3.0
    """The highest frequency of the input, in Hz."""
    share: float = 0.8
    """The share of the inputs' limits that is used."""
    start: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Where the robot rests at the start. By default the mean start of its task; states left out are the same."""
    noise: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Standard deviations of sensors. By default those of FILE, or a thousandth of every coordinate's limit."""
    window: float = 0.5
    """The --window of the identification."""
    generations: int = 60
    """Length of the search."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Search, write the input, and print what it makes visible."""
    import numpy as np

    from modelgen.commandline.numbers import assigned, number
    from modelgen.identification import known
    from modelgen.identification.excitation import Task, excite
    from modelgen.identification.visible import text, write
    from modelgen.loader import load

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
    robot = load(options.name, directory=options.generated, parallel=False)
    if not (robot.parameter_names and robot.input_names):
        raise ModelError(f"`{robot.name}` has no parameters to identify, or no inputs to excite it with.")
    if options.highest > robot.metadata.task.control_rate / 4:
        raise ModelError(
            f"--highest {options.highest:g} Hz is too fast: the input changes {robot.metadata.task.control_rate} times "
            f"a second. Write at most --highest {robot.metadata.task.control_rate / 4:g}."
        )
    kind = f"state of `{robot.name}`"
    start = np.array(robot.metadata.task.start_mean)
    for name, told in assigned("--start", options.start, robot.state_names, kind).items():
        start[robot.state_names.index(name)] = number("--start", name, told)
    before = known.read(options.identified, robot) if options.identified else known.bounds(robot)
    noise = assigned("--noise", options.noise, robot.state_names, kind)
    before = known.with_sensors(before, robot, {name: number("--noise", name, told) for name, told in noise.items()})
    task = Task(
        start,
        options.seconds,
        options.window,
        options.highest,
        options.share,
        before.deviations,
        before.weight,
        before.centre,
        before.shape,
    )
    found = excite(robot, task, options.generations, lambda line: print(line, file=sys.stderr, flush=True))
    path = options.out or Path(f"{robot.name}.excite.csv")
    write(path, robot, found)
    print(f"{text(robot, task, found)}\n{path} is written")
