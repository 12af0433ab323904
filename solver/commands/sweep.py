"""`solver sweep`: every robot with all settings and seeds of a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from solver.commands import MOST_JOBS, say, show_failures
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Trains every run of the file in its own process, on this machine or on a cluster, and prints a table of the
    policies. The others go on where a training fails; the exit code is then 1."""

    specification: Annotated[Path, Positional, arg(metavar="SPEC.toml")]
    """Robots, settings and seeds; the format is in the page reference/sweep-files of the documentation."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Parent of the run folders, and place of sweep.json. By default runs/sweep-NAME, by the name of the file."""
    resume: bool = False
    """Keep the finished runs of that folder, and continue the others from their checkpoints."""
    jobs: Annotated[int, Range(1, MOST_JOBS)] = field(default_factory=lambda: os.cpu_count() or 1)
    """Simultaneous trainings on this machine. They share the cores."""
    cluster: Annotated[str | None, arg(metavar="ADDRESS")] = None
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786: its workers train, one thread each. They must see the
    folder of the runs."""
    preview: Annotated[float, Range(0.0, 86_400.0)] = 20.0
    """Seconds of a search for a motion to the target of every robot before the trainings, as in `solver train`."""
    unheld_target: bool = False
    """Train for targets that no input within the limits holds."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> int:
    """Train what is missing, write sweep.json, print the table."""
    from solver.lab.reproduction.runs import run_plan
    from solver.lab.sweeps import lines, read, rows, save
    from solver.runs.kinds import holds_run

    cores = os.cpu_count() or 1
    threads = 1 if options.cluster else max(1, cores // max(1, options.jobs))
    sweep = read(options.specification, options.generated, threads)
    parent = options.out or Path("runs") / f"sweep-{options.specification.stem}"
    if not options.resume and parent.is_dir() and any(map(holds_run, parent.iterdir())):
        raise SolverError(
            f"{parent} already holds runs. Continue them with --resume, or name another folder with --out."
        )
    runs = run_plan(
        sweep,
        parent,
        options.jobs,
        say,
        cluster=options.cluster,
        preview=options.preview,
        unheld_target=options.unheld_target,
    )
    results = rows(runs)
    save(parent / "sweep.json", results)
    print(*lines(results), sep="\n")
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused    {parent / 'sweep.json'}")
    return show_failures(runs.failures)
