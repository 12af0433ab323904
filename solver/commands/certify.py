"""`solver certify`: a bound on how often a policy fails, the worst that it does, and where it arrives."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.files import require_apart
from solver.errors import SolverError

MISSED = 1  # exit code


@dataclass(frozen=True)
class Options:
    """Rolls out as many independent samples as the bound needs, a number that is fixed before. Exit code 1 when more of
    them fail than the specification allows."""

    run: Annotated[Path, Argument(positional=True)]
    """Run folder of a training or a baseline, or a policy of `solver policies`."""
    specification: Annotated[Path | None, Argument(positional=True, metavar="SPEC.toml")] = None
    """The distribution, what counts as a failure, and the bound to show. By default the task's starts, the nominal
    robot, not at the target, and at most 1 % of failures at confidence 1 - 1e-6."""
    json: bool = False
    """Print JSON instead of lines."""
    html: Annotated[Path | None, Argument(metavar="FILE")] = None
    """Write the report with figures, as one HTML file."""
    out: Annotated[Path | None, Argument(metavar="FILE")] = None
    """File of the worst case, for `solver replay`. By default ROBOT.counterexample.json."""
    seed: int = 0
    """Seed of all samples. A certificate that is repeated with other seeds until it holds is none."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Processes that make the rollouts on this machine. The results do not depend on it."""
    cluster: Annotated[str | None, Argument(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers make the rollouts, as in `solver sweep`."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""


def run(options: Options) -> int:
    """Certify, write the files and print."""
    from solver.certification.certificate import certify
    from solver.certification.counterexample import save
    from solver.certification.report import html, summary
    from solver.jobs.engines import workers
    from solver.runs.folder import write_text
    from solver.streams import require_seed

    require_seed(options.seed)
    for path, flag in ((options.html, "--html"), (options.out, "--out")):
        if path is not None and path.is_dir():
            raise SolverError(f"{flag} {path} is a folder; name a file in it")
    read = [] if options.specification is None else [options.specification]
    require_apart({"--html": options.html, "--out": options.out}, read, SolverError)
    with workers(options.jobs, options.cluster) as executor:
        found = certify(options.run, options.specification, options.seed, options.generated, _announce, executor)
    out = options.out or Path(f"{found.robot}.counterexample.json")
    save(out, found.worst.worst)
    if options.html is not None:
        write_text(options.html, html(found, options.generated))
    if options.json:
        print(json.dumps(found.to_json() | {"counterexample": str(out)}, indent=2, allow_nan=False))
    else:
        for name, text in summary(found):
            print(f"{name:<12}{text}")
        print(f"{'replay':<12}solver replay {out}\n\n{found.specification.text.rstrip()}")
    return 0 if found.holds else MISSED


def _announce(text: str) -> None:
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
