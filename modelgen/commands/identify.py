"""`modelgen identify`: parameters and their confidence set from recordings of a robot."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.errors import ModelError
from modelgen.files import replacing, require_apart
from modelgen.identification.effects import Kind


@dataclass(frozen=True)
class Options:
    """A recording is a CSV file with the columns `time` (s), all coordinates and all inputs, in SI units. Columns of
    velocities are used where they are there. The input of a row is held until the next row."""

    name: Annotated[str, Positional]
    """Name of a built robot."""
    logs: Annotated[tuple[Path, ...], Positional, arg(metavar="LOG.csv ...")]
    """The recordings."""
    columns: Annotated[tuple[str, ...], arg(metavar="NAME=COLUMN[*FACTOR][+OFFSET] ...")] = ()
    """Columns with other names, units, signs or zeros, for example angle=theta*pi/180+pi torque=current*-0.05. NAME is
    time, a state or an input."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """The file to write. By default NAME.identified.json."""
    html: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write a page with figures to FILE: held-out motion, the residual's spectrum, the set, what to measure next."""
    window: float = 0.5
    """Seconds that the model is simulated before it starts again from the measurements."""
    estimate: tuple[Kind, ...] = ()
    """What stands between the model and the recordings, to be estimated too: `delay` (of sensors and drives together),
    `offset` (of every coordinate), `gain` (of every input)."""
    longest_delay: float = 0.05
    """Seconds that the delay is at most."""
    delay: float = 0.0
    """Seconds by which positions are known to be late behind inputs: of sensors and drives together."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Read, identify, write the file, and print its main figures."""
    from modelgen.artifact.folder import find
    from modelgen.artifact.folder import read as manifest
    from modelgen.identification import result
    from modelgen.identification.identify import identify
    from modelgen.identification.model import Model
    from modelgen.identification.recordings import read_all
    from modelgen.loader import load

    if not (math.isfinite(options.window) and options.window > 0):
        raise ModelError(f"--window {options.window:g} is no length of time; write a number of seconds above 0.")
    if not (math.isfinite(options.longest_delay) and options.longest_delay > 0):
        raise ModelError(f"--longest-delay {options.longest_delay:g} is no length of time; write seconds above 0.")
    if not 0 <= options.delay < math.inf:
        raise ModelError(f"--delay {options.delay:g} is no length of time; write seconds, 0 or more.")
    if options.delay and "delay" in options.estimate:
        raise ModelError("--delay states the delay and --estimate delay asks for it; write one of them.")
    if options.longest_delay != Options.longest_delay and "delay" not in options.estimate:
        raise ModelError("--longest-delay bounds a delay that is estimated; write --estimate delay too.")
    robot = load(options.name, directory=options.generated, parallel=False)
    path = options.out or Path(f"{robot.name}.identified.json")
    require_apart({"--out": path, "--html": options.html}, options.logs)
    recordings = read_all(options.logs, options.columns, robot.metadata)
    model = Model(robot, options.estimate, options.longest_delay, options.delay)
    found = identify(model, recordings, options.window, lambda line: print(line, file=sys.stderr, flush=True))
    data = result.content(robot, manifest(find(options.name, options.generated)).model_hash, recordings, found)
    result.write(path, data)
    print(f"{result.text(robot, data)}\n{path} is written")
    if options.html:
        from modelgen.identification.page import html

        with replacing(options.html) as beside:
            beside.write_text(html(robot, data, found, str(path)), encoding="utf-8")
        print(f"{options.html} is written")
