"""`modelgen identify`: parameters and their confidence set from recordings of a robot."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.errors import ModelError
from modelgen.files import replacing, require_writable
from modelgen.identification.model import Kind


@dataclass(frozen=True)
class Options:
    """A recording is a CSV file in SI units with the columns `time`, all coordinates and all inputs. Columns of
    velocities are used too. The input of a row is held until the next row."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    logs: Annotated[tuple[Path, ...], Positional, arg(metavar="LOG.csv ...")]
    """The recordings."""
    columns: Annotated[tuple[str, ...], arg(metavar="NAME=EXPRESSION ...")] = ()
    """Other columns, units, signs or zeros: columns and numbers with + - * / ^, pi, brackets, and % for a hundredth.
    For example angle=ticks*2*pi/4096+pi torque=current*-0.05, or torque=0. NAME is time, a state or an input."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """The file to write. By default NAME.identified.json."""
    html: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write a page with figures: held-out motion, spectrum of the residual, confidence set, what to measure next."""
    window: Annotated[float, Range(0.001, 3600.0)] = 0.5
    """Seconds of a simulation before it starts again from the measurements."""
    estimate: tuple[Kind, ...] = ()
    """Errors of the measurement to estimate too: `delay` (of sensors and drives together), `offset` (of every
    coordinate), `gain` (of every input)."""
    longest_delay: Annotated[float, Range(0.0001, 10.0)] = 0.05
    """Upper bound of the estimated delay, in seconds."""
    delay: Annotated[float, Range(0.0, 10.0)] = 0.0
    """Known delay of sensors and drives together, in seconds."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Read, identify, write the file, and print its main figures."""
    from modelgen.identification import identified_file, result
    from modelgen.identification.identify import identify
    from modelgen.identification.model import Model
    from modelgen.identification.recordings import read_all
    from modelgen.loader import load

    if options.delay and "delay" in options.estimate:
        raise ModelError("--delay gives the delay and --estimate delay estimates it; write one of them.")
    if options.longest_delay != Options.longest_delay and "delay" not in options.estimate:
        raise ModelError("--longest-delay bounds a delay that is estimated; write --estimate delay too.")
    robot = load(options.name, directory=options.generated, parallel=False)
    path = options.out or Path(f"{robot.name}.identified.json")
    require_writable({"--out": path, "--html": options.html}, options.logs)
    recordings = read_all(options.logs, options.columns, robot.metadata)
    model = Model(robot, options.estimate, options.longest_delay, options.delay)
    identified = identify(model, recordings, options.window, lambda line: print(line, file=sys.stderr, flush=True))
    content = result.content(robot, recordings, identified)
    identified_file.write(path, content)
    print(f"{result.text(robot, content)}\n{path} is written")
    if options.html:
        from modelgen.identification.figures import html

        with replacing(options.html) as unfinished:
            unfinished.write_text(html(robot, content, identified, str(path)), encoding="utf-8")
        print(f"{options.html} is written")
