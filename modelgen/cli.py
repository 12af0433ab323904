"""The program `modelgen`: a table of its commands. Each is a file in modelgen.commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from modelgen.commandline.program import Command, CommandLine
from modelgen.errors import TOO_DEEP, ModelError


@contextmanager
def _deep_expressions() -> Iterator[None]:
    """Say what to do where SymPy or the compiler ends in Python's limit of nested calls."""
    try:
        yield
    except RecursionError as error:
        raise ModelError(TOO_DEEP) from error


PROGRAM = CommandLine(
    "modelgen",
    about="modelgen turns a symbolic robot model into compiled, differentiated dynamics.",
    commands={
        "new": Command("modelgen.commands.new", "Write a commented model file to start from.", "modelgen new crane"),
        "import": Command(
            "modelgen.commands.import_robot",
            "Write a model file from a URDF or an MJCF file.",
            "modelgen import robot.urdf --planar base --fix gripper",
        ),
        "build": Command(
            "modelgen.commands.build",
            "Derive, differentiate and compile model files.",
            "modelgen build cartpole",
        ),
        "check": Command("modelgen.commands.check", "Compare artifacts with their model files.", "modelgen check"),
        "show": Command(
            "modelgen.commands.show",
            "Print an artifact, a robot at rest, or a model file as a page.",
            "modelgen show cartpole --linearize",
        ),
        "verify": Command(
            "modelgen.commands.verify",
            "Prove an artifact against its model file or another engine.",
            "modelgen verify cartpole --against mujoco",
        ),
        "identify": Command(
            "modelgen.commands.identify",
            "Find parameters and their uncertainty from recordings.",
            "modelgen identify cartpole log1.csv log2.csv",
        ),
        "predict": Command(
            "modelgen.commands.predict",
            "Say whether recordings move as was identified.",
            "modelgen predict cartpole new.csv",
        ),
        "excite": Command(
            "modelgen.commands.excite",
            "Write an input to play that shows the parameters.",
            "modelgen excite cartpole --seconds 8",
        ),
        "export": Command(
            "modelgen.commands.export",
            "Write C sources, CasADi functions or an FMU of a robot.",
            "modelgen export cartpole --c firmware",
        ),
        "animate": Command(
            "modelgen.commands.animate",
            "Draw how a robot moves by itself or with simple inputs.",
            "modelgen animate pendulum --start angle=3 --seconds 5",
        ),
    },
    read_on="reference/model-files.md",
    mistakes=(ModelError,),
    around=_deep_expressions,
)
main = PROGRAM.main

if __name__ == "__main__":
    sys.exit(main())
