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

    runs: Annotated[list[Path], Positional]
    """One to four run folders or policies of `solver policies`, all of one robot; or the name of a robot, for its
    policies that ship with the package."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """HTML file to write. By default ROBOT.html."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Write, and print the path and its size."""
    from solver.export.page_export import emit
    from solver.runs.folder import write_bytes
    from solver.runs.shipped import of_robot
    from solver.training.solution import load_solution

    require_writable({"--out": options.out or Path("ROBOT.html")}, error=SolverError)
    runs = [policy for run in options.runs for policy in of_robot(run) or [str(run)]]
    solutions = [load_solution(run, options.generated, contexts=True) for run in runs]
    content = emit(solutions).encode()
    path = options.out or Path(f"{solutions[0].problem.robot.name}.html")
    write_bytes(path, content)
    print(f"{path}: {len(solutions)} {'run' if len(solutions) == 1 else 'runs'}, {len(content) / 1024:.0f} KiB")
