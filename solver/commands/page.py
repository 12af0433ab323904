"""`solver page`: a robot under several policies in one HTML file, computed in the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.files import require_writable
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """The file works without a server and without a network."""

    runs: Annotated[list[Path], Positional, arg(metavar="RUN ...")]
    """One to four run folders or policies of `solver policies`, all of one robot; or the name of a robot, for its
    policies that ship with the package."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """HTML file to write. By default ROBOT.html."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Write, and print the path and its size."""
    from solver.interface import Run, page
    from solver.runs.shipped import of_robot

    if not options.runs:
        raise SolverError("name one to four runs or a robot, for example `solver page pendulum`")
    require_writable({"--out": options.out or Path("ROBOT.html")}, error=SolverError)
    runs = [policy for run in options.runs for policy in of_robot(run) or [str(run)]]
    loaded = [Run(run, options.generated) for run in runs]
    path = page(*loaded, out=options.out or f"{loaded[0].description.robot}.html")
    print(f"{path}: {len(runs)} {'run' if len(runs) == 1 else 'runs'}, {path.stat().st_size / 1024:.0f} KiB")
