"""`solver baseline`: an algorithm of Stable-Baselines3 on the same robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from modelgen.commandline.options import Argument, Subjects
from solver.baselines.settings import BaselineSettings, baseline_settings
from solver.commands.resuming import hint, require_alone
from solver.errors import SolverError

#: Subject of the settings in help -> the first of them; those that follow in `BaselineSettings` belong to it too.
SUBJECTS = {
    "algorithm": "algorithm",
    "fit": "learning_rate",
    "network": "layers",
    "evaluation": "evaluate_every",
}


@dataclass(frozen=True)
class Options:
    """The defaults of the settings depend on the algorithm: `solver baseline ROBOT --algorithm ppo --help` shows those
    that the command takes."""

    robot: Annotated[str, Argument(positional=True)] = ""
    """Name of a robot built with `modelgen build`."""
    out: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Run folder. By default runs/ROBOT-ALGORITHM-START-seedN, with -randomized before the seed."""
    overwrite: bool = False
    """Replace a run that is already in the folder."""
    resume: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Continue the baseline in this folder, with its own settings. No other option may stand beside it."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    settings: Annotated[BaselineSettings, Subjects(SUBJECTS)] = field(default_factory=BaselineSettings)


def defaults(given: Mapping[str, Any]) -> Options:
    """The algorithm's settings, which the command line then changes."""
    require_alone(given)
    return Options(settings=baseline_settings(given.get("algorithm", BaselineSettings.algorithm)))


def run(options: Options) -> None:
    """Train, with progress on a terminal."""
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
            raise KeyboardInterrupt(hint("baseline", folder)) from None
    print(f"trained {folder}    next: solver evaluate {folder}")
