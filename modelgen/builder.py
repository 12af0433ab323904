"""The build of an artifact: equations of motion, program, derivatives, files, in this order."""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from modelgen.artifact import folder as artifact
from modelgen.artifact.manifest import GENERATOR_VERSION, Manifest, MechanicsManifest
from modelgen.backends import BESIDE, emitter, exported
from modelgen.derivation import description, lowering
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.frames import Sketch, sketch
from modelgen.derivation.ignored import ignorable
from modelgen.derivation.integration import NO_LINES, Lines, check_regular, integration_steps
from modelgen.derivation.mechanics import MECHANICS, mechanics_expressions, point_hashes, unstated
from modelgen.derivation.mechanics import program as mechanics_program
from modelgen.derivation.size import refuse_too_large, size
from modelgen.derivation.trim import unheld
from modelgen.errors import ModelError, checked, suggestion, warn
from modelgen.loader import CompiledRobot, load
from modelgen.metadata import Metadata
from modelgen.program import stored
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.differentiate import program as differentiated
from modelgen.program.functions import MOST_OPERATIONS, EquationNodes, Function, Program
from modelgen.proof import refuse_derived, refuse_guards
from modelgen.proof.error_lines import lines, warnings
from modelgen.statement.robot import Robot

NO_DRAWING = Sketch((), (), (), ())
Tell = Callable[[str], None]


@dataclass
class BuildReport:
    """Times and sizes of one build, stored in the artifact as build_report.json."""

    robot: str
    folder: str
    model_file: str = ""  # sha256 of its text
    seconds: dict[str, float] = field(default_factory=dict)  # by stage, in order
    operations: dict[str, int] = field(default_factory=dict)  # by function
    source_bytes: dict[str, int] = field(default_factory=dict)  # of the program, and of the files for its readers
    left_out: dict[str, str] = field(default_factory=dict)  # function of mechanics that the robot lacks -> reason
    warnings: list[str] = field(default_factory=list)  # about possible mistakes that do not stop the build
    tell: Tell = lambda _: None  # gets the text of each stage: its name before the work, its seconds after it

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the seconds of the block, under the name of the stage."""
        start, ending = time.perf_counter(), ""
        self.tell(f"  {name:<22} ")
        try:
            yield
            seconds = time.perf_counter() - start
            self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 4)
            ending = f"{seconds:6.2f} s"
        finally:
            self.tell(f"{ending}\n")

    def written(self) -> str:
        """The report as JSON."""
        content = {name: value for name, value in vars(self).items() if name != "tell"}
        return json.dumps(content, indent=1) + "\n"


def _require_robot(robot: object) -> None:
    if not isinstance(robot, Robot):
        raise ModelError(f"the robot is {robot!r}; give a modelgen.Robot. modelgen.load(NAME) opens one that is built.")


@checked(ModelError, "robot")
def build_artifact(robot: Robot, directory: str | Path = "generated", functions: str | None = None) -> BuildReport:
    """Artifact of a robot in directory/NAME, which `modelgen.load` and `solver.train` open by the name.

    functions: as of `modelgen build --functions`; "mechanics" adds the functions of mechanics to a built artifact.
    Returns times, sizes and warnings, which are given with `warnings` too. Raises ModelError for a mistake in the
    model and for an unknown function, ArtifactError if the folder cannot be written.
    """
    _require_robot(robot)
    for report in build(robot, directory, selected(functions)):
        for text in report.warnings:
            warn(text)
    return report


def build(
    robot: Robot,
    directory: str | Path = "generated",
    functions: Collection[str] = FUNCTIONS,
    most_operations: int = MOST_OPERATIONS,
    tell: Tell = lambda _: None,
) -> Iterator[BuildReport]:
    """Build the named functions by one derivation: the artifact's, and those of mechanics in a folder inside it.

    The functions of mechanics do not change the artifact, which need not exist. Yields a report after each of the two.
    `tell` gets text as each stage begins and ends. Raises ModelError for a mistake in the model, for a function that
    the robot does not have, and, before any work, for more operations than `most_operations`. Raises ArtifactError if
    a folder cannot be written.
    """
    expected = size(robot, functions)
    tell(f"  expected: {expected}\n")
    refuse_too_large(robot, expected, most_operations)
    report = BuildReport(robot.name, str(Path(directory) / robot.name), robot.file_hash, tell=tell)
    with report.stage("equations of motion"):
        equations = equations_of_motion(robot)
    _checked(robot, equations, report)
    metadata, model_hash = description.metadata(robot, equations), content_hash(robot)
    if any(name in FUNCTIONS for name in functions):
        drawn, error_lines = sketch(robot), lines(robot)
        yield build_from_equations(equations, metadata, model_hash, directory, report, drawn, error_lines, functions)
        report = BuildReport(robot.name, report.folder, robot.file_hash, tell=tell)
    if any(name in MECHANICS for name in functions):
        yield _build_mechanics(robot, equations, metadata, model_hash, report, functions)


def _build_mechanics(
    robot: Robot,
    equations: EquationsOfMotion,
    metadata: Metadata,
    model_hash: str,
    report: BuildReport,
    functions: Collection[str],
) -> BuildReport:
    """Write functions of mechanics into a folder in the artifact's, which the report names."""
    folder = Path(report.folder) / artifact.ON_REQUEST
    report.folder = str(folder)
    with report.stage("mechanics"):
        program = mechanics_program(lowering.mechanics(equations, mechanics_expressions(robot, equations)), functions)
    report.operations = program.operations
    missing = (name for name in MECHANICS if name in functions and name not in report.operations)
    report.left_out = {name: unstated(name, robot.kinematic) for name in missing}
    manifest, files = _files(program, metadata, model_hash, report)
    artifact.write(folder, MechanicsManifest(**vars(manifest), points=point_hashes(robot)), files, report.written())
    return report


