"""Robots that are stated and compiled in one program: `compile` for the moment, `build` into a folder."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from modelgen.builder import BuildReport, build_artifact
from modelgen.derivation.description import content_hash
from modelgen.loader import CompiledRobot, load
from modelgen.statement.robot import Robot


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    """Folder of the artifacts of this process, which goes with it."""
    return tempfile.TemporaryDirectory(prefix="modelgen-")


def compile(robot: Robot, backend: str = "llvm", dtype: str = "float64") -> CompiledRobot:
    """Compiled robot of a statement, without a folder of the user's. A robot that has not changed is compiled once.

    backend, dtype: as in `modelgen.load`. Raises ModelError for a mistake in the statement.
    """
    directory = Path(_place().name) / content_hash(robot)[:16]
    if not (directory / robot.name / "manifest.json").is_file():
        build_artifact(robot, directory)
    return load(robot.name, backend, dtype, directory)


def build(robot: Robot, directory: str | Path = "generated") -> BuildReport:
    """Artifact of a robot in directory/NAME, which `modelgen.load` and `solver.train` open by the name.

    Returns times, sizes and warnings. Raises ModelError for a mistake in the statement, ArtifactError if the folder
    cannot be written.
    """
    return build_artifact(robot, directory)
