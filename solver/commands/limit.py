"""`solver limit`: the best return that trajectory optimisation finds, and how near a run comes to it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Annotated

from modelgen.commandline.options import Argument
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Motions start at the mean of the task's starts. Each search finds a local optimum, so there are several."""

    subject: Annotated[str, Argument(positional=True, metavar="ROBOT_OR_RUN")]
    """Name of a built robot, or a run folder. The motion of a run's policy is compared with the optimum and is one of
    the first guesses."""
    guesses: int = 12
    """Random motions to begin from, besides an idle robot, the straight line to the target and the run's own motion."""
    seed: int = 0
    """Seed of the random motions."""
    changes: Annotated[list[str], Argument("set", "NAME=VALUE")] = field(default_factory=list)
    """Changed parameters, as in `solver evaluate`. The run's policy is not told of them."""
    json: bool = False
    """Print JSON instead of a line."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Optimise and print; warn when the best motion does not end at the target."""
    from solver.oracles.limit import find_limit

    if options.guesses < 0:
        raise SolverError(f"--guesses is {options.guesses}; give 0 or more")
    if options.seed < 0:
        raise SolverError(f"--seed is {options.seed}; give 0 or more")
    found = find_limit(options.subject, options.changes, options.guesses, options.seed, options.generated)
    if not found.at_target:
        print(
            "warning: the best motion found does not end at the target: it is out of reach within the horizon, or not "
            "worth its cost. Lengthen the horizon, raise the input limit, or look further with --guesses.",
            file=sys.stderr,
        )
    if found.gap is not None and found.gap < 0.0:
        print("warning: no search found a motion as good as the run's own; give more --guesses.", file=sys.stderr)
    about = {"subject": options.subject, "robot": found.robot, "parameters": found.parameters}
    if options.json:
        print(json.dumps(about | found.results(), indent=2))
        return
    changed = f" {' '.join(options.changes)}," if options.changes else ""
    searches = f"from {found.best.guess}; {found.solved} of {found.guesses} searches"
    line = f"{found.robot},{changed} limit {found.best.reward:.2f} ({searches})"
    if found.run_return is not None and found.gap is not None:
        line += f"   {found.label}: return {found.run_return:.2f}, gap {found.gap:.2f}"
    print(line)
