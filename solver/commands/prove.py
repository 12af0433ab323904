"""`solver prove`: a set of states that is proven to be invariant and to contract, around the target."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.files import require_writable
from solver.commands import FAILED, MOST_JOBS, announce
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Interval arithmetic on the sampled closed loop: the true differential equation under an input that is held for a
    control period. The exit code is 1 where no set is proven."""

    run: Annotated[Path, Positional]
    """Run folder of a training, or a policy of `solver policies`."""
    spread: Annotated[float, Range(0.0, 0.5)] = 0.05
    """Share by which parameters may differ from their nominal values, all at the same time."""
    parameters: Annotated[tuple[str, ...], arg(metavar="NAME ...")] = ()
    """Parameters that may differ. By default all."""
    seconds: Annotated[float, Range(0.1, 86400.0)] = 60.0
    """Processor time for one set, whose size is chosen so that it should do."""
    input_error: Annotated[float, Range(0.0, 0.1)] = 1e-5
    """Bound of the error of the computed input, as a share of half its range. It stands for rounding in float32."""
    reach: Annotated[float, Range(0.0, 86400.0)] = 0.0
    """Processor time for each set of states that is proven to enter the basin, for robots of two states and one input.
    No such set if 0."""
    level_set: Annotated[float, Range(0.0, 86400.0)] = 0.0
    """Processor time for the largest level set of V from which every trajectory is proven to enter the basin, for
    robots of one input. No such set if 0."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """File of the proof as data, for `solver check` and --resume. --reach writes it after each slice of a spread,
    --level-set every minute."""
    resume: Annotated[Path | None, arg(metavar="FILE")] = None
    """File of --out with which --reach and --level-set go on. Its sets around the target are kept, and take no
    --seconds."""
    jobs: Annotated[int | None, Range(1, MOST_JOBS)] = None
    """Processes of --reach and --level-set on this machine, by default one a core. Processor time is that of all of
    them."""
    json: bool = False
    """Print JSON instead of lines."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> int:
    """Prove and print."""
    from solver.jobs.engines import workers
    from solver.proof.basin import prove_basin

    require_writable({"--out": options.out}, error=SolverError)
    beyond = bool(options.reach or options.level_set)
    if options.jobs is not None and not beyond:
        raise SolverError(f"--jobs {options.jobs} is for --reach and --level-set; give one of them, or leave it out")
    with workers(options.jobs if beyond else 1) as executor:
        proof = prove_basin(
            options.run,
            options.spread,
            options.seconds,
            options.input_error,
            options.generated,
            options.reach,
            options.level_set,
            options.resume,
            options.parameters,
            executor,
            announce,
            lambda proof: proof.write(options.out) if options.out else None,
        )
    if options.out:
        proof.write(options.out)
    if options.json:
        print(json.dumps(proof.to_json(), indent=2, allow_nan=False))
        return 0 if proof.holds else FAILED
    print(proof.text(bool(options.level_set)))
    return 0 if proof.holds else FAILED
