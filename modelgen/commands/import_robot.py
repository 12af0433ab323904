"""`modelgen import`: a model file from a URDF or an MJCF file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import warn
from modelgen.commands import write_model_file
from modelgen.errors import ModelError


@dataclass(frozen=True)
class Options:
    """The model file holds the links, joints and inertias of the file. Complete limits and task yourself."""

    robot: Annotated[Path, Positional]
    """The URDF or MJCF file."""
    name: str | None = None
    """Name of the robot and of its file. By default the name of the imported file."""
    fix: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Joints to hold at zero: names, patterns such as `*finger*`, or in a URDF `mimic` for all mimic joints."""
    planar: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Floating or free joints, or the root link, to keep in the x-z plane."""
    passive: Annotated[tuple[str, ...], arg(metavar="JOINT ...")] = ()
    """Joints without a motor: names, or patterns such as `*pendulum*`; in an MJCF also actuators."""
    effort: Annotated[dict[str, float], Range(1e-15, 1e15)] = field(default_factory=dict)
    """Largest torques (N m) or forces (N) of motors that a URDF lacks: `shoulder=40`, or a pattern, `'*'=5`."""
    command: Annotated[tuple[str, ...], arg(metavar="ACTUATOR ...")] = ()
    """Servos of an MJCF whose input stays their command, although a limit of their force may bind."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("models")
    """Folder for the file."""


def run(options: Options) -> None:
    """Write the model file. An existing file is never replaced."""
    from modelgen.importers import mjcf, urdf

    name = options.name or options.robot.stem
    warnings: list[str] = []
    arguments = options.robot, name, options.fix, options.planar, warnings.append, options.passive
    if mjcf.is_mjcf(options.robot):
        if options.effort:
            raise ModelError("--effort is for a URDF; an MJCF file states its motors in <actuator>.")
        text = mjcf.model_file(*arguments, options.command)
    elif options.command:
        raise ModelError("--command is for the servos of an MJCF file; a URDF has none.")
    else:
        text = urdf.model_file(*arguments, options.effort)
    for words in warnings:
        warn(words)
    write_model_file(options.out, name, text)
