"""`modelgen identify`: parameters and their confidence set from recordings of a robot."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.errors import ModelError
from modelgen.files import replacing, require_apart
from modelgen.identification.model import Kind


@dataclass(frozen=True)
class Options:
    """A recording is a CSV file with the columns `time` (s), all coordinates and all inputs, in SI units. Columns of
    velocities are used where the file has them. The input of a row is held until the next row."""

    name: Annotated[str, Argument(positional=True)]
    """Name of a built robot."""
    logs: Annotated[tuple[Path, ...], Argument(positional=True, metavar="LOG.csv")]
    """The recordings."""
    columns: Annotated[tuple[str, ...], Argument(metavar="NAME=EXPRESSION")] = ()
    """Other columns, units, signs or zeros: columns and numbers with + - * / ^, pi, brackets, and % for a hundredth.
    For example angle=ticks*2*pi/4096+pi torque=current*-0.05, or torque=0. NAME is time, a state or an input."""
    out: Annotated[Path | None, Argument(metavar="FILE")] = None
    """The file to write. By default NAME.identified.json."""
    html: Annotated[Path | None, Argument(metavar="FILE")] = None
    """Write a page with figures to FILE: held-out motion, the residual's spectrum, the set, what to measure next."""
    window: float = 0.5
    """Seconds that the model is simulated before it starts again from the measurements."""
    estimate: tuple[Kind, ...] = ()
    """Effects between the model and the recordings that are estimated too: `delay` (of sensors and drives together),
    `offset` (of every coordinate), `gain` (of every input)."""
    longest_delay: float = 0.05
    """The largest delay, in seconds."""
    delay: float = 0.0
    """The known delay of positions behind inputs, in seconds: of sensors and drives together."""
    directory: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Read recordings, identify, write the file, and print its main figures."""
    from modelgen.identification import identified_file, result
    from modelgen.identification.identify import identify
    from modelgen.identification.model import Model
    from modelgen.identification.recordings import read_all
    from modelgen.loader import load

    _check(options)
    robot = load(options.name, directory=options.directory, parallel=False)
    path = options.out or Path(f"{robot.name}.identified.json")
    require_apart({"--out": path, "--html": options.html}, options.logs)
    recordings = read_all(options.logs, options.columns, robot.metadata)
    model = Model(robot, options.estimate, options.longest_delay, options.delay)
    identified = identify(model, recordings, options.window, lambda line: print(line, file=sys.stderr, flush=True))
    content = result.content(robot, recordings, identified)
    identified_file.write(path, content)
    print(f"{result.text(robot, content)}\n{path} is written")
    if options.html:
        from modelgen.identification.page import html

        with replacing(options.html) as beside:
            beside.write_text(html(robot, content, identified, str(path)), encoding="utf-8")
        print(f"{options.html} is written")


def _check(options: Options) -> None:
    """Raise ModelError for a length of time that is not one, and for options that exclude each other."""
    for name, value in (("window", options.window), ("longest-delay", options.longest_delay)):
        if not (math.isfinite(value) and value > 0):
            raise ModelError(f"--{name} {value:g} is no length of time; write a number of seconds above 0.")
    if not 0 <= options.delay < math.inf:
        raise ModelError(f"--delay {options.delay:g} is no length of time; write seconds, 0 or more.")
    if options.delay and "delay" in options.estimate:
        raise ModelError("--delay gives the delay and --estimate delay asks for it; write one of them.")
    if options.longest_delay != Options.longest_delay and "delay" not in options.estimate:
        raise ModelError("--longest-delay bounds a delay that is estimated; write --estimate delay too.")
