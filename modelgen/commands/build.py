"""`modelgen build`: from model files to artifacts."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from modelgen.commandline import Range
from modelgen.commandline.program import USAGE, warn
from modelgen.commands import ARTIFACTS
from modelgen.errors import ModelError, in_shell
from modelgen.program.functions import MOST_OPERATIONS

if TYPE_CHECKING:
    from modelgen.builder import BuildReport
    from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class Options:
    """A build that fails or is interrupted leaves the old artifact as it was."""

    models: Annotated[tuple[str, ...], Positional, arg(metavar="[MODEL ...]")] = ()
    """Names of robots, or paths of model files. By default all files in ./models."""
    generated: Annotated[str, arg(metavar="DIR")] = ARTIFACTS
    """Folder of artifacts."""
    functions: Annotated[str | None, arg(metavar="NAME[,NAME]")] = None
    """Build only these functions. The artifact has affine_dynamics, dynamics, jacobians, hamiltonian_gradient,
    state_cost, action_cost, optimal_input and optimal_input_cost. A folder in it has mass_matrix, bias, gravity,
    input_map, reaction, kinetic_energy, potential_energy and forward_kinematics; `mechanics` means all of these."""
    most_operations: Annotated[int, Range(1, 10**9)] = MOST_OPERATIONS
    """Refuse a robot that is expected to have more operations than this."""


def run(options: Options) -> int:
    """Build every model, also after a mistake in another one."""
    from modelgen.artifact.folder import MANIFEST
    from modelgen.builder import build, selected
    from modelgen.derivation import model_file as modelfile

    models = options.models or sorted(modelfile.own())
    if not models:
        raise ModelError("there is no model file in ./models. Write one with `modelgen new NAME`.")
    functions = selected(options.functions)
    where = "" if options.generated == ARTIFACTS else f" --generated {in_shell(options.generated)}"
    mistakes, first = 0, dict[str, tuple[str, str]]()  # by the name of the robot: its model, and the hash of the file
    for model in models:
        try:
            robot = modelfile.load(model)
            other, content = first.setdefault(robot.name, (model, robot.file_hash))
            if content != robot.file_hash:
                raise ModelError(
                    f"{model} declares `{robot.name}`, as {other} does, whose artifact it would replace. Rename one of "
                    "them, or build it alone with another --generated."
                )
            print(f"{robot.name:<20} {_sizes(robot)}")
            for report in build(robot, options.generated, functions, options.most_operations, _tell):
                for words in report.warnings:
                    warn(words)
                # functions of mechanics can be verified only together with the artifact
                built = (Path(options.generated) / robot.name / MANIFEST).is_file()
                following = f"modelgen {'verify' if built else 'build'} {in_shell(model)}{where}"
                print(_text(report, following), flush=True)
        except ModelError as error:
            if len(models) == 1:
                raise
            print(f"error: {error}", file=sys.stderr)
            mistakes += 1
    return USAGE if mistakes else 0


def _tell(text: str) -> None:
    """Print a part of a line at once, also into a pipe."""
    print(text, end="", flush=True)


def _sizes(robot: Robot) -> str:
    uncertain = sum(not parameter.fixed for parameter in robot.parameters)
    counts = (len(robot.joints), "coordinate"), (len(robot.inputs), "input"), (uncertain, "parameter")
    return ", ".join(f"{number} {noun}" if number == 1 else f"{number} {noun}s" for number, noun in counts)


def _text(report: BuildReport, following: str) -> str:
    """Operations of each function, and the command that follows."""
    lines = ["  operations: " + ", ".join(f"{name} {count}" for name, count in report.operations.items())]
    lines += [f"  without {name}: {why}" for name, why in report.left_out.items()]
    return "\n".join([*lines, f"  -> {report.folder}    next: {following}"])
