"""`solver check`: an independent check of a proof that `solver prove --out` wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from solver.commands import FAILED, MOST_JOBS
from solver.errors import SolverError
from solver.streams import SEEDS


@dataclass(frozen=True)
class Options:
    """Ball arithmetic on the equations of the artifact, by other code and another argument than the search. Refuses a
    proof of another policy, model or parameters. The exit code is 1 where a cell or a box cannot be shown."""

    proof: Annotated[Path, Positional, arg(metavar="PROOF")]
    """File of `solver prove --out`."""
    all: bool = False
    """Check all cells and boxes."""
    one_in: Annotated[int | None, Range(1, 10**9)] = None
    """Check a random one in so many cells and boxes. By default a tenth."""
    seed: Annotated[int, Range(0, SEEDS - 1)] = 0
    """Of this choice."""
    jobs: Annotated[int | None, Range(1, MOST_JOBS)] = None
    """Processes for boxes on this machine, by default one a core. The printed time is that of all of them."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> int:
    """Check and print."""
    from solver.jobs.engines import results, workers
    from solver.proof import within
    from solver.proof.checker import ONE_IN, check

    if options.all and options.one_in:
        raise SolverError("--all and --one-in are both given; leave one of them out")
    one_in = 1 if options.all else options.one_in or ONE_IN
    with workers(options.jobs) as executor:

        def calls(function: Callable[..., Any], rows: list[tuple[Any, ...]]) -> Iterator[Any]:
            return results([executor.submit(function, *row) for row in rows])

        found = check(options.proof, one_in, options.seed, options.generated, calls)
    for result in found:
        answer = "NOT SHOWN: a cell does not keep the claim" if result.wrong else "holds"
        print(
            f"{within(result.spread):<11} {answer} ({result.checked} of {result.cells} cells, {result.seconds:.1f} s)"
        )
        if boxes := result.entering:
            answer = "enters the set" if boxes.holds else "does NOT surely enter the set: a box is not shown"
            print(
                f"{'':<12}{100 * boxes.share:.3g} % of the domain {answer} "
                f"({boxes.checked} of {boxes.boxes} boxes, {boxes.seconds:.1f} s)"
            )
        if level_set := result.level_set:
            answer = "does NOT surely enter the set: a cell is not shown" if level_set.wrong else "enters the set"
            print(
                f"{'':<12}a level set of V {answer} "
                f"({level_set.checked} of {level_set.cells} cells, {level_set.seconds:.1f} s)"
            )
    return 0 if all(result.holds for result in found) else FAILED
