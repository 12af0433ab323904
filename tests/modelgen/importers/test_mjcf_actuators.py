"""Servos, motors and rotors of an MJCF: their inputs, limits and forces, beside MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.modelgen.importers.test_mjcf import MASS, MOTORS, Machine, arm

mujoco = pytest.importorskip("mujoco")


@pytest.mark.slow
def test_a_servo_with_a_limited_force_is_commanded_by_its_force(tmp_path: Path) -> None:
    """Its force is clamped, which is not affine. Within the limits each force is that of some command."""
    servos = (
        '<position name="first" joint="shoulder" kp="300" kv="20" ctrlrange="-2 2" forcerange="-12 7" gear="2"/>'
        '<position name="second" joint="elbow" kp="300" ctrlrange="-2 2"/>'
    )
    body = arm(elbow='actuatorfrcrange="-3 3"')
    machine = Machine(tmp_path, body, servos)
    assert machine.ranges == [(-12, 7), (-3, 3)]
    assert machine.robot.inputs[0].unit == "N m"
    assert any("--command" in warning for warning in machine.warnings)
    assert "spring" not in machine.text
    machine.moves_as_in_mujoco()
    kept = Machine(tmp_path, body, servos, command=["*"])
    assert kept.ranges == [(-2, 2), (-2, 2)]
    assert kept.robot.inputs[0].unit == "rad"
    kept.moves_as_in_mujoco()


def test_a_stiff_servo_raises_the_control_rate(tmp_path: Path) -> None:
    """The joint alone has 0.66 kg m^2: 12 000 1/s with 8 000 N m s. Half of the 64 steps of a period resolve it."""
    servos = '<position name="first" joint="shoulder" kp="90" kv="KV" ctrlrange="-1 1"/>'
    for damping, rate in (("20", 250), ("8000", 500), ("80000", 4000)):
        machine = Machine(tmp_path, arm(), servos.replace("KV", damping))
        assert f"control_rate={rate}," in machine.text


def test_a_motor_has_the_narrower_of_its_limits(tmp_path: Path) -> None:
    motors = (
        '<general name="first" joint="shoulder" gainprm="-2" ctrlrange="-9 9" forcerange="-4 10"/>'
        '<motor name="second" joint="elbow" gear="10"/>'
    )
    machine = Machine(tmp_path, arm(elbow='actuatorfrcrange="-5 6"'), motors)
    np.testing.assert_allclose(machine.ranges, [(-5, 2), (-0.5, 0.6)])
    machine = Machine(tmp_path, arm(), motors)
    assert any("second: neither control nor force has a limit" in warning for warning in machine.warnings)


def test_the_force_of_a_tendon_is_limited_before_the_gear(tmp_path: Path) -> None:
    """MuJoCo divides the limit of a joint by the gear of its actuator, and not that of a tendon."""
    tendon = (
        '<tendon><fixed name="cable" actuatorfrcrange="-2 3"><joint joint="shoulder" coef="1"/>'
        '<joint joint="elbow" coef="3"/></fixed></tendon>'
    )
    machine = Machine(tmp_path, arm(), '<motor name="pull" tendon="cable" gear="5" ctrlrange="-9 9"/>', tendon)
    model = mujoco.MjModel.from_xml_path(str(machine.path))
    data, forces = mujoco.MjData(model), list[float]()
    for data.ctrl[0] in (-9, 9):
        mujoco.mj_forward(model, data)
        forces.append(float(data.actuator_force[0]))
    np.testing.assert_allclose(machine.ranges, [forces])


def test_a_limit_of_the_sum_of_two_actuators_is_named(tmp_path: Path) -> None:
    """MuJoCo limits what both do to the joint; a model file limits each of them."""
    both = MOTORS + '<motor name="third" joint="elbow" ctrlrange="-9 9"/>'
    for motors, named in ((MOTORS, 0), (both, 1)):
        machine = Machine(tmp_path, arm(elbow='actuatorfrcrange="-5 6"'), motors)
        assert sum("several actuators" in warning for warning in machine.warnings) == named


def test_limits_that_a_flag_disables_are_none(tmp_path: Path) -> None:
    flags = '<option><flag clampctrl="disable" limit="disable"/></option>'
    machine = Machine(tmp_path, arm(), MOTORS.replace('"first"', '"first" forcerange="-30 40"'), flags)
    assert machine.ranges[0] == (-30, 40)
    assert any("second: neither control nor force has a limit" in warning for warning in machine.warnings)
    assert machine.text.count("continuous=True") == 2


@pytest.mark.slow
def test_rotors_at_sites_push(tmp_path: Path) -> None:
    drone = f"""<body name="drone" pos="0 0 0.3" euler="0 0 40"><freejoint name="free"/>{MASS}
      <site name="left" pos="0.1 0.2 0" euler="10 20 0"/><site name="right" pos="0.1 -0.2 0.1"/></body>"""
    machine = Machine(
        tmp_path,
        drone,
        '<motor name="first" site="left" gear="0 0 1 0 0 -0.02" ctrlrange="0 13"/>'
        '<general name="second" site="right" gainprm="2.5" gear="0.5 0 0 0 1 0" ctrlrange="-1 3"/>',
        '<option gravity="0 3 -9"/>',
    )
    assert machine.ranges == [(0, 13), (-1, 3)]
    machine.moves_as_in_mujoco()


@pytest.mark.slow
def test_passive_joints_and_actuators_get_no_input(tmp_path: Path) -> None:
    for pattern in ("elbow", "second"):
        machine = Machine(tmp_path, arm(), MOTORS.replace("/>", ' damping="0.6" armature="0.2"/>'), passive=[pattern])
        assert [declared.symbol.name for declared in machine.robot.inputs] == ["first"]
        machine.moves_as_in_mujoco()
