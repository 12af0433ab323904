"""`solver train`: a new run, or one that was interrupted."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional

from solver.commands import INTERRUPTED
from solver.errors import SolverError
from solver.fvi.settings import Settings


@dataclass(frozen=True)
class Train:
    """Train a policy for a built robot, or go on with an interrupted run."""

    robot: Positional[str] = ""
    """Name of a robot built with `modelgen build`."""
    preset: str = "fast"
    """`fast` (minutes on two cores) or `paper` (the authors' settings); every setting below overrides it."""
    out: Path | None = None
    """Run folder; by default runs/ROBOT-ALGORITHM-PRESET-seedN."""
    overwrite: FlagCreatePairsOff[bool] = False
    """Replace a run that is already in the folder."""
    resume: Path | None = None
    """Go on with the run in this folder, with its own settings."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""
    settings: OmitArgPrefixes[Settings] = field(default_factory=Settings)


def defaults(options: Train) -> Train:
    """The preset's settings for the robot, as the default that the command line then changes."""
    if not options.robot:
        return Train()
    from solver.fvi.presets import make_settings
    from solver.problem.robots import load_robot

    return Train(settings=make_settings(options.preset, load_robot(options.robot, "cpu", options.generated)))


def run(options: Train) -> None:
    """Train, with progress on a terminal; SystemExit after Ctrl-C."""
    from solver.commands.progress import progress
    from solver.fvi.run_folder import load_checkpoint, load_run
    from solver.fvi.trainer import resume, start
    from solver.fvi.warnings import forewarnings
    from solver.problem.robots import load_robot

    if options.resume is not None:
        folder, settings = options.resume, load_run(options.resume).settings
        done = load_checkpoint(folder)["iteration"]
    elif options.robot:
        s = settings = options.settings
        name = f"{options.robot}-{s.algorithm}-{options.preset}-seed{s.seed}"
        folder, done = options.out or Path("runs") / name, 0
        for text in forewarnings(load_robot(options.robot, "cpu", options.generated), settings):
            print(f"warning: {text}", file=sys.stderr)
    else:
        raise SolverError("name a robot to train, for example `solver train pendulum`, or a run with --resume DIR")
    with progress(done, settings.iterations) as report:
        try:
            if options.resume is not None:
                resume(folder, report)
            else:
                start(options.robot, options.preset, settings, folder, options.generated, report, options.overwrite)
        except KeyboardInterrupt:
            print(f"\ninterrupted; go on with: solver train --resume {folder}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
    print(f"trained {folder}    next: solver evaluate {folder}    solver plot {folder}")
