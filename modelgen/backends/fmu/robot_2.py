"""A robot as FMU of FMI 2.0, for older tools: the export `fmu2`."""

from __future__ import annotations

from modelgen.backends.fmu.robot import made
from modelgen.metadata import Metadata
from modelgen.program.functions import Program


def emit(program: Program, robot: Metadata) -> dict[str, bytes]:
    """NAME.fmu of FMI 2.0, with machine code for this machine. Raises ModelError without a C compiler."""
    return {f"{robot.name}.fmu": made(program, robot, 2)}
