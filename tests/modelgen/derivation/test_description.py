"""The content hash changes with the content of a model file, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from modelgen.derivation import model_file as modelfile
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import content_hash
from tests.modelgen.support.model_files import MODEL, written


def hashed(folder: Path, text: str) -> str:
    written(folder, text)
    return content_hash(modelfile.load("slider"))


def test_layout_and_comments_do_not_change_the_hash(folder: Path) -> None:
    other = "# a comment\n" + MODEL.replace("mass * s", "s * mass")
    assert hashed(folder, MODEL) == hashed(folder, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rate_limit=2", "rate_limit=3"),
        ("1.0, ", "1.1, "),
        ('"kg"', '""'),
        ("(0.5, 2)", "(0.5, 2.5)"),
        ("(s, 0)", "(2 * s, 0)"),
        ("s**2", "2 * s**2"),
        ("LogCos(1)", "LogCos(2)"),
        ("(0.5, 0.1)", "(0.5, 0.2)"),
        ("horizon=5", "horizon=6"),
        ("words", "other words"),
        ('"force", 3', '"push", 3'),
        ("robot.point_mass", "robot.potential_energy(9.81 * mass * s)\nrobot.point_mass"),
        ("robot.task", "robot.damp(s, 0.1)\nrobot.task"),
    ],
)
@pytest.mark.slow
def test_every_value_of_the_file_changes_the_hash(folder: Path, old: str, new: str) -> None:
    assert old in MODEL
    assert hashed(folder, MODEL) != hashed(folder, MODEL.replace(old, new))


@pytest.mark.parametrize("more", ["target=dict(z=0), start=dict(", "start=dict(z=(0, 0), "])
def test_a_stated_zero_of_a_state_of_first_order_changes_the_hash(folder: Path, more: str) -> None:
    """Without an entry, the state is where it holds the target."""
    state = (
        'z = robot.state("z", limit=9, unit="N")\nrobot.flow(z, 1.0 * force - 1.0 * z)\nrobot.apply(s, z)\nrobot.task'
    )
    text = MODEL.replace("robot.apply(s, robot", "force = (robot").replace("robot.task", state)
    assert hashed(folder, text) != hashed(folder, text.replace("start=dict(", more))


def test_a_spring_is_not_another_energy(folder: Path) -> None:
    """The motion is the same, but the function `gravity` of mechanics contains the energy and no spring."""
    spring = MODEL.replace("robot.task", "robot.spring(s, 2.0)\nrobot.task")
    assert hashed(folder, spring) != hashed(
        folder, spring.replace("spring(s, 2.0)", "potential_energy(2.0 * s**2 / 2)")
    )


def test_an_edited_helper_changes_the_hash(folder: Path) -> None:
    text = "from _shared import limit\n" + MODEL.replace('"force", 3', '"force", limit')
    written(folder, "limit = 3\n", "_shared")
    first = hashed(folder, text)
    written(folder, "limit = 4\n", "_shared")
    assert hashed(folder, text) != first


@pytest.mark.slow
def test_hash_and_equations_are_the_same_in_every_process(folder: Path) -> None:
    written(folder, MODEL)
    command = (
        "from modelgen.derivation import derive, description, model_file; r = model_file.load('furuta');"
        "print(description.content_hash(r), derive.equations_of_motion(r))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(modelfile.SHIPPED.parent)}
    robot = modelfile.load("furuta")
    ended = subprocess.run([sys.executable, "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == f"{content_hash(robot)} {equations_of_motion(robot)}\n"
