"""The build of an artifact: equations of motion, program, derivatives, emitted sources, in this order."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from modelgen.artifact import folder as artifact
from modelgen.artifact.manifest import GENERATOR_VERSION, Manifest, MechanicsManifest, Signature
from modelgen.backends import MODULES, drawing, emitter
from modelgen.derivation import description, lowering
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.equations import EquationsOfMotion
from modelgen.derivation.integration import integration_steps
from modelgen.derivation.mechanics import mechanics_expressions, point_hashes
from modelgen.derivation.regularity import NO_LINES, Lines, check_regular
from modelgen.derivation.size import refuse_too_large, size
from modelgen.derivation.sketch import Sketch, sketch
from modelgen.errors import ModelError, suggestion
from modelgen.metadata import Metadata
from modelgen.program.differentiate import FUNCTIONS
from modelgen.program.differentiate import program as differentiated
from modelgen.program.functions import MOST_OPERATIONS, Program
from modelgen.program.mechanics import MECHANICS, UNSTATED
from modelgen.program.mechanics import program as mechanics_program
from modelgen.proof.error_lines import lines
from modelgen.proof.findings import refuse_derived, refuse_guards
from modelgen.proof.kinks import warnings
from modelgen.statement.robot import Robot

NO_DRAWING = Sketch((), (), (), ())
Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Write nothing."""


@dataclass
class BuildReport:
    """Times and sizes of one build, stored in the artifact as build_report.json."""

    robot: str
    folder: str
    seconds: dict[str, float] = field(default_factory=dict)  # by stage, in order
    operations: dict[str, int] = field(default_factory=dict)  # by function
    source_bytes: dict[str, int] = field(default_factory=dict)  # by backend; of backends with one source, the first
    left_out: dict[str, str] = field(default_factory=dict)  # function of mechanics that the robot lacks -> reason
    warnings: list[str] = field(default_factory=list)  # about possible mistakes that do not stop the build
    tell: Tell = silent  # gets the text of each stage: its name before the work, its seconds after it

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
        content = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self) if entry.name != "tell"}
        return json.dumps(content, indent=1) + "\n"


def build_artifact(robot: Robot, directory: str | Path = "generated") -> BuildReport:
    """Build a robot into directory/NAME, with all functions of an artifact.

    Raises ModelError for a mistake in the model, ArtifactError if the folder cannot be written.
    """
    (report,) = build(robot, directory)
    return report


def build(
    robot: Robot,
    directory: str | Path = "generated",
    functions: Collection[str] = FUNCTIONS,
    most_operations: int = MOST_OPERATIONS,
    tell: Tell = silent,
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
    report = BuildReport(robot.name, str(Path(directory) / robot.name), tell=tell)
    with report.stage("equations of motion"):
        equations = equations_of_motion(robot)
    _checked(robot, equations, report)
    metadata, model_hash = description.metadata(robot), content_hash(robot)
    if any(name in FUNCTIONS for name in functions):
        drawn, error_lines = sketch(robot), lines(robot)
        yield build_from_equations(equations, metadata, model_hash, directory, report, drawn, error_lines, functions)
        report = BuildReport(robot.name, report.folder, tell=tell)
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
    """Emit functions of mechanics into a folder inside the artifact's, which the report names."""
    folder = Path(report.folder) / artifact.ON_REQUEST
    report.folder = str(folder)
    with report.stage("mechanics"):
        program = mechanics_program(lowering.mechanics(equations, mechanics_expressions(robot, equations)), functions)
    report.operations = program.operations()
    report.left_out = {
        name: UNSTATED[name] for name in MECHANICS if name in functions and name not in report.operations
    }
    emitted = _emitted(program, metadata, report)
    manifest = _manifest(program, metadata, model_hash, emitted)
    fields = {entry.name: getattr(manifest, entry.name) for entry in dataclasses.fields(manifest)}
    _write(folder, MechanicsManifest(**fields, points=point_hashes(robot)), emitted, report)
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


def export(robot: Robot, target: str) -> dict[str, bytes]:
    """The files of one of `EXPORTS`, named after the robot and made from its model file.

    Raises ModelError for a mistake in the model.
    """
    equations = equations_of_motion(robot)
    _checked(robot, equations, BuildReport(robot.name, ""))
    program, described = differentiated(lowering.mechanism(equations)), description.metadata(robot)
    check_regular(program, described, lines(robot))
    files = emitter(target).emit(program, described)
    return {f"{robot.name}_{name}": text for name, text in files.items()} if target in MODULES else files


def _checked(robot: Robot, equations: EquationsOfMotion, report: BuildReport) -> None:
    """All checks over the domain. The checks that know the line of an expression come first."""
    with report.stage("search for violations"):
        refuse_guards(robot)
        report.warnings += warnings(robot)
    with report.stage("checks"):
        check_domain(robot, equations)
    with report.stage("search for violations"):
        refuse_derived(robot, equations)


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
    with report.stage("values at task"):
        check_regular(program, metadata, error_lines)
    with report.stage("integration steps"):
        steps = integration_steps(program, metadata, error_lines, report.warnings.append)
        metadata = replace(metadata, task=replace(metadata.task, integration_steps=steps))
    kept = tuple(function for function in program.functions if function.name in functions)
    program = replace(program, functions=kept)
    report.operations = program.operations()
    emitted = _emitted(program, metadata, report)
    with report.stage(f"emit {drawing.FILES}"):
        points = lowering.drawing(drawn, equations.state, equations.parameters)
        emitted[drawing.FILES] = _named(drawing.emit(points, drawn.segments, metadata))
    report.source_bytes[drawing.FILES] = sum(map(len, emitted[drawing.FILES].values()))
    manifest = _manifest(program, metadata, model_hash, emitted)
    _write(Path(directory) / metadata.name, manifest, emitted, report)
    return report


def _write(folder: Path, manifest: Manifest, emitted: dict[str, dict[str, bytes]], report: BuildReport) -> None:
    files = {file: content for group in emitted.values() for file, content in group.items()}
    artifact.write(folder, manifest, files, report.written())


def _emitted(program: Program, metadata: Metadata, report: BuildReport) -> dict[str, dict[str, bytes]]:
    """Backend -> file name -> content. Backends with one `emit` share its files, which are made once."""
    made: dict[Callable[..., dict[str, bytes]], dict[str, bytes]] = {}
    emitted = {}
    for name in MODULES:
        emit = emitter(name).emit
        if emit not in made:
            with report.stage(f"emit {name}"):
                made[emit] = _named(emit(program, metadata))
            report.source_bytes[name] = sum(map(len, made[emit].values()))
        emitted[name] = made[emit]
    return emitted


def _named(files: dict[str, bytes]) -> dict[str, bytes]:
    return {artifact.hashed(name, content): content for name, content in files.items()}


def _manifest(program: Program, metadata: Metadata, model_hash: str, emitted: dict[str, dict[str, bytes]]) -> Manifest:
    return Manifest(
        metadata=metadata,
        model_hash=model_hash,
        generator_version=GENERATOR_VERSION,
        functions={
            function.name: Signature(
                tuple(argument.name for argument in function.arguments),
                tuple((output.name, output.shape) for output in function.outputs),
            )
            for function in program.functions
        },
        operations=program.operations(),
        files={
            name: {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
            for name, files in emitted.items()
        },
    )
