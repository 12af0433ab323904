"""The command `modelgen`: new, import, build, check, show, verify, export, animate."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelgen.commands import animate, export, show
from modelgen.engines import ENGINES
from modelgen.errors import ModelError
from modelgen.files import replacing

if TYPE_CHECKING:
    from modelgen.artifact.manifest import Manifest
    from modelgen.build import BuildReport

# SymPy, Numba and CasADi are imported by the command that needs them: --help and mistakes answer at once.

DIRECTORY = "generated"
MISTAKE, FAILED = 2, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when all is well, 1 when a check failed, 2 for a mistake of the user's."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except ModelError as error:
        print(f"error: {error}", file=sys.stderr)
        return MISTAKE
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; Python would complain once more at exit
        return FAILED
    except KeyboardInterrupt:
        print("stopped; artifacts are as they were before the unfinished one", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="modelgen", description="From one symbolic robot model to compiled, differentiated dynamics."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    new = commands.add_parser("new", help="write a commented model file to start from")
    new.add_argument("name", metavar="NAME")
    new.add_argument("--directory", default="models", help="folder for the file (default: models)")
    new.set_defaults(command=_new)

    imported = commands.add_parser("import", help="write a model file from a URDF")
    imported.add_argument("urdf", metavar="PATH", type=Path)
    imported.add_argument("--name", help="of the robot and its file (default: the URDF file's name)")
    imported.add_argument("--fix", nargs="+", default=(), metavar="JOINT", help="joints to hold at zero")
    imported.add_argument(
        "--planar",
        nargs="+",
        default=(),
        metavar="JOINT",
        help="floating joints, or the base, kept in the x-z plane",
    )
    imported.add_argument("--directory", default="models", help="folder for the file (default: models)")
    imported.set_defaults(command=_import)

    build = commands.add_parser("build", help="derive, differentiate and compile model files")
    build.add_argument("models", nargs="*", metavar="NAME or PATH", help="default: all in ./models")
    build.set_defaults(command=_build)

    check = commands.add_parser("check", help="compare artifacts with their model files")
    check.add_argument("models", nargs="*", metavar="NAME or PATH", help="default: all models and artifacts")
    check.set_defaults(command=_check)

    show.add(commands)
    verify = commands.add_parser("verify", help="prove an artifact against its model with 50 digits")
    verify.add_argument("models", nargs="+", metavar="NAME or PATH")
    verify.add_argument("--against", choices=sorted(ENGINES), help="compare with another engine instead")
    verify.add_argument("--mjcf", metavar="PATH", help="the robot as the engine reads it (default: NAME.xml)")
    verify.set_defaults(command=_verify)

    export.add(commands)
    animate.add(commands)

    for command in (build, check):
        command.add_argument("--directory", default=DIRECTORY, help=f"folder of artifacts (default: {DIRECTORY})")
    verify.add_argument("--directory", help="folder of artifacts (default: generated, then the shipped one)")
    return parser


def _new(options: argparse.Namespace) -> int:
    from modelgen.statement.checker import identifier

    name = identifier(options.name.removesuffix(".py"), "robot", None)
    path = Path(options.directory) / f"{name}.py"
    text = Path(__file__).with_name("template.py.txt").read_text(encoding="utf-8").replace("NAME", name)
    return _write(path, text, name if options.directory == "models" else str(path))


def _import(options: argparse.Namespace) -> int:
    from modelgen.urdf.read import model_file

    name = options.name or options.urdf.stem
    path = Path(options.directory) / f"{name}.py"
    text = model_file(options.urdf, name, options.fix, options.planar)
    return _write(path, text, name if options.directory == "models" else str(path))


def _write(path: Path, text: str, wanted: str) -> int:
    """A new model file, and what to do next; never overwrites."""
    if path.exists():
        raise ModelError(f"{path} exists already and is left as it is. Choose another name, or remove it.")
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")
    print(f"{path} is written. Next: modelgen build {wanted}")
    return 0


def _build(options: argparse.Namespace) -> int:
    from modelgen.artifact.folder import find, read
    from modelgen.build import build_artifact
    from modelgen.derivation import model_file as modelfile

    models = options.models or sorted(modelfile.own())
    if not models:
        raise ModelError("there is no model file in ./models. Write one with `modelgen new NAME`.")
    mistakes = 0
    for model in models:
        try:
            report = build_artifact(modelfile.load(model), options.directory)
        except ModelError as error:
            if len(models) == 1:
                raise
            print(f"error: {error}", file=sys.stderr)
            mistakes += 1
            continue
        where = "" if options.directory == DIRECTORY else f" --directory {options.directory}"
        print(_build_text(report, read(find(report.robot, options.directory)), f"modelgen verify {model}{where}"))
    return MISTAKE if mistakes else 0


def _check(options: argparse.Namespace) -> int:
    """Every artifact against its model file; an artifact whose model file is elsewhere, for damage only."""
    from modelgen.artifact import folder as artifact
    from modelgen.derivation import model_file as modelfile

    directory = Path(options.directory)
    built = sorted(path.parent.name for path in directory.glob(f"*/{artifact.MANIFEST}"))
    models = options.models or sorted({*built, *modelfile.own()})
    if not models:
        raise ModelError(f"there is nothing to check: no artifact in {directory} and no model file in ./models.")
    failures = 0
    for model in models:
        name, here = model, model in modelfile.available() or model not in built
        try:
            robot = modelfile.load(model) if here else None
            name = robot.name if robot else model
            findings = artifact.check(name, directory, modelfile.content_hash(robot) if robot else None)
        except ModelError as error:
            if len(models) == 1:
                raise
            findings = [str(error)]
        print(f"{name:<20} {'FAILED' if findings else 'ok' if here else 'ok, but its model file is not here'}")
        for finding in findings:
            print(f"  {finding}")
        failures += bool(findings)
    return FAILED if failures else 0


def _verify(options: argparse.Namespace) -> int:
    from modelgen import engines
    from modelgen.artifact import folder as artifact
    from modelgen.derivation import model_file as modelfile
    from modelgen.derivation.domain_checks import inspect
    from modelgen.derivation.lagrange import equations_of_motion
    from modelgen.engines.comparison import compare, description
    from modelgen.loader import load
    from modelgen.verification import verify
    from modelgen.verification.check import table

    if options.mjcf and (not options.against or len(options.models) > 1):
        raise ModelError("--mjcf belongs to one robot and engine: modelgen verify NAME --against mujoco --mjcf PATH.")
    failures = 0
    for model in options.models:
        start = time.perf_counter()
        robot = modelfile.load(model)
        manifest = artifact.read(artifact.find(robot.name, options.directory))
        if manifest.model_hash != modelfile.content_hash(robot):
            raise ModelError(
                f"the artifact of `{robot.name}` was made from another content of its model file, so there "
                f"is nothing to prove. Run `modelgen build {model}` first."
            )
        equations = equations_of_motion(robot)
        inspect(robot, equations)
        if options.against:
            file = Path(options.mjcf) if options.mjcf else description(robot, modelfile.find(model))
            kernels = load(robot.name, backend="casadi", directory=options.directory)
            if file:
                checks = compare(robot, equations, kernels, engines.load(options.against, file, manifest.metadata))
            else:
                rebuilt = engines.builder(options.against, robot)
                checks = compare(robot, equations, kernels, rebuilt(kernels.nominal_parameters), rebuilt)
        else:
            checks = verify(robot, equations, load, options.directory)
        wrong = [check for check in checks if not check.passed]
        skipped = sum(check.error is None for check in checks)
        print(f"{robot.name}\n{table(checks)}")
        print(
            f"  {len(checks) - len(wrong) - skipped} checks passed, {len(wrong)} failed, {skipped} skipped, "
            f"in {time.perf_counter() - start:.1f} s"
        )
        failures += bool(wrong)
    return FAILED if failures else 0


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _build_text(report: BuildReport, manifest: Manifest, following: str) -> str:
    """Seconds of each stage, operations of each function, and the command that follows."""
    described = manifest.metadata
    sizes = (
        _count(len(described.states) // 2, "coordinate"),
        _count(len(described.inputs), "input"),
        _count(len(described.parameters), "parameter"),
    )
    lines = [f"{report.robot:<20} {', '.join(sizes)}"]
    lines += [f"  {stage:<22} {seconds:6.2f} s" for stage, seconds in report.seconds.items()]
    lines.append(show.operations(manifest))
    targets = ", ".join(manifest.files)
    return "\n".join([*lines, f"  -> {report.folder} ({targets})    next: {following}"])


if __name__ == "__main__":
    sys.exit(main())