def selected(names: str | None) -> tuple[str, ...]:
    """The functions of "NAME,NAME", in which `mechanics` means all of mechanics. None: all of the artifact.

    Raises ModelError for an unknown name.
    """
    if names is None:
        return FUNCTIONS
    chosen = [name.strip() for name in names.split(",")]
    known = (*FUNCTIONS, *MECHANICS, "mechanics")
    for name in chosen:
        if name not in known:
            raise ModelError(f"there is no function `{name}`.{suggestion(name, known)} Known: {', '.join(known)}.")
    return (*chosen, *(MECHANICS if "mechanics" in chosen else ()))


def export(robot: Robot | CompiledRobot, target: str) -> dict[str, bytes]:
    """The files of one of `EXPORTS`, named after the robot. A statement is built in memory first, with its warnings.

    Raises ModelError for a mistake in the statement.
    """
    built = robot if isinstance(robot, CompiledRobot) else compile(robot)
    return exported(built.program, built.metadata, target)


def _checked(robot: Robot, equations: EquationsOfMotion, report: BuildReport) -> None:
    """All checks over the domain. The checks that know the line of an expression come first."""
    with report.stage("search for violations"):
        refuse_guards(robot)
        report.warnings += warnings(robot)
    with report.stage("checks"):
        check_domain(robot, equations)
    with report.stage("search for violations"):
        refuse_derived(robot, equations)
    other = robot.system.warning if robot.system else ""
    report.warnings += filter(None, [unheld(robot, equations), ignorable(robot, equations), other])


def _stepped(program: Program, metadata: Metadata, error_lines: Lines, report: BuildReport) -> Metadata:
    """The metadata with its number of integration steps, after a check of the program's values."""
    with report.stage("values at task"):
        check_regular(program, metadata, error_lines)
    with report.stage("integration steps"):
        steps = integration_steps(program, metadata, error_lines, report.warnings.append)
    return replace(metadata, task=replace(metadata.task, integration_steps=steps))


def build_from_equations(
    equations: EquationsOfMotion,
    metadata: Metadata,
    model_hash: str,
    directory: str | Path,
    report: BuildReport | None = None,
    drawn: Sketch = NO_DRAWING,
    error_lines: Lines = NO_LINES,
    functions: Collection[str] = FUNCTIONS,
) -> BuildReport:
    """Build an artifact from equations of motion, independent of their derivation.

    model_hash: identifies the model's content in the manifest. error_lines: the lines that errors name. Raises
    ModelError and ArtifactError as `build_artifact` does.
    """
    report = report or BuildReport(metadata.name, str(Path(directory) / metadata.name))
    with report.stage("program"):
        implicit = lowering.mechanism(equations)
    with report.stage("derivatives"):
        program = differentiated(implicit, {*functions, "dynamics"})
    metadata = _stepped(program, metadata, error_lines, report)
    kept = tuple(function for function in program.functions if function.name in functions)
    program = replace(program, functions=kept)
    with report.stage("drawing"):
        program = _with_drawing(program, implicit, equations, drawn)
    report.operations = program.operations
    manifest, files = _files(program, metadata, model_hash, report)
    artifact.write(Path(directory) / metadata.name, manifest, files, report.written())
    return report


def _with_drawing(program: Program, mechanism: EquationNodes, equations: EquationsOfMotion, drawn: Sketch) -> Program:
    """The program with the points of a drawing in its graph."""
    points = lowering.drawing(drawn, equations)
    (function,) = points.functions
    theirs = [node for argument in function.arguments for node in argument.entries]
    known = dict(zip(theirs, mechanism.x.entries + mechanism.theta.entries, strict=True))
    (output,) = function.outputs
    entries = program.graph.absorb(points.graph, output.entries, known)
    function = Function("points", (mechanism.x, mechanism.theta), (replace(output, entries=entries),))
    return replace(program, drawing=function, segments=drawn.segments)


def _files(
    program: Program, metadata: Metadata, model_hash: str, report: BuildReport
) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest of a program, and the files of the artifact by name: the program, and what stands beside it."""
    with report.stage("write program"):
        content = stored.write(program)
    beside: dict[str, bytes] = {}
    report.source_bytes["program"] = len(content)
    for name in BESIDE:
        with report.stage(f"emit {name}"):
            emitted = emitter(name).emit(program, metadata)
        report.source_bytes[name] = sum(map(len, emitted.values()))
        beside |= {artifact.hashed(file, text): text for file, text in emitted.items()}
    manifest = Manifest(
        metadata=metadata,
        model_hash=model_hash,
        model_file=report.model_file,
        generator_version=GENERATOR_VERSION,
        program=hashlib.sha256(content).hexdigest(),
        files={file: hashlib.sha256(text).hexdigest() for file, text in beside.items()},
    )
    return manifest, {manifest.program_file: content, **beside}


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Folder of the artifacts of this process, which goes with it."""
    return tempfile.TemporaryDirectory(prefix="modelgen-")


def compile(robot: Robot, backend: str = "llvm", dtype: str = "float64") -> CompiledRobot:
    """Compiled robot of a statement, without a folder of the user's. A robot that has not changed is compiled once.

    backend, dtype: as in `modelgen.load`. Raises ModelError for a mistake in the statement.
    """
    _require_robot(robot)
    directory = Path(_place().name) / content_hash(robot)[:16]
    if not (directory / robot.name / "manifest.json").is_file():
        build_artifact(robot, directory)
    return load(robot.name, backend, dtype, directory)
