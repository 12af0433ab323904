"""What a model file may say of ball and floating joints, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, pi, sin
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from modelgen import ModelError, Quadratic, Robot
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.description import metadata
from modelgen.derivation.domain_checks import check_domain


def satellite(more: Callable[[Robot, Any], Any] = lambda *_: None, **changes: Any) -> Robot:
    """more: adds lines before the task, and may return a state cost."""
    robot = Robot("body", "A body that turns")
    torque = robot.input("torque", 1, "N m")
    attitude = robot.ball("attitude", rate_limit=(1, 2, 3), **changes.pop("joint", {}))
    robot.link("body", attitude, inertia=(1, 2, 1.5))
    robot.apply(attitude.turn[0], torque)
    if cost := more(robot, attitude):
        changes["state_cost"] = cost
    task: dict[str, Any] = dict(
        state_cost=attitude.away().dot(attitude.away()) + attitude.rate.dot(attitude.rate),
        action_cost=Quadratic(1),
        start={},
        horizon=2,
        weight_at_horizon=0.5,
        control_rate=50,
    )
    robot.task(**task | changes)
    return robot


def test_the_description_names_the_quaternion_and_its_speeds() -> None:
    described = metadata(satellite(joint=dict(limit=1.5)))
    names = [state.name for state in described.states]
    assert names[:4] == [f"attitude_q{axis}" for axis in "wxyz"]
    assert names[4:] == [f"attitude_turn_{axis}_rate" for axis in "xyz"]
    (rotation,) = described.rotations
    assert (described.nq, described.nv, rotation.limit) == (4, 3, 1.5)
    assert names[rotation.quaternion] == names[:4]
    assert names[rotation.speeds] == names[4:]
    assert [state.limit for state in described.states[4:]] == [1, 2, 3]
    assert described.inputs[0].coordinate == "attitude_turn_x"
    assert described.task.target == (1, 0, 0, 0, 0, 0, 0)


def test_a_target_is_roll_pitch_and_yaw() -> None:
    angles = (0.3, -0.4, 0.5)
    robot = Robot("body")
    attitude = robot.ball("attitude", rate_limit=1)
    expected = Rotation.from_euler("xyz", angles).as_quat(scalar_first=True)
    away = attitude.away(angles).xreplace(dict(zip(attitude.quaternion, expected, strict=True)))
    np.testing.assert_allclose(np.array(away, float), 0, atol=1e-15)
    turned = Rotation.from_euler("xyz", angles) * Rotation.from_rotvec([0, 0.2, 0])
    away = attitude.away(angles).xreplace(
        dict(zip(attitude.quaternion, turned.as_quat(scalar_first=True), strict=True))
    )
    np.testing.assert_allclose(np.array(away, float).ravel(), [0, 2 * sin(0.1), 0], atol=1e-15)
    rotation = attitude.rotation.xreplace(dict(zip(attitude.quaternion, expected, strict=True)))
    np.testing.assert_allclose(np.array(rotation, float), Rotation.from_euler("xyz", angles).as_matrix(), atol=1e-15)


def test_starts_and_free_states_name_the_joint() -> None:
    robot = satellite(start=dict(attitude=((0, 0, pi), 0.5)), free=["attitude_turn_z_rate"])
    task = metadata(robot).task
    np.testing.assert_allclose(task.start_mean[:4], [cos(pi / 2), 0, 0, 1], atol=1e-15)
    assert task.start_deviation[:4] == (0.5,) * 4
    assert metadata(satellite(free=["attitude"])).task.free == tuple(f"attitude_q{axis}" for axis in "wxyz")


def spring_on_a_turn(robot: Robot, joint: Any) -> None:
    robot.spring(joint.turn[0], 1.0)


def rotor_on_a_turn(robot: Robot, joint: Any) -> None:
    robot.rotor(joint.turn[0], 1.0)


def squared_turn(robot: Robot, joint: Any) -> None:
    robot.damp(joint.turn[0] ** 2, 1.0)


def turn_in_a_force(robot: Robot, joint: Any) -> None:
    robot.apply(joint.turn[0], joint.turn[1])


def second_link(robot: Robot, joint: Any) -> None:
    robot.link("one", joint, mass=1)
    robot.link("two", joint, mass=1)


def foreign_joint(robot: Robot, _: Any) -> None:
    robot.link("one", Robot("other").ball("foreign", rate_limit=1), mass=1)


def unmoved_push(robot: Robot, _: Any) -> None:
    robot.push(robot.link("ground"), (0, 0, 1))


def test_a_push_may_be_a_state_of_first_order() -> None:
    robot = Robot("rocket")
    body = robot.link("body", robot.ball("attitude", rate_limit=1), mass=1)
    thrust = robot.state("thrust", limit=9, unit="N")
    robot.push(body, (0, 0, thrust), at=(0.1, 0, 0))
    assert [thrust in load.force.free_symbols for load in robot.loads] == [True]


def push_on_nothing(robot: Robot, joint: Any) -> None:
    robot.push(joint, (0, 0, 1))


def push_by_a_turn(robot: Robot, joint: Any) -> None:
    robot.push(robot.link("one", joint, mass=1), (0, 0, joint.turn[0]))


def push_in_volts(robot: Robot, joint: Any) -> None:
    volts = robot.input("volts", 1, "V")
    robot.push(robot.link("one", joint, mass=1), (0, 0, volts))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (spring_on_a_turn, "which is no state: three turns are not three angles"),
        (rotor_on_a_turn, "which is no state"),
        (squared_turn, "is not linear in"),
        (turn_in_a_force, "attitude_turn_y`; it may depend on states, inputs and parameters"),
        (second_link, "moves the link `one` already"),
        (foreign_joint, "belongs to another robot"),
        (unmoved_push, "no joint moves the link `ground`"),
        (push_on_nothing, "which is not a link of this robot"),
        (push_in_volts, "force on `one`"),
        (push_by_a_turn, "A turn is no state: write the joint's `rotation`"),
    ],
)
def test_what_a_line_must_not_say(wrong: Callable[[Robot, Any], None], words: str) -> None:
    robot = Robot("body")
    with pytest.raises(ModelError, match=words):
        wrong(robot, robot.ball("attitude", rate_limit=1))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(target=dict(attitude=1.0)), r"write \(roll, pitch, yaw\)"),
        (dict(target=dict(attitude_qw=1.0)), "`attitude_qw` has a value alone"),
        (dict(start=dict(attitude=(0, 0, 0))), r"write attitude=\(\(roll, pitch, yaw\), deviation\)"),
        (dict(start=dict(attitude=((0, 0, 0), 4.0))), "outside its limit"),
        (dict(start=dict(attitude=((0, 0, 0), -1.0))), "write a number >= 0"),
        (dict(joint=dict(limit=4.0)), "write 3.14159 at most"),
        (dict(free=["attitud"]), "Did you mean"),
    ],
)
def test_what_a_task_must_not_say(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        satellite(**changes)


def test_three_limits_are_one_number_or_three() -> None:
    with pytest.raises(ModelError, match=r"`attitude` .*2 "):
        Robot("body").ball("attitude", rate_limit=(1, 2))
    robot = Robot("body")
    robot.prismatic("base_x", limit=1, rate_limit=1)
    with pytest.raises(ModelError, match="`base_x`"):
        robot.floating("base", limit=1, rate_limit=1, turn_rate_limit=1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (lambda robot, joint: robot.apply(joint.turn[0], -1.0 * joint.quaternion[1]), "equations depend on the sign"),
        (lambda robot, joint: robot.apply(joint.turn[1], -1.0 * joint.away()[0]), "equations depend on the sign"),
        (lambda robot, joint: robot.potential_energy(1.0 * joint.quaternion[1]), "equations depend on the sign"),
        (lambda _, joint: 1 - joint.quaternion[0], "state cost depends on the sign"),
    ],
)
def test_both_quaternions_of_a_rotation_are_the_same_pose(more: Callable[[Robot, Any], Any], words: str) -> None:
    robot = satellite(more)
    with pytest.raises(ModelError, match=f"{words} of the quaternion of `attitude`"):
        check_domain(robot, equations_of_motion(robot))


def test_forces_by_the_rotation_matrix_pass() -> None:
    robot = satellite(lambda robot, joint: robot.potential_energy(1.0 * joint.rotation[2, 2]))
    check_domain(robot, equations_of_motion(robot))


def test_displacements_of_a_floating_joint_are_a_vector() -> None:
    robot = Robot("body")
    base = robot.floating("base", limit=3, rate_limit=6, turn_rate_limit=6)
    assert base.position.dot(base.velocity) == sum(entry * entry.rate for entry in base.position)
    robot.point_mass(2.0, base.position)
    robot.point("tip", base.position + base.rotation[:, 2])
    assert robot.masses == [list(base.position)]
