"""`solver plot`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Options:
    """The figures are written into the folder `figures` of the run; for a shipped policy into runs/NAME/figures."""

    run: Annotated[Path, Positional]
    """Run folder of a training, or a policy of `solver policies`."""
    joint: Annotated[str | None, arg(metavar="COORDINATE")] = None
    """Coordinate on the horizontal axis of the maps. By default the first one that turns without end."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Changed parameters of the plant in the rollouts, as in `solver evaluate`."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Draw, and print the paths."""
    from solver.commands.changes import read_changes
    from solver.evaluation.plots import plot_run

    for path in plot_run(options.run, options.joint, read_changes(options.changes), options.generated):
        print(path)
