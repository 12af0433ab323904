"""`modelgen import`: a model file from a URDF."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commands.model_files import write_model_file


@dataclass(frozen=True)
class Options:
    """The model file holds the links, joints and inertias of the URDF. Complete limits and task yourself."""

    urdf: Annotated[Path, Positional]
    """The URDF file."""
    name: str | None = None
    """Name of the robot and of its file. By default the name of the URDF file."""
    fix: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Joints to hold at zero: names, patterns such as `*finger*`, or `mimic` for all mimic joints."""
    planar: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Floating joints, or the root link, to keep in the x-z plane."""
    passive: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Joints without a motor: names, or patterns such as `*pendulum*`."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("models")
    """Folder for the file."""


def run(options: Options) -> None:
    """Write the model file. An existing file is never replaced."""
    from modelgen.importers.urdf import model_file

    name = options.name or options.urdf.stem
    warnings: list[str] = []
    text = model_file(options.urdf, name, options.fix, options.planar, warnings.append, options.passive)
    for words in warnings:
        print(f"warning: {words}", file=sys.stderr)
    write_model_file(options.out, name, text)
