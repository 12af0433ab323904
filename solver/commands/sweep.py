"""`solver sweep`: every robot with all settings and seeds of a file."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from solver.commands import FAILED
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Trains every run of the file in a process of its own, on this machine or on a cluster, and prints a table of what
    each policy does. One that fails does not stop the others. Exit code 1 when any failed."""

    specification: Annotated[Path, Argument(positional=True, metavar="SPEC.toml")]
    """Robots, settings and seeds: docs/reference/sweep-files.md."""
    out: Annotated[Path | None, Argument(metavar="DIR")] = None
    """Parent of the run folders, and place of sweep.json. By default runs/sweep-NAME, by the name of the file."""
    resume: bool = False
    """Do only what is missing in that folder: keep finished runs, and continue the others from their checkpoints."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """Trainings at once on this machine. They share the cores."""
    cluster: Annotated[str | None, Argument(metavar="ADDRESS")] = None
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786: its workers train, one thread each. They must see the
    folder of the runs."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""
    trust: Annotated[tuple[str, ...], Argument(metavar="HASH")] = ()
    """Let code of these artifacts run, which were neither built here nor shipped. A message names the hash."""


def run(options: Options) -> int:
    """Train what is missing, write sweep.json, print the table."""
    from solver.lab.reproduction.runs import run_plan
    from solver.lab.sweeps.specification import read
    from solver.lab.sweeps.table import lines, rows, save
    from solver.runs.kinds import holds_run

    cores = os.cpu_count() or 1
    threads = 1 if options.cluster else max(1, cores // max(1, options.jobs))
    sweep = read(options.specification, options.generated, threads)
    parent = options.out or Path("runs") / f"sweep-{options.specification.stem}"
    if not options.resume and parent.is_dir() and any(map(holds_run, parent.iterdir())):
        raise SolverError(
            f"{parent} already holds runs. Do what is missing with --resume, or name another folder with --out."
        )
    runs = run_plan(sweep, parent, options.jobs, _announce, cluster=options.cluster)
    found = rows(runs)
    save(parent / "sweep.json", found)
    print(*lines(found), sep="\n")
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused    {parent / 'sweep.json'}")
    for failure in runs.failures:
        t = failure.training
        print(f"error: {t.method}, {t.robot}, seed {t.seed} {failure.said}", file=sys.stderr)
    return FAILED if runs.failures else 0


def _announce(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
