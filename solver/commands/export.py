"""`solver export`: a run's policy in C99, for the robot's own controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument


@dataclass(frozen=True)
class Options:
    """The files stand beside those of `modelgen export NAME --c DIR`, which they call."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training, or a policy of `solver policies`."""
    c: Annotated[Path, Argument(metavar="DIR")]
    """Folder for the C files."""
    observer: bool = False
    """Write the observer too: the state from measured positions and past inputs, its memory in a struct."""
    reaction_periods: float | None = None
    """Control periods that an input acts before the next one can, as in `solver evaluate`. By default as in
    training."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""


def run(options: Options) -> None:
    """Write, and print the paths."""
    from solver.fvi.solution import label, load_solution
    from solver.policies.c_export import emit, emit_observer
    from solver.runs.folder import write_text

    solution = load_solution(options.run, options.generated, options.reaction_periods)
    robot = solution.problem.robot
    files = emit(solution, label(solution.run, robot))
    if options.observer:
        files |= emit_observer(solution.problem)
    for name, text in files.items():
        write_text(options.c / name, text)
        print(options.c / name)
    print(f"next: modelgen export {robot.name} --c {options.c}, for {robot.name}.h and {robot.name}.c")
