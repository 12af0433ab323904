"""`solver baseline`: an algorithm of Stable-Baselines3 on the same robot."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import FlagCreatePairsOff, OmitArgPrefixes, Positional

from solver.baselines.settings import BaselineSettings, baseline_settings
from solver.commands import INTERRUPTED
from solver.errors import SolverError


@dataclass(frozen=True)
class Baseline:
    """Train SAC, DDPG or PPO from Stable-Baselines3 on a built robot, or go on with an interrupted baseline."""

    robot: Positional[str] = ""
    """Name of a robot built with `modelgen build`."""
    out: Path | None = None
    """Run folder; by default runs/ROBOT-ALGORITHM-START-seedN, with -randomized before the seed."""
    overwrite: FlagCreatePairsOff[bool] = False
    """Replace a run that is already in the folder."""
    resume: Path | None = None
    """Go on with the baseline in this folder, with its own settings."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""
    settings: OmitArgPrefixes[BaselineSettings] = field(default_factory=BaselineSettings)


def defaults(options: Baseline) -> Baseline:
    """The algorithm's settings, as the default that the command line then changes."""
    if not options.robot:
        return Baseline()
    return Baseline(settings=baseline_settings(options.settings.algorithm))


def run(options: Baseline) -> None:
    """Train, with progress on a terminal; SystemExit after Ctrl-C."""
    from solver.baselines.runs import load_baseline, resume, start
    from solver.commands.progress import progress
    from solver.fvi.run_folder import load_checkpoint

    if options.resume is not None:
        folder, settings = options.resume, load_baseline(options.resume).settings
        done = load_checkpoint(folder, keys=("steps",))["steps"]
    elif options.robot:
        s = settings = options.settings
        name = f"{options.robot}-{s.algorithm}-{s.start}{'-randomized' if s.randomize else ''}-seed{s.seed}"
        folder, done = options.out or Path("runs") / name, 0
    else:
        raise SolverError("name a robot, for example `solver baseline pendulum`, or a baseline with --resume DIR")
    with progress(done, settings.steps, "action") as report:
        try:
            if options.resume is not None:
                resume(folder, report)
            else:
                start(options.robot, settings, folder, options.generated, report, options.overwrite)
        except KeyboardInterrupt:
            print(f"\ninterrupted; go on with: solver baseline --resume {folder}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
    print(f"trained {folder}    next: solver evaluate {folder}")
