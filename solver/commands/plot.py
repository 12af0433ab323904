"""`solver plot`: figures of one run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg


@dataclass(frozen=True)
class Plot:
    """Draw the value function and policy, rollouts and the learning curve into the run folder."""

    run: Positional[Path]
    """Run folder."""
    joint: str | None = None
    """Coordinate on the horizontal axis of the maps; by default the first continuous one."""
    changes: Annotated[list[str], arg(name="set")] = field(default_factory=list)
    """Changed parameters of the plant in the rollouts, as in `solver evaluate`."""
    generated: str | None = None
    """Folder of artifacts when it has moved."""


def run(options: Plot) -> None:
    """Draw, and print the paths."""
    from solver.studies.plots import plot_run

    for path in plot_run(options.run, options.joint, options.changes, options.generated):
        print(path)
