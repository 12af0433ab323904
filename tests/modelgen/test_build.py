"""The build: its report, and bytes that depend only on the model."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from sympy import cos, sin

import modelgen
from modelgen import Quadratic, Robot
from modelgen.artifact import folder as artifact
from modelgen.builder import build_artifact, build_from_equations
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.errors import ModelError
from tests.modelgen.support import mechanisms

pytestmark = pytest.mark.slow

ROBOTS = sorted(path.parent.name for path in artifact.SHIPPED.glob(f"*/{artifact.MANIFEST}"))


def _content(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.is_file() and path.name != artifact.REPORT
    }


@pytest.mark.parametrize("name", ROBOTS)
def test_shipped_artifacts_are_those_of_the_generator(name: str, tmp_path: Path) -> None:
    """After a change of the generator: raise GENERATOR_VERSION and run `modelgen build`."""
    build_artifact(load(str(SHIPPED / f"{name}.py")), tmp_path)
    assert _content(tmp_path / name) == _content(artifact.SHIPPED / name)


BUILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.modelgen.support import mechanisms
from modelgen.builder import build_from_equations
equations = mechanisms.dense()
build_from_equations(equations, mechanisms.metadata("dense", equations), "0" * 64, Path(sys.argv[2]))
"""


def test_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Of a robot made from equations. The test above builds the shipped ones under a random seed."""
    equations = mechanisms.dense()
    build_from_equations(equations, mechanisms.metadata("dense", equations), "0" * 64, tmp_path / "here")
    environment = {**os.environ, "PYTHONHASHSEED": "0" if os.environ.get("PYTHONHASHSEED") == "77" else "77"}
    arguments = [sys.executable, "-c", BUILD, str(Path(__file__).parents[2]), str(tmp_path)]
    subprocess.run(arguments, env=environment, check=True)
    assert _content(tmp_path / "here" / "dense") == _content(tmp_path / "dense")


def test_report_has_seconds_sizes_and_operations(tmp_path: Path) -> None:
    report = build_artifact(load(str(SHIPPED / "pendulum.py")), tmp_path)
    written = json.loads((tmp_path / "pendulum" / artifact.REPORT).read_text())
    assert written["seconds"] == report.seconds
    assert {
        "equations of motion",
        "program",
        "derivatives",
        "integration steps",
        "write program",
    } <= report.seconds.keys()
    assert set(report.source_bytes) == {"program", "numba", "casadi"}
    assert report.operations["dynamics"] > 0
    manifest = (tmp_path / "pendulum" / artifact.MANIFEST).read_text()
    assert "seconds" not in manifest


def weak_arm(target: float) -> Robot:
    """An arm that a motor of 5 N m holds at 1.2 rad from the horizontal and not at 0.3 rad."""
    robot = Robot("weak_arm")
    arm = robot.revolute("arm", limit=2, rate_limit=8)
    robot.point_mass(1.0, (cos(arm), sin(arm)))
    robot.apply(arm, robot.input("torque", 5, "N m"))
    robot.task(
        state_cost=(arm - target) ** 2 + arm.rate**2,
        action_cost=Quadratic(0.1),
        target=dict(arm=target),
        start=dict(arm=(1.5, 0.1)),
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    return robot


def test_python_gives_the_warnings_of_a_build(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="no input within the limits"):
        modelgen.compile(weak_arm(0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert modelgen.build(weak_arm(1.2), tmp_path).warnings == []


def test_what_is_no_robot_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'pendulum'.*modelgen\.load"):
        modelgen.compile("pendulum")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"None.*modelgen\.load"):
        modelgen.build(None, tmp_path)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [("g", ["mass_matrix"]), ("g", 5), (5,), (None,)])
def test_arguments_of_another_type_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ModelError, match=r"(functions|directory) is .*; give"):
        modelgen.build(weak_arm(1.2), *arguments)


def test_free_states_and_integration_steps_are_read_from_the_manifest() -> None:
    task = modelgen.load("reaction_wheel").metadata.task
    assert (task.free, task.integration_steps) == (("wheel",), 1)
    assert modelgen.load("furuta").metadata.task.integration_steps == 2
