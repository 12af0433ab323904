"""`solver sweep`: every robot with all settings and seeds of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from solver.commands import ManyTrainings, show_failures
from solver.errors import SolverError


@dataclass(frozen=True)
class Options(ManyTrainings):
    """Trains every run of the file in its own process, on this machine or on a cluster, and prints a table of the
    policies. The others go on where a training fails; the exit code is then 1."""

    specification: Annotated[Path, Positional, arg(metavar="SPEC.toml")]
    """Robots, settings and seeds; the format is in the page reference/sweep-files of the documentation."""
    out: Annotated[Path | None, arg(metavar="DIR")] = None
    """Parent of the run folders, and place of sweep.json. By default runs/sweep-NAME, by the name of the file."""
    resume: bool = False
    """Keep the finished runs of that folder, and continue the others from their checkpoints."""


def run(options: Options) -> int:
    """Train what is missing, write sweep.json, print the table."""
    from solver.lab.reproduction.runs import run_plan
    from solver.lab.sweeps import lines, read, rows, save
    from solver.runs.kinds import holds_run

    trainings = read(options.specification, options.generated, options.threads)
    parent = options.out or Path("runs") / f"sweep-{options.specification.stem}"
    if not options.resume and parent.is_dir() and any(map(holds_run, parent.iterdir())):
        raise SolverError(
            f"{parent} already holds runs. Continue them with --resume, or name another folder with --out."
        )
    runs = run_plan(trainings, parent, **options.ways)
    results = rows(runs)
    save(parent / "sweep.json", results)
    for line in lines(results):
        print(line)
    print(f"{runs.trained} trained, {len(set(runs.folders.values())) - runs.trained} reused    {parent / 'sweep.json'}")
    return show_failures(runs.failures)
