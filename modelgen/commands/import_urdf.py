"""`modelgen import`: a model file from a URDF."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from modelgen.commandline.options import Argument
from modelgen.commands.model_files import write_model_file


@dataclass(frozen=True)
class Options:
    """The model file holds the links, joints and inertias of the URDF. Limits and task are yours to complete."""

    urdf: Annotated[Path, Argument(positional=True)]
    """The URDF file."""
    name: str | None = None
    """Name of the robot and of its file. By default the name of the URDF file."""
    fix: Annotated[tuple[str, ...], Argument(metavar="JOINT")] = ()
    """Joints to hold at zero: names, patterns such as `*finger*`, or `mimic` for all that follow another joint."""
    planar: Annotated[tuple[str, ...], Argument(metavar="JOINT")] = ()
    """Floating joints, or the link that nothing carries, to keep in the x-z plane."""
    directory: Annotated[Path, Argument(metavar="DIR")] = Path("models")
    """Folder for the file."""


def run(options: Options) -> None:
    """Write the model file. Never overwrites."""
    from modelgen.importers.urdf import model_file

    name = options.name or options.urdf.stem
    warnings: list[str] = []
    text = model_file(options.urdf, name, options.fix, options.planar, warnings.append)
    for words in warnings:
        print(f"warning: {words}", file=sys.stderr)
    write_model_file(options.directory, name, text)
