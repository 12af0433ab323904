"""The size that is estimated before a build: close to the size of the build, and refused if too large."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import modelgen.builder
from modelgen import ModelError, Quadratic, Robot
from modelgen.artifact import folder as artifact
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.lowering import mechanism
from modelgen.derivation.model_file import SHIPPED, load
from modelgen.derivation.size import size
from modelgen.errors import calling_place
from modelgen.program.differentiate import program
from modelgen.statement.bodies import Link

pytestmark = pytest.mark.slow


def tree(coordinates: int, arms: int = 1) -> Robot:
    """Arms of links in space on one link that turns. Every joint is driven, and the masses are uncertain."""
    robot = Robot("tree")
    links: list[Link] = []
    for number in range(coordinates):
        joint = robot.revolute(f"joint{number}", limit=2, rate_limit=3)
        mass = robot.parameter(f"mass{number}", 1.0, "kg", tolerance=0.5)
        link = robot.link(
            f"link{number}",
            joint,
            on=links[max(number - arms, 0)] if links else None,
            at=(0, 0.1, 0.4),
            axis="xyz"[number % 3],
            mass=mass,
            centre=(0.1, 0, 0.2),
            inertia=(0.02, 0.03, 0.01),
        )
        links.append(link)
        robot.apply(joint, robot.input(f"torque{number}", 5, "N m"))
    return robot


@pytest.mark.parametrize(("coordinates", "arms"), [(5, 1), (6, 3)])
def test_a_tree_has_about_as_many_operations_as_expected(coordinates: int, arms: int) -> None:
    robot = tree(coordinates, arms)
    robot.task(
        state_cost=robot.joints[0].symbol ** 2,
        action_cost=Quadratic([1] * coordinates),
        start={},
        horizon=5,
        weight_at_horizon=0.5,
        control_rate=100,
    )
    made = program(mechanism(equations_of_motion(robot))).operations
    for name, expected in size(robot).operations.items():
        if name in made:
            assert 0.4 < expected / made[name] < 2.5, name


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.py") if not path.stem.startswith("_")))
def test_shipped_robots_have_about_as_many_operations_as_expected(name: str) -> None:
    folder = artifact.SHIPPED / name
    made = artifact.program(folder, artifact.read(folder)).operations
    expected = size(load(str(SHIPPED / f"{name}.py"))).operations
    assert 0.4 < sum(expected.values()) / sum(made[name] for name in expected if name in made) < 4


def test_jacobians_grow_with_the_fourth_power_of_the_coordinates() -> None:
    counts = [size(tree(number)).operations["jacobians"] for number in (12, 24)]
    assert 12 < counts[1] / counts[0] < 20
    assert size(tree(24, 4)).operations["jacobians"] < counts[1]  # branches leave zeros


def test_a_robot_that_is_too_large_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modelgen.builder, "equations_of_motion", lambda _: pytest.fail("work was done"))
    robot = tree(48)
    with pytest.raises(ModelError) as caught:
        list(modelgen.builder.build(robot, tmp_path))
    message = str(caught.value)
    assert caught.value.place == robot.place
    assert caught.value.place.file == calling_place().file
    for word in (
        "operations",
        " MB",
        " h",
        "48 coordinates",
        "functions dynamics,affine_dynamics",
        "functions mechanics",
        "most_operations ",
    ):
        assert word in message
    allowed = int(message.rpartition("most_operations ")[2].rstrip("."))
    for how in (dict(functions=("dynamics", "affine_dynamics")), dict(most_operations=allowed)):
        with pytest.raises(pytest.fail.Exception, match="work was done"):
            list(modelgen.builder.build(robot, tmp_path, **how))


def test_output_to_a_pipe_names_each_stage_before_its_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.BytesIO()

    def check(*_: object) -> None:
        written.append(pipe.getvalue().decode())
        raise ModelError("enough")

    written: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, line_buffering=False))
    monkeypatch.setattr(modelgen.builder, "check_domain", check)
    assert main(["build", str(SHIPPED / "pendulum.py")]) == 2
    lines = written[0].splitlines()
    assert lines[0].startswith("pendulum")
    assert "expected: about " in lines[1]
    assert "equations of motion" in lines[2]
    assert lines[2].endswith(" s")
    assert lines[-1].strip() == "checks"
    assert pipe.getvalue().endswith(b"\n")
    assert main(["build", str(SHIPPED / "pendulum.py"), "--most-operations", "10"]) == 2
    assert len(written) == 1
