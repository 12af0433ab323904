"""`modelgen export`: a robot in other languages, written where the user says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from modelgen.errors import ModelError
from modelgen.files import replacing, require_writable

if TYPE_CHECKING:
    from modelgen.loader import CompiledRobot


@dataclass(frozen=True)
class Options:
    """The files work without this project. Name at least one folder."""

    model: Annotated[str, Positional]
    """Name of a built robot, or path of a model file, which is built in memory."""
    c: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for C99 source."""
    casadi: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for serialised CasADi functions."""
    js: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for a JavaScript module."""
    fmu: Annotated[Path | None, arg(metavar="DIR")] = None
    """Folder for an FMU, for Simulink, Modelica and other tools: sources, and machine code for this machine."""
    fmi: Literal[2, 3] = 3
    """With --fmu: version of the standard. Older tools read 2."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Write every target that has a folder."""
    from modelgen.backends import exported
    from modelgen.loader import load

    targets = {
        "c": options.c,
        "casadi": options.casadi,
        "js": options.js,
        "fmu" if options.fmi == 3 else "fmu2": options.fmu,
    }
    folders = {target: folder for target, folder in targets.items() if folder}
    if not folders:
        raise ModelError(
            f"name at least one folder; write modelgen export {options.model} --c DIR or --casadi DIR or --js DIR or "
            "--fmu DIR."
        )
    if options.fmi != Options.fmi and not options.fmu:
        raise ModelError("--fmi is the version of an FMU; give --fmu DIR too.")
    require_writable({f"--{target}": folder / f"model.{target}" for target, folder in folders.items()})
    is_file = options.model.endswith(".py")
    if is_file and options.generated:
        raise ModelError("--generated is for the name of a built robot, and a model file is built in memory.")
    robot = _built(options.model) if is_file else load(options.model, directory=options.generated)
    for target, folder in folders.items():
        for name, content in exported(robot.program, robot.metadata, target).items():
            with replacing(folder / name) as path:
                path.write_bytes(content)
            print(f"{folder / name}  {len(content) / 1024:.0f} KiB")


def _built(path: str) -> CompiledRobot:
    """Robot of a model file, in memory. It takes SymPy, which an artifact does not need."""
    from modelgen.builder import compile
    from modelgen.derivation import model_file

    return compile(model_file.load(path))
