"""`solver limit`: the best return that trajectory optimisation finds, and the gap of a run to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import warn
from solver.streams import SEEDS


@dataclass(frozen=True)
class Options:
    """Motions begin at a few starts that represent the start distribution of the task; the limit is their mean. A
    search finds a local optimum, so there are several searches."""

    subject: Annotated[str, Positional, arg(metavar="ROBOT_OR_RUN")]
    """Name of a built robot, a run folder, or a policy of `solver policies`. The motion of a policy is compared with
    the optimum, and is one of the first guesses."""
    starts: Annotated[int, Range(1, 1000)] = 5
    """Starts: quantiles of the start distribution. One start is its mean."""
    guesses: Annotated[int, Range(0, 100_000)] = 24
    """Random motions as first guesses, shared among the starts. Other guesses are always made: an idle robot, the
    straight line to the target, motions that pump up energy (not with 0), and the best motions of other starts."""
    seed: Annotated[int, Range(0, SEEDS - 1)] = 0
    """Seed of the random motions."""
    changes: Annotated[list[str], arg(name="set", metavar="NAME=VALUE ...")] = field(default_factory=list)
    """Changed parameters, as in `solver evaluate`. The policy is told those that its training gave."""
    json: bool = False
    """Print JSON instead of a line."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training; for a robot ./generated, then the one shipped."""


def run(options: Options) -> None:
    """Optimise and print; warn where the best motion does not end at the target."""
    from solver.commands.changes import read_changes
    from solver.oracles.limit import find_limit

    changes = read_changes(options.changes)
    limit = find_limit(options.subject, changes, options.guesses, options.seed, options.generated, options.starts)
    for text in limit.warnings():
        warn(text)
    if options.json:
        about = {"subject": options.subject, "robot": limit.robot, "parameters": limit.parameters}
        print(json.dumps(about | limit.results(), indent=2))
        return
    changed = f" {' '.join(options.changes)}," if options.changes else ""
    print(f"{limit.robot},{changed} {limit.text()}")
