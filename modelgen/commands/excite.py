"""`modelgen excite`: an input that shows the parameters of a robot and stays within the limits."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.errors import ModelError
from modelgen.files import require_writable


@dataclass(frozen=True)
class Options:
    """Looks for the sum of sines after which the confidence set is smallest. The robot starts at rest. The input stays
    within the limits, and begins and ends at zero."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    identified: Annotated[Path | None, arg(metavar="FILE")] = None
    """A file of `modelgen identify` with what is known already. By default the bounds of the model file."""
    out: Annotated[Path | None, arg(metavar="FILE.csv")] = None
    """The file to write: time and inputs. By default NAME.excite.csv."""
    seconds: Annotated[float, Range(0.01, 60.0)] = 10.0
    """Length of the motion."""
    highest: Annotated[float, Range(0.001, 1000.0)] = 3.0
    """Highest frequency of the input, in Hz."""
    share: Annotated[float, Range(0.001, 1.0)] = 0.8
    """Share of the inputs' limits that is used."""
    start: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Initial states, at which the robot rests. By default, and for the other states, the mean start of the task."""
    noise: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Standard deviations of sensors. By default as in FILE, or a thousandth of the limit of each coordinate."""
    window: Annotated[float, Range(0.001, 60.0)] = 0.5
    """The --window of the identification, in seconds."""
    generations: Annotated[int, Range(1, 100_000)] = 60
    """Generations of the search."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Search, write the input, and print what it makes visible."""
    import numpy as np

    from modelgen.commandline import assigned, number
    from modelgen.identification import excitation
    from modelgen.identification.recordings import OFF_SPHERE
    from modelgen.loader import load
    from modelgen.metadata import Tangent

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
    for name, text in assigned("--start", options.start, robot.state_names, kind).items():
        start[robot.state_names.index(name)] = number("--start", name, text)
    for rotation in robot.metadata.rotations:
        length = float(np.linalg.norm(start[rotation.quaternion]))
        if not abs(length - 1.0) <= OFF_SPHERE:
            raise ModelError(
                f"--start gives `{rotation.name}` a quaternion of the length {length:.4g}, and a rotation has 1. Give "
                f"all of {', '.join(robot.state_names[rotation.quaternion])}."
            )
        start[rotation.quaternion] /= length
    known = excitation.read(options.identified, robot) if options.identified else excitation.bounds(robot)
    noise = assigned("--noise", options.noise, Tangent(robot.metadata).names, kind)
    deviations = {name: number("--noise", name, text) for name, text in noise.items()}
    known = excitation.with_sensors(known, robot, deviations)
    task = excitation.Task(
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
    path = options.out or Path(f"{robot.name}.excite.csv")
    require_writable({"--out": path}, [options.identified] if options.identified else [])
    best = excitation.excite(robot, task, options.generations, lambda line: print(line, file=sys.stderr, flush=True))
    excitation.write(path, robot, best)
    print(f"{excitation.text(robot, task, best)}\n{path} is written")
