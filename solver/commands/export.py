"""`solver export`: a run's policy in C99, for the robot's own controller."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from tyro.conf import Positional


@dataclass(frozen=True)
class Export:
    """Write the policy of a run as C99 source, to stand beside the files of `modelgen export NAME --c DIR`."""

    run: Positional[Path]
    """Run folder."""
    c: Path
    """Folder of the C files."""
    sampled: float | None = None
    """Control periods that an input acts before the next one can, as in `solver evaluate`."""
    generated: str | None = None
    """Folder of artifacts when it has moved."""


def run(options: Export) -> None:
    """Write, and print the paths."""
    from solver.fvi.run_folder import write_atomically
    from solver.policies.c_export import emit
    from solver.policies.load import label, load_solution

    solution = load_solution(options.run, options.generated, options.sampled)
    robot = solution.problem.robot
    for name, text in emit(solution, label(solution.run, robot)).items():
        write_atomically(options.c / name, partial(_write, text))
        print(options.c / name)
    print(f"next: modelgen export {robot.name} --c {options.c}, for {robot.name}.h and {robot.name}.c")


def _write(text: str, stream: IO[bytes]) -> None:
    stream.write(text.encode())
