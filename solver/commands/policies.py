"""`solver policies`: the trained policies that ship with the package."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from modelgen.commandline import Range
from solver.errors import SolverError

GUESSES = 24


@dataclass(frozen=True)
class Options:
    """The other commands take such a policy by its name in place of a run folder."""

    ship: Annotated[Path | None, arg(metavar="RUN")] = None
    """For maintainers: evaluate this run, find its limit, and make it the shipped policy of its robot and algorithm.
    Only its weights and settings are written."""
    guesses: Annotated[int | None, Range(0, 100_000)] = None
    """Random motions with which the search of --ship for the limit begins, by default 24, as in `solver limit`."""
    json: bool = False
    """Print JSON instead of a table."""


def run(options: Options) -> None:
    """Ship the run of --ship, then print."""
    from solver.runs.shipped import names, read_figures, table

    if options.ship is None and options.guesses is not None:
        raise SolverError(f"--guesses {options.guesses} is for --ship; give both, or leave it out")
    guesses = GUESSES if options.guesses is None else options.guesses
    shown = names() if options.ship is None else [_ship(options.ship, guesses)]
    figures = {name: read_figures(name) for name in shown}
    if options.json:
        print(json.dumps({name: dataclasses.asdict(row) for name, row in figures.items()}, indent=2))
    elif figures:
        print(table(figures))
    else:
        print("no policies ship with this version; train one with `solver train ROBOT`")


def _ship(folder: Path, guesses: int) -> str:
    """Measure a run, then write it and its figures; returns its name."""
    from datetime import UTC, datetime

    from solver.evaluation import evaluate
    from solver.oracles.limit import find_limit
    from solver.runs.shipped import Figures, commit
    from solver.training.lifecycle import require_shippable, ship

    run = require_shippable(folder)  # before minutes of optimisation
    statistics = evaluate(folder).statistics
    limit = find_limit(str(folder), {}, guesses, seed=0)
    assert limit.gap is not None  # it is that of a run
    figures = Figures(
        run.robot,
        run.settings.algorithm,
        run.settings.seed,
        statistics["return_mean"],
        statistics["return_spread"],
        statistics["success_rate"],
        limit.reward,
        limit.idle_return,
        limit.gap,
        limit.gap_percent,
        commit(),
        datetime.now(UTC).date().isoformat(),
    )
    return ship(folder, figures)
