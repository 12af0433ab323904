"""`solver replay`: play the worst case that `solver certify` found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.files import require_writable
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Writes a figure, a CSV file and an animation. On the same type of processor the return has the same digits as in
    the file."""

    file: Annotated[Path, Positional, arg(metavar="FILE")]
    """File of a counterexample."""
    out: Annotated[Path | None, arg(metavar="NAME")] = None
    """Path of the files without their endings. By default FILE without its ending."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default the one of the training."""


def run(options: Options) -> None:
    """Play, write and print."""
    from solver.certification.counterexample import load, paths, record

    written = load(options.file)
    stem = options.out or options.file.with_suffix("")
    for path in paths(stem):
        require_writable({"--out": path}, [options.file], SolverError)
    case, files = record(written, stem, options.generated)
    if (case.total, case.success) != (written.total, written.success):
        print(
            f"warning: the file states return {written.total!r}, {written.judgement}. It was edited, or another type "
            "of processor or library computed it",
            file=sys.stderr,
        )
    if len(files) < 3:
        print(f"note: the model of {case.robot} has no drawing, so there is no animation", file=sys.stderr)
    print(f"{case.run}: return {case.total!r}, {case.judgement}", *files, sep="\n")
