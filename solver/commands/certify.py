"""`solver certify`: a bound on how often a policy fails, and its worst case."""

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
from solver.streams import SEEDS


@dataclass(frozen=True)
class Options:
    """Rolls out as many independent samples as the bound needs; their number is fixed in advance. The exit code is 1
    where more of them fail than the specification allows."""

    run: Annotated[Path, Positional]
    """Run folder, or a policy of `solver policies`."""
    specification: Annotated[Path | None, Positional, arg(metavar="[SPEC.toml]")] = None
    """The distribution, the definition of a failure, and the bound. By default: starts of the task, nominal robot, a
    failure is not at the target, at most 1 % of failures at confidence 1 - 1e-6."""
    json: bool = False
    """Print JSON instead of lines."""
    html: Annotated[Path | None, arg(metavar="FILE")] = None
    """Write the report with figures, as one HTML file."""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """File of the worst case, for `solver replay`. By default ROBOT.counterexample.json."""
    seed: Annotated[int, Range(0, SEEDS - 1)] = 0
    """Seed of all samples. Do not repeat a certificate with other seeds until it holds: it is then worth nothing."""
    jobs: Annotated[int | None, Range(1, MOST_JOBS)] = None
    """Processes of the rollouts on this machine, by default one a core. The results do not depend on it."""
    cluster: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of a Dask scheduler whose workers make the rollouts, as in `solver sweep`."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> int:
    """Certify, write the files and print."""
    from solver.certification import certify, html, summary
    from solver.certification.counterexample import save
    from solver.jobs.engines import workers
    from solver.runs.folder import write_text

    read = [] if options.specification is None else [options.specification]
    out = options.out or Path("ROBOT.counterexample.json")  # the folder, before the name of the robot is known
    require_writable({"--html": options.html, "--out": out}, read, SolverError)
    with workers(options.jobs, options.cluster) as executor:
        certificate = certify(options.run, options.specification, options.seed, options.generated, announce, executor)
    out = options.out or Path(f"{certificate.robot}.counterexample.json")
    save(out, certificate.worst.worst)
    if options.html is not None:
        write_text(options.html, html(certificate, options.generated))
    if options.json:
        print(json.dumps(certificate.to_json() | {"counterexample": str(out)}, indent=2, allow_nan=False))
    else:
        for name, text in summary(certificate):
            print(f"{name:<12}{text}")
        print(f"{'replay':<12}solver replay {out}\n\n{certificate.specification.text.rstrip()}")
    return 0 if certificate.holds else FAILED
