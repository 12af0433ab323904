"""`modelgen new`: a model file to start from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.commands import write_model_file


@dataclass(frozen=True)
class Options:
    """The file is a robot that can be built. Change it line by line into yours."""

    name: Annotated[str, Positional]
    """Name of the robot and of its file."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("models")
    """Folder for the file."""


def run(options: Options) -> None:
    """Write the template under the name of the robot. An existing file is never replaced."""
    from modelgen.statement.checker import robot_name

    name = robot_name(options.name.removesuffix(".py"))
    template = Path(__file__).with_name("template.py.txt").read_text(encoding="utf-8")
    write_model_file(options.out, name, template.replace("NAME", name))
