"""`modelgen show`: an artifact, a robot at rest, or a model file as a page."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from modelgen.errors import ModelError
from modelgen.files import replacing


@dataclass(frozen=True)
class Options:
    """Without an option, it prints states, inputs, parameters, task and operations of the artifact."""

    name: Annotated[str, Positional]
    """Name of a robot; with --latex and --html also the path of a model file."""
    linearize: bool = False
    """Print A, B, controllability and an LQR gain at an equilibrium."""
    at: Annotated[tuple[str, ...], arg(metavar="COORDINATE=VALUE ...")] = ()
    """Coordinates of the equilibrium. The other coordinates are solved for. By default the task's target."""
    json: bool = False
    """Print JSON: the manifest of the artifact, or the linearisation."""
    latex: bool = False
    """Print the model file as a LaTeX document."""
    html: Annotated[tuple[Path, ...] | None, arg(metavar="[FILE]")] = None
    """Write the model file as an HTML page to FILE, or print it where no file is named."""
    generated: Annotated[str | None, arg(metavar="DIR")] = None
    """Folder of artifacts. By default ./generated, then the one shipped with the package."""


def run(options: Options) -> None:
    """Print, or write the page."""
    page = options.latex or options.html is not None
    if options.at and not options.linearize:
        raise ModelError("--at belongs to a linearisation; write modelgen show NAME --linearize --at COORDINATE=VALUE.")
    if sum((options.linearize, options.latex, options.html is not None)) > 1 or (page and options.json):
        raise ModelError("--linearize and --json print an artifact, --latex and --html a model file; write one kind.")
    if options.generated and page:
        raise ModelError(
            "--latex and --html are made from the model file, not from an artifact. Leave out --generated."
        )
    if options.html and len(options.html) > 1:
        raise ModelError(f"--html writes one file, not {len(options.html)}. Write modelgen show NAME --html FILE.")
    (_page if page else _linearization if options.linearize else _artifact)(options)


def _artifact(options: Options) -> None:
    from modelgen.artifact.folder import opened
    from modelgen.report import summary

    folder, manifest = opened(options.name, options.generated)
    print(json.dumps(summary.data(folder, manifest), indent=2) if options.json else summary.text(folder, manifest))


def _linearization(options: Options) -> None:
    from modelgen.loader import load
    from modelgen.report.linearization import given_coordinates, linearize, text

    robot = load(options.name, directory=options.generated, parallel=False)
    result = linearize(robot, given_coordinates(options.at, robot))
    print(json.dumps(result.to_json(), indent=2) if options.json else text(robot, result))


def _page(options: Options) -> None:
    from modelgen.derivation import model_file
    from modelgen.report.pages import html_page, latex_document

    text = (latex_document if options.latex else html_page)(model_file.load(options.name))
    if options.html:
        with replacing(options.html[0]) as path:
            path.write_text(text, encoding="utf-8")
        print(options.html[0])
        return
    if hasattr(sys.stdout, "reconfigure"):  # the document says that it is UTF-8, whatever the terminal is
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    print(text, end="")
