"""Drawings: what a file states, what is drawn without a statement, and its points as a function of the state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sympy import Matrix, cos, sin

import modelgen
from modelgen import LogCos, ModelError, Quadratic, Robot
from modelgen.arrays import on_sphere
from modelgen.artifact import folder as artifact
from modelgen.builder import build_artifact
from modelgen.derivation.description import content_hash
from modelgen.loader import CompiledRobot
from tests.closeness import assert_close

ROBOTS = sorted(path.parent.name for path in artifact.SHIPPED.glob(f"*/{artifact.MANIFEST}"))


def shipped(name: str) -> CompiledRobot:
    return modelgen.load(name, backend="casadi", directory=artifact.SHIPPED)


def two_rods(*, links: bool = False, name: str = "rods") -> Robot:
    """An arm of two uniform rods, by bodies or by links, without a drawing and without a task."""
    robot = Robot(name)
    first = robot.revolute("first", continuous=True, rate_limit=5)
    second = robot.revolute("second", continuous=True, rate_limit=5)
    length = robot.parameter("length", 0.5, "m", tolerance=0.5)
    mass = robot.parameter("mass", 2.0, "kg", fixed=True)
    inertia = mass * length**2 / 12
    if links:
        upper = robot.link("upper", first, mass=mass, centre=(0, 0, length / 2), inertia=inertia)
        lower = dict(on=upper, at=(0, 0, length), mass=mass, centre=(0, 0, length / 2), inertia=inertia)
        robot.link("lower", second, **lower)
    else:
        angle = first + second
        robot.body(mass, inertia, (length / 2 * sin(first), length / 2 * cos(first)), first)
        end = (length * sin(first) + length / 2 * sin(angle), length * cos(first) + length / 2 * cos(angle))
        robot.body(mass, inertia, end, angle)
    robot.apply(first, robot.input("torque", 5, "N m"))
    return robot


def with_task(robot: Robot) -> Robot:
    cost = sum(joint.symbol**2 for joint in robot.joints) * 0 + sum(1 - cos(joint.symbol) for joint in robot.joints)
    robot.task(state_cost=cost, action_cost=LogCos(1.0), start={}, horizon=5, weight_at_horizon=0.7, control_rate=125)
    return robot


def drawing(robot: Robot, folder: Path) -> Any:
    build_artifact(with_task(robot), folder)
    return modelgen.load(robot.name, backend="casadi", directory=folder).drawing


def lengths(segments: np.ndarray) -> np.ndarray:
    return np.linalg.norm(segments[..., 1, :] - segments[..., 0, :], axis=-1)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_shipped_robot_is_drawn_within_its_view(name: str) -> None:
    robot = shipped(name)
    limits = np.asarray(robot.state_limits)
    x = np.random.default_rng(1).uniform(-limits, limits, (20, len(limits)))
    on_sphere(x, [rotation.quaternion for rotation in robot.metadata.rotations])
    segments = robot.drawing.segments(x)
    if name == "satellite":  # the only one without a drawing
        assert segments.shape[1] == 0
        return
    assert segments.shape[0] == 20
    assert segments.shape[2:] == (2, 2)
    assert np.isfinite(segments).all()
    left, right, bottom, top = robot.drawing.view
    assert left < right
    assert bottom < top
    size = max(right - left, top - bottom)
    assert segments[..., 0].min() > left - 0.1 * size
    assert segments[..., 1].max() < top + 0.1 * size
    if name not in ("furuta", "quadrotor"):  # they turn out of the plane of the picture
        assert np.ptp(lengths(segments), axis=0).max() < 1e-12  # rigid


def test_cartpole_is_a_rail_a_cart_and_a_pole() -> None:
    robot = shipped("cartpole")
    x = np.array([[0.1, np.pi / 2, 0, 0], [-0.2, np.pi, 1, 1]])
    theta = np.tile(robot.nominal_parameters, (2, 1))
    theta[1, 2] = 0.25  # the pole's half length
    segments = robot.drawing.segments(x, theta)
    np.testing.assert_allclose(segments[:, 0], [[[-0.6, 0], [0.6, 0]]] * 2)
    assert segments.shape[1] == 6
    np.testing.assert_allclose(segments[:, 1:5].mean(axis=(1, 2)), [[0.1, 0], [-0.2, 0]], atol=1e-15)
    np.testing.assert_allclose(segments[:, 5], [[[0.1, 0], [0.1 + 0.3365, 0]], [[-0.2, 0], [-0.2, -0.5]]], atol=1e-15)
    assert_close(robot.drawing.segments(x, theta[0])[0], segments[0])


def test_the_view_of_a_body_in_space_is_as_large_as_its_reach(tmp_path: Path) -> None:
    """Quaternions of its samples have the length one: longer ones would stretch the rod."""
    robot = Robot("gyro")
    joint = robot.ball("attitude", rate_limit=1)
    robot.link("rod", joint, mass=1, inertia=1)
    tip = joint.rotation * Matrix([0, 0, 1])
    robot.draw(line=[(0, 0), (tip[0], tip[2])])
    robot.apply(joint.turn[0], robot.input("torque", 1, "N m"))
    task: dict[str, Any] = {
        "action_cost": Quadratic(1),
        "start": {},
        "horizon": 5,
        "weight_at_horizon": 0.65,
        "control_rate": 125,
    }
    robot.task(state_cost=joint.away().dot(joint.away()), **task)
    build_artifact(robot, tmp_path)
    view = modelgen.load("gyro", backend="casadi", directory=tmp_path).drawing.view
    assert 0.9 < np.abs(view).min() <= np.abs(view).max() < 1.2


def test_depth_goes_to_the_right_and_up() -> None:
    segments = shipped("furuta").drawing.segments([[np.pi / 2, 0, 0, 0]])  # the arm points away
    arm = segments[0, 1]
    np.testing.assert_allclose(arm[1] - arm[0], 0.085 * np.array([0.35, 0.35]))
    np.testing.assert_allclose(segments[0, 2, 1] - arm[1], [0, 0.129], atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("links", [False, True])
def test_without_a_statement_rods_are_drawn_where_they_are(links: bool, tmp_path: Path) -> None:
    segments = drawing(two_rods(links=links), tmp_path).segments([[0.4, 0.5, 0, 0]])
    elbow = 0.5 * np.array([np.sin(0.4), np.cos(0.4)])
    end = elbow + 0.5 * np.array([np.sin(0.9), np.cos(0.9)])
    np.testing.assert_allclose(segments, np.array([[[[0, 0], elbow], [elbow, end]]]), atol=1e-15)


@pytest.mark.slow
def test_point_masses_are_joined(tmp_path: Path) -> None:
    robot = Robot("crane")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    swing = robot.revolute("swing", continuous=True, rate_limit=5)
    robot.point_mass(1, (s, 0))
    robot.point_mass(1, (s + sin(swing), -cos(swing)))
    robot.apply(s, robot.input("force", 5, "N"))
    np.testing.assert_allclose(drawing(robot, tmp_path).segments([[0.5, 0, 0, 0]]), [[[[0.5, 0], [0.5, -1]]]])


@pytest.mark.slow
def test_every_parameter_is_drawn_where_it_is_given(tmp_path: Path) -> None:
    robot = Robot("ellipse")
    q = robot.revolute("q", continuous=True, rate_limit=2)
    width, mass, height = (
        robot.parameter(*one, tolerance=0.5) for one in (("width", 1, "m"), ("mass", 1, "kg"), ("height", 1, "m"))
    )
    bob = (width * sin(q), height * cos(q))
    robot.point_mass(mass, bob)
    robot.draw(line=((0, 0), bob))
    robot.apply(q, robot.input("torque", 5, "N m"))
    segments = drawing(robot, tmp_path).segments([[np.pi / 6, 0.0]], np.array([0.3, 4.0, 0.7]))
    np.testing.assert_allclose(segments, np.array([[[[0, 0], [0.15, 0.7 * 3**0.5 / 2]]]]))


def test_energies_alone_say_nothing_of_a_place(tmp_path: Path) -> None:
    robot = Robot("energies")
    s = robot.prismatic("s", limit=1, rate_limit=2)
    robot.kinetic_energy(s.rate**2)
    robot.apply(s, robot.input("force", 5, "N"))
    nothing = drawing(robot, tmp_path)
    assert nothing.segments(np.zeros((3, 2))).shape == (3, 0, 2, 2)
    assert nothing.view[0] < nothing.view[1]


@pytest.mark.slow
def test_shapes_lean_to_the_right(tmp_path: Path) -> None:
    robot = two_rods()
    first = robot.joints[0].symbol
    robot.draw(box=((1, 2), (0.4, 0.2), first))
    robot.draw(circle=((1, 2), 0.5, first))
    segments = drawing(robot, tmp_path).segments([[np.pi / 2, 0, 0, 0]])[0]
    box, rim, spoke = segments[:4], segments[4:20], segments[20]
    assert np.abs(box - [1, 2]).max(axis=(0, 1)) == pytest.approx([0.1, 0.2])  # lies on its side
    np.testing.assert_allclose(np.linalg.norm(rim - [1, 2], axis=-1), 0.5)
    np.testing.assert_allclose(np.roll(rim[:, 0], -1, axis=0), rim[:, 1])
    np.testing.assert_allclose(spoke, np.array([[1, 2], [1.5, 2]]), atol=1e-15)


@pytest.mark.slow
def test_an_edited_drawing_makes_the_artifact_stale(tmp_path: Path) -> None:
    before = content_hash(with_task(two_rods()))
    robot = two_rods()
    robot.draw(line=[(0, 0), (1, 1)])
    assert content_hash(with_task(robot)) != before
    build_artifact(robot, tmp_path)
    file = next((tmp_path / "rods").glob("program_*.json"))
    file.write_text(file.read_text().replace("1.0", "2.0"))
    assert "was edited" in artifact.check("rods", tmp_path)[0]
    with pytest.raises(ModelError, match=file.name):
        modelgen.load("rods", backend="casadi", directory=tmp_path)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({}, "is not one shape"),
        ({"lines": [(0, 0), (1, 1)]}, "Did you mean `line`"),
        ({"line": [(0, 0), (1, 1)], "circle": ((0, 0), 1)}, "is not one shape"),
        ({"line": [(0, 0)]}, "at least two points"),
        ({"line": [(0, 0), 3]}, r"the point is 3; write \(x, height\)"),
        ({"line": [(0, 0), ("a", 1)]}, "the point of a drawing is 'a'"),
        ({"box": (0, 0)}, "the size of the box is 0"),
        ({"box": ((0, 0), (1, 1), 0, 0)}, "write box="),
        ({"circle": ((0, 0),)}, "write circle="),
        ({"circle": ((0, 0), float("nan"))}, "not finite"),
    ],
)
def test_a_wrong_drawing_is_explained(shape: dict[str, Any], words: str) -> None:
    robot = two_rods()
    with pytest.raises(ModelError, match=words) as caught:
        robot.draw(**shape)
    assert caught.value.place
    assert caught.value.place.file.endswith("test_drawing.py")


def test_a_shape_without_its_name_is_explained() -> None:
    with pytest.raises(ModelError, match=r"draw\(\(0, 0\), \(1, 1\)\).*robot\.draw\(line="):
        two_rods().draw((0, 0), (1, 1))


def test_a_drawing_depends_on_coordinates_and_parameters_only() -> None:
    robot = two_rods()
    with pytest.raises(ModelError, match="contains `torque`"):
        robot.draw(line=[(0, 0), (robot.inputs[0].symbol, 1)])


def test_a_wrong_state_is_explained() -> None:
    with pytest.raises(ModelError, match=r"`x` .*\(3,\)"):
        shipped("pendulum").drawing.segments(np.zeros(3))
    with pytest.raises(ModelError, match="`x` is a masked array"):
        shipped("pendulum").drawing.segments(np.ma.array([0.5, 1.0], mask=[True, False]))
    with pytest.raises(ModelError, match=r"`theta` .*2"):
        shipped("pendulum").drawing.segments(np.zeros((3, 2)), np.ones((2, 2)))
