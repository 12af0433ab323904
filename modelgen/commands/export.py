"""`modelgen export`: a robot in other languages, written where the user says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from modelgen.backends import EXPORTS
from modelgen.errors import ModelError
from modelgen.files import replacing


def add(commands: Any) -> None:
    """Declare the command and one option for each target."""
    parser = commands.add_parser("export", help="write C sources or CasADi functions of a robot")
    parser.add_argument("model", metavar="NAME or PATH")
    for target in EXPORTS:
        parser.add_argument(f"--{target}", metavar="DIR", type=Path, help=f"folder for the {target} files")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Write every target that was asked for."""
    from modelgen.build import export
    from modelgen.derivation import model_file as modelfile

    folders = {target: getattr(options, target) for target in EXPORTS if getattr(options, target)}
    if not folders:
        forms = " or ".join(f"--{target} DIR" for target in EXPORTS)
        raise ModelError(f"nothing was asked for; write modelgen export {options.model} {forms}.")
    robot = modelfile.load(options.model)
    for target, folder in folders.items():
        for name, content in export(robot, target).items():
            with replacing(folder / name) as path:
                path.write_bytes(content)
            print(f"{folder / name}  {len(content) / 1024:.0f} KiB")
    return 0
