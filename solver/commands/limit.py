"""`solver limit`: the best return that trajectory optimisation finds, and how near a run comes to it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from solver.errors import SolverError


@dataclass(frozen=True)
class Limit:
    """Look for the best return any controller can have from the task's mean start, by trajectory optimisation."""

    subject: Positional[str]
    """Name of a built robot, or a run folder, whose policy is then held against the optimum and is the first guess."""
    guesses: int = 12
    """Random motions the search begins from, besides an idle robot, the straight way and a run's own motion."""
    seed: int = 0
    """Seed of the random guesses."""
    changes: Annotated[list[str], arg(name="set")] = field(default_factory=list)
    """Changed parameters, as in `solver evaluate`; a run's policy is not told of them."""
    json: FlagCreatePairsOff[bool] = False
    """Print JSON instead of a line."""
    generated: str | None = None
    """Folder of artifacts; by default ./generated, then the one shipped with the package."""


def run(options: Limit) -> None:
    """Optimise and print; a warning on the standard error stream when the best motion does not end at the target."""
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
