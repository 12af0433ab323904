"""`modelgen animate`: a moving picture of a robot without a policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable


@dataclass(frozen=True)
class Options:
    """Inputs are zero, constant or sines. Parameters are nominal."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """A .gif or .mp4 file. By default NAME.gif."""
    start: Annotated[tuple[str, ...], arg(metavar="STATE=VALUE ...")] = ()
    """Initial states; the others are at the target. By default every coordinate is a little off the target."""
    input: Annotated[tuple[str, ...], arg(metavar="INPUT=VALUE[@HERTZ] ...")] = ()
    """Inputs: a constant, or the amplitude and the frequency of a sine. The others are zero."""
    seconds: Annotated[float, Range(0.01, 60.0)] = 5.0
    """Length of the motion."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Roll out, draw, and print the path."""
    import numpy as np

    from modelgen.commandline import assigned, states_given
    from modelgen.loader import load
    from modelgen.report.animation import animate, leaning, rollout, signal

    require_writable({"--out": options.out or Path("NAME.gif")})
    robot = load(options.name, directory=options.generated, parallel=False)
    start = np.array(robot.metadata.task.target) if options.start else leaning(robot)
    given = states_given("--start", options.start, robot.metadata.states, f"state of `{robot.name}`")
    for name, value in given.items():
        start[robot.state_names.index(name)] = value
    inputs = assigned("--input", options.input, robot.input_names, f"input of `{robot.name}`")
    states = rollout(robot, start, {name: signal(name, text) for name, text in inputs.items()}, options.seconds)
    path = options.out or Path(f"{robot.name}.gif")
    animate(robot, states, path)
    print(f"{path}: {options.seconds:g} s of {robot.name}, {path.stat().st_size / 1024:.0f} KiB")
