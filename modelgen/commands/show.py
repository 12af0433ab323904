"""`modelgen show`: what an artifact holds, a robot at rest, or the model file as a page for a person."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from modelgen.commandline.options import Argument
from modelgen.errors import ModelError
from modelgen.files import replacing

if TYPE_CHECKING:
    from modelgen.artifact.manifest import Manifest
    from modelgen.derivation.equations import EquationsOfMotion
    from modelgen.report.contents import Contents
    from modelgen.statement.robot import Robot


@dataclass(frozen=True)
class Options:
    """Without an option: states, inputs, parameters, task and operations of the artifact."""

    name: Annotated[str, Argument(positional=True)]
    """Name of a robot; with --latex and --html also the path of a model file."""
    linearize: bool = False
    """Print A, B, controllability and an LQR gain at an equilibrium."""
    at: Annotated[tuple[str, ...], Argument(metavar="COORDINATE=VALUE")] = ()
    """Where the equilibrium is; coordinates left out are solved for. By default the task's target."""
    latex: bool = False
    """Print the model file as a LaTeX document."""
    html: Annotated[tuple[Path, ...] | None, Argument(metavar="[FILE]")] = None
    """Write the model file as an HTML page to FILE, or print it where no file is named."""
    directory: Annotated[str | None, Argument(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Print what was asked for; an HTML page goes to a file where one is named."""
    if options.at and not options.linearize:
        raise ModelError("--at says where to linearize; write modelgen show NAME --linearize --at COORDINATE=VALUE.")
    if sum((options.linearize, options.latex, options.html is not None)) > 1:
        raise ModelError("--linearize prints an artifact, --latex and --html a model file; write one of them.")
    if options.directory and (options.latex or options.html is not None):
        raise ModelError("--directory is of artifacts; --latex and --html are made from the model file. Leave it out.")
    if options.html and len(options.html) > 1:
        raise ModelError(
            f"--html writes one file; {len(options.html)} are named. Write modelgen show NAME --html FILE."
        )
    if options.html:
        text = _html(options.name)
        with replacing(options.html[0]) as path:
            path.write_text(text, encoding="utf-8")
        print(options.html[0])
    elif options.html is not None:
        _print_page(_html(options.name))
    elif options.latex:
        _print_page(_latex(options.name) + "\n")
    elif options.linearize:
        print(_linearize(options))
    else:
        print(_artifact(options))


def _print_page(text: str) -> None:
    """Print in UTF-8, the encoding that the document declares, whatever the terminal's is."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    print(text, end="")


def _artifact(options: Options) -> str:
    from modelgen.artifact.folder import REPORT, find, program, proof, read

    folder = find(options.name, options.directory)
    manifest = read(folder)
    described = _show_text(manifest, program(folder, manifest).operations)
    text = f"{described}\n{_proven(proof(folder, manifest), options.name)}"
    if not (folder / REPORT).exists():
        return f"{text}\n\nbuild: {folder / REPORT} is not there, so the seconds of each stage are not known"
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
        seconds = ", ".join(f"{stage} {value:.2f} s" for stage, value in report["seconds"].items())
        size = ", ".join(f"{backend} {count / 1024:.0f} KiB" for backend, count in report["source_bytes"].items())
        return f"{text}\n\nbuild: {seconds}\nsources: {size}"
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return f"{text}\n\nbuild: {folder / REPORT} is damaged, so the seconds of each stage are not known"


def _proven(found: dict[str, Any] | None, name: str) -> str:
    """When and how the artifact was proven."""
    if found is None:
        return f"proof: none of this artifact is kept; `modelgen verify {name}` makes it"
    result = f"{found['failed']} checks FAILED" if found["failed"] else "every check passed"
    return (
        f"proof: {found['date']} by modelgen verify (generator {found['modelgen']}): {result}, "
        f"{found['passed']} passed, {found['skipped']} skipped, {found['seconds']} s"
    )


def _linearize(options: Options) -> str:
    from modelgen.loader import load
    from modelgen.report.linearization import linearize, stated, text

    robot = load(options.name, directory=options.directory, parallel=False)
    return text(robot, linearize(robot, stated(options.at, robot)))


def _contents(robot: Robot) -> tuple[Contents, EquationsOfMotion]:
    """Derive them from the model file; the artifact holds no formulas."""
    from modelgen.derivation.derive import equations_of_motion
    from modelgen.derivation.description import metadata
    from modelgen.report.contents import contents

    equations = equations_of_motion(robot)
    return contents(metadata(robot), equations), equations


def _latex(model: str) -> str:
    from modelgen.derivation import model_file as modelfile
    from modelgen.report.latex import document

    return document(_contents(modelfile.load(model))[0])


def _html(model: str) -> str:
    """Write the page, with a picture of the robot at its start (grey) and at its target."""
    import numpy as np
    from sympy import Matrix

    from modelgen.derivation import model_file as modelfile
    from modelgen.derivation.description import metadata
    from modelgen.derivation.numeric import evaluator
    from modelgen.derivation.sketch import sketch
    from modelgen.report.html import document

    robot = modelfile.load(model)
    said, equations = _contents(robot)
    drawn, described = sketch(robot), metadata(robot)
    points = evaluator([*equations.state, *equations.parameters], Matrix(drawn.points), drawn.definitions)
    states = np.array([described.task.start_mean, described.task.target])
    theta = np.tile([parameter.value for parameter in described.parameters], (2, 1))
    segments = np.array(drawn.segments, int).reshape(-1, 2)
    return document(said, list(points(*states.T, *theta.T)[:, segments]) if len(segments) else ())


def _show_text(manifest: Manifest, operations: dict[str, int]) -> str:
    """States, inputs, parameters, task and operations."""
    robot, task = manifest.metadata, manifest.metadata.task
    lines = [f"{robot.name}: {robot.description}", "", f"{'state':<24}{'limit':>10} unit     start"]
    starts = zip(robot.states, task.target, task.start_mean, task.start_deviation, strict=True)
    for state, target, mean, deviation in starts:
        limit = "turns" if state.continuous else f"{state.limit:g}"
        lines.append(
            f"  {state.name:<22}{limit:>10} {state.unit:<8} {mean:.4g} +- {deviation:.3g}, target {target:g} "
            f"  {state.meaning}"
        )
    lines += ["", f"{'input':<24}{'limit':>10} unit"]
    lines += [f"  {each.name:<22}{each.limit:>10g} {each.unit:<8} {each.meaning}" for each in robot.inputs]
    lines += ["", f"{'parameter':<24}{'value':>10} unit     bounds"]
    lines += [
        f"  {each.name:<22}{each.value:>10g} {each.unit:<8} {each.lower:g} to {each.upper:g}   {each.meaning}"
        for each in robot.parameters
    ]
    weights = ", ".join(f"{weight:g}" for weight in task.action_cost.weights)
    lines += [
        "",
        f"task: action cost {task.action_cost.name} ({weights}), horizon {task.horizon:g} s with weight "
        f"{task.weight_at_horizon:g} left, control {task.control_rate} Hz, {task.integration_steps} Runge-Kutta "
        f"step(s) a period, simulation {task.simulation_rate} Hz"
        + (f", may end anywhere: {', '.join(task.free)}" if task.free else ""),
        "operations: " + ", ".join(f"{name} {count}" for name, count in operations.items()),
        f"model {manifest.model_hash[:12]}, artifact {manifest.hash[:12]}",
    ]
    return "\n".join(lines)
