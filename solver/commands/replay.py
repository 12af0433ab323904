"""`solver replay`: play the worst case that `solver certify` found."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.files import require_apart
from solver.errors import SolverError


@dataclass(frozen=True)
class Options:
    """Writes a figure, a CSV file and an animation. The return is the one in the file, digit by digit, on the same type
    of processor."""

    file: Annotated[Path, Argument(positional=True, metavar="FILE")]
    """File of a counterexample."""
    out: Annotated[Path | None, Argument(metavar="NAME")] = None
    """The files without their endings. By default beside FILE, with its name."""
    generated: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts, where it has moved since the training."""


def run(options: Options) -> None:
    """Play, write and print."""
    from solver.certification.counterexample import load, paths, record

    stem = options.out or options.file.with_suffix("")
    for path in paths(stem):
        require_apart({"--out": path}, [options.file], SolverError)
    found = load(options.file)
    total, files = record(found, stem, options.generated)
    if total != found.total:
        print(f"warning: the file has return {found.total!r}: another type of processor, or library", file=sys.stderr)
    if len(files) < 3:
        print(f"note: nothing says where {found.robot} is, so there is no animation", file=sys.stderr)
    print(f"{found.run}: return {total!r}, {found.judgement}", *files, sep="\n")
