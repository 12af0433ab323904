"""The description of a run in its folder, and the artifact of its robot, so that the folder can be moved to where there
is no such robot.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from modelgen.artifact.folder import MANIFEST, find, read
from modelgen.errors import ModelError, StaleArtifactWarning, warn
from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.runs.folder import ARTIFACT, load_description, save_description
from solver.runs.kinds import Description, kind_of, kind_that_trains, remove_run

AnyRun = TypeVar("AnyRun", bound=Description)


def begin(folder: Path, run: Description, robot: CompiledRobot) -> None:
    """Replace the run in a folder by a new one, of this robot.

    Raises SolverError if a file cannot be written.
    """
    remove_run(folder)
    save(folder, run)  # first: what follows then belongs to a run, also after a crash
    keep(robot.folder, folder)


def save(folder: Path, run: Description) -> None:
    """Write the description of a run, with the artifact in the run folder by a path relative to it."""
    own = run.generated is not None and Path(run.generated) == folder / ARTIFACT
    name = kind_that_trains(run.settings.algorithm).description
    save_description(folder / name, replace(run, generated=ARTIFACT) if own else run)


def load(folder: Path, command: str, kind: type[AnyRun]) -> AnyRun:
    """Description of the run in a folder. Raises SolverError if it is missing or damaged, or not trained by `command`.

    The artifact of the training has priority where it is still the same, then that in the run folder. Gives a
    StaleArtifactWarning where the robot has been built anew.
    """
    return _located(load_description(folder / kind_of(folder, command).description, kind), folder)


def keep(artifact: Path, folder: Path) -> None:
    """Put the artifact of a robot into a run folder, in place of another one.

    Its files are links to those of the artifact where the file system has links, so that many runs need its space once.
    A build replaces files and changes none. Raises SolverError if they cannot be written.
    """
    target, manifest = folder / ARTIFACT / artifact.name, read(artifact)
    if target.exists() and target.samefile(artifact):
        return
    names = [MANIFEST, manifest.program_file, *manifest.files]
    try:
        shutil.rmtree(folder / ARTIFACT, ignore_errors=True)
        target.mkdir(parents=True)
        for name in names:
            try:
                os.link(artifact / name, target / name)
            except OSError:
                shutil.copyfile(artifact / name, target / name)
    except OSError as error:
        raise SolverError(
            f"cannot write the artifact to {target}: {error.strerror or error}. Free some space."
        ) from error


def _located(run: AnyRun, folder: Path) -> AnyRun:
    """The description with the place of its artifact."""
    own = folder / ARTIFACT
    if not os.path.isfile(own / run.robot / MANIFEST):  # which takes every name, also one that is too long
        return run
    if run.generated != ARTIFACT:
        present = _hash(run.robot, run.generated)
        if present == run.artifact_hash or _hash(run.robot, str(own)) != run.artifact_hash:
            return run
        if present:
            warn(
                f"{folder} was trained on artifact {run.artifact_hash[:12]} of {run.robot}, and {run.robot} was built "
                f"anew since, as {present[:12]}. This is the robot of the training, from {own}.",
                StaleArtifactWarning,
            )
    return replace(run, generated=str(own))


def _hash(robot: str, generated: str | None) -> str:
    """Hash of the artifact of a robot; empty where there is none."""
    try:
        return read(find(robot, generated)).hash
    except ModelError:
        return ""
