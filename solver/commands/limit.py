"""`solver limit`: the best return that trajectory optimisation finds, and how near a run comes to it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from modelgen.commandline.options import Argument
from solver.errors import SolverError

if TYPE_CHECKING:
    from solver.oracles.limit import Limit


@dataclass(frozen=True)
class Options:
    """Motions begin at a few starts that stand for the task's start distribution, and the limit is their mean. Each
    search finds a local optimum, so there are several."""

    subject: Annotated[str, Argument(positional=True, metavar="ROBOT_OR_RUN")]
    """Name of a built robot, a run folder, or a policy of `solver policies`. The motion of a run's policy is compared
    with the optimum and is one of the first guesses."""
    starts: int = 5
    """Starts: quantiles of the start distribution; its mean where it is 1 or nothing is drawn."""
    guesses: int = 24
    """Random motions to begin from, shared among the starts. Every search also begins from an idle robot, the straight
    line to the target, up to three motions that are pumped up (none with 0), the run's own motion, and the best ones
    from a neighbouring start and from the best start."""
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
    found = find_limit(
        options.subject, options.changes, options.guesses, options.seed, options.generated, options.starts
    )
    _warn(found)
    about = {"subject": options.subject, "robot": found.robot, "parameters": found.parameters}
    if options.json:
        print(json.dumps(about | found.results(), indent=2))
        return
    changed = f" {' '.join(options.changes)}," if options.changes else ""
    print(f"{found.robot},{changed} {_line(found)}")
    if len(found.starts) > 1:
        print(_table(found))


def _warn(found: Limit) -> None:
    count = len(found.starts)
    away = sum(not each.at_target for each in found.starts)
    if away:
        which = "" if count == 1 else f" from {away} of {count} starts"
        print(
            f"warning: the best motion found{which} does not end at the target: it is out of reach within the horizon, "
            "or not worth its cost. Lengthen the horizon, raise the input limit, or look further with --guesses.",
            file=sys.stderr,
        )
    better = sum(each.gap is not None and each.gap < 0.0 for each in found.starts)
    if better:
        which = "" if count == 1 else f" from {better} of {count} starts"
        print(
            f"warning: no search{which} found a motion as good as the run's own; give more --guesses.", file=sys.stderr
        )


def _line(found: Limit) -> str:
    """The means over the starts."""
    from solver.plants.outcome import decimals

    worst, count = found.starts[found.worst], len(found.starts)
    solved, guesses = sum(each.solved for each in found.starts), sum(each.guesses for each in found.starts)
    about = f"from {worst.best.guess}" if count == 1 else f"mean of {count} starts"
    digits = decimals(found.reward)
    line = f"limit {found.reward:.{digits}f} ({about}; {solved} of {guesses} searches)"
    line += f"   idle {found.idle_return:.{digits}f}"
    if found.run_return is not None and found.gap is not None:
        line += f"   {found.label}: return {found.run_return:.{digits}f}, gap {found.gap:.{digits}f}"
        line += _percent(found.gap_percent)
    return line


def _table(found: Limit) -> str:
    """A line for each start, the worst one marked."""
    from solver.plants.outcome import decimals

    lines, digits = [], decimals(found.reward)
    for k, each in enumerate(found.starts):
        pairs = zip(found.state_names, each.start.tolist(), strict=True)
        where = ", ".join(f"{name} {value:.3g}" for name, value in pairs)
        line = f"  start {k} ({where}): limit {each.best.reward:.{digits}f} (from {each.best.guess})"
        line += f", idle {each.idle_return:.{digits}f}"
        if each.run_return is not None and each.gap is not None:
            line += f", return {each.run_return:.{digits}f}, gap {each.gap:.{digits}f}{_percent(each.gap_percent)}"
        line += "" if each.at_target else ", not at the target"
        lines.append(line + (", worst" if k == found.worst else ""))
    return "\n".join(lines)


def _percent(gap: float | None) -> str:
    return "" if gap is None else f" ({gap:.1f} %)"
