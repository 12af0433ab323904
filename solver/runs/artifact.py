"""The artifact of a training in its run folder, so that the folder can be moved to where there is no such robot."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from modelgen.artifact.folder import MANIFEST, find, read
from modelgen.errors import ModelError, StaleArtifactWarning, warn
from solver.errors import SolverError
from solver.runs.kinds import Description

ARTIFACT = "artifact"  # subfolder of a run folder; in it is a folder with the name of the robot

AnyRun = TypeVar("AnyRun", bound=Description)


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


def located(run: AnyRun, folder: Path) -> AnyRun:
    """The description of the run in a folder, with the place of its artifact.

    The artifact of the training has priority where it is still the same, then that in the run folder. Gives a
    StaleArtifactWarning where the robot has been built anew.
    """
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


def stored(run: AnyRun, folder: Path) -> AnyRun:
    """The description as it is written: the artifact in the run folder by a path relative to it."""
    own = run.generated is not None and Path(run.generated) == folder / ARTIFACT
    return replace(run, generated=ARTIFACT) if own else run


def _hash(robot: str, generated: str | None) -> str:
    """Hash of the artifact of a robot; empty where there is none."""
    try:
        return read(find(robot, generated)).hash
    except ModelError:
        return ""
