"""`solver plot`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument


@dataclass(frozen=True)
class Options:
    """The figures go to the folder `figures` of the run; of a shipped policy to runs/NAME/figures."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training, or a policy of `solver policies`."""
    joint: Annotated[str | None, Argument(metavar="COORDINATE")] = None
    """Coordinate on the horizontal axis of the maps. By default the first one that turns without end."""
    changes: Annotated[list[str], Argument("set", "NAME=VALUE")] = field(default_factory=list)
    """Changed parameters of the plant in the rollouts, as in `solver evaluate`."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""


def run(options: Options) -> None:
    """Draw, and print the paths."""
    from solver.evaluation.plots import plot_run

    for path in plot_run(options.run, options.joint, options.changes, options.generated):
        print(path)
