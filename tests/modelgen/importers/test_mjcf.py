"""An imported MJCF moves as in MuJoCo: one small file for each feature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from sympy import Matrix

from modelgen import ModelError, Robot
from modelgen.arrays import Array
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import load
from modelgen.derivation.numeric import compiled_evaluator, samples
from modelgen.importers.mjcf import model_file, read
from tests.modelgen.importers.mjcf_check import ImportedMjcf

mujoco = pytest.importorskip("mujoco")

CLOSE = 1e-8  # of the largest acceleration
MASS = '<inertial pos="0.1 0.02 -0.2" mass="2" diaginertia="0.3 0.2 0.25" euler="20 -30 10"/>'
OTHER = '<inertial pos="-0.1 0.1 0.15" mass="1.5" fullinertia="0.2 0.3 0.25 0.01 -0.02 0.03"/>'
ARM = f"""<body name="upper" pos="0.1 0.2 0.9" euler="10 20 30">
  <joint name="shoulder" axis="1 2 0" pos="0.05 0 0.1" range="-100 100" SHOULDER/>{MASS}
  <body name="lower" pos="0.3 0 -0.1" quat="0.9 0.1 -0.3 0.2">
    <joint name="elbow" axis="0 1 0.3" range="-120 120" ELBOW/>{OTHER}</body></body>"""
MOTORS = '<motor name="first" joint="shoulder" ctrlrange="-20 20"/><motor name="second" joint="elbow" ctrlrange="0 9"/>'
FREE = f"""<body name="base" pos="0 0 1" euler="0 0 90"><freejoint/>{MASS}
  <body name="leg"><joint name="hip" axis="0 1 0" range="-60 60"/>{OTHER}</body></body>"""


def arm(shoulder: str = "", elbow: str = "") -> str:
    return ARM.replace("SHOULDER", shoulder).replace("ELBOW", elbow)


class Machine:
    """An MJCF with these parts, imported and loaded."""

    def __init__(self, folder: Path, body: str, actuators: str = MOTORS, more: str = "", **options: Sequence[str]):
        self.path, self.warnings = folder / "machine.xml", list[str]()
        self.path.write_text(
            f"<mujoco>{more}<worldbody>{body}</worldbody>\n<actuator>\n{actuators}\n</actuator></mujoco>"
        )
        self.text = model_file(self.path, "machine", warn=self.warnings.append, **options)
        self.imported = ImportedMjcf(read(self.path, **options))  # type: ignore[arg-type]
        (folder / "machine.py").write_text(self.text)
        self.robot: Robot = load(str(folder / "machine.py"))
        self.coordinates = [joint.symbol.name for joint in self.robot.joints]
        self.ranges = [declared.range for declared in self.robot.inputs]

    def draw(self, count: int = 8) -> tuple[Array, Array]:
        """States and inputs within the limits."""
        lower, upper = np.array(self.ranges).T
        x, _ = samples(self.robot, count)
        return x, np.random.default_rng(0).uniform(lower, upper, (count, len(lower)))

    def acceleration(self, x: Array, u: Array) -> Array:
        """vdot of the model file, at nominal parameters."""
        equations = equations_of_motion(self.robot)
        check_domain(self.robot, equations)
        theta = [parameter.value for parameter in self.robot.parameters if not parameter.fixed]
        parts = Matrix.hstack(equations.mass_matrix, equations.force, equations.input_matrix)
        values = compiled_evaluator([*equations.state, *equations.parameters], parts, equations.definitions)
        M, force, gain = np.split(values(np.hstack([x, np.tile(theta, (len(x), 1))])), [n := parts.rows, n + 1], 2)
        return np.asarray(np.linalg.solve(M, force + gain @ u[:, :, None])[:, :, 0])

    def moves_as_in_mujoco(self) -> None:
        """The accelerations are those of MuJoCo's model of the file, as the importer maps states and inputs."""
        x, u = self.draw()
        agree(self.acceleration(x, u), self.imported.acceleration(x, u))

    def moves_as_the_plain_file(self) -> None:
        """The accelerations are MuJoCo's qacc, with the coordinates as qpos and the inputs as ctrl."""
        model = mujoco.MjModel.from_xml_path(str(self.path))
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        data, (x, u) = mujoco.MjData(model), self.draw()
        expected = np.empty((len(x), model.nv))
        for row, (state, inputs) in enumerate(zip(x, u, strict=True)):
            data.qpos, data.qvel, data.ctrl[: len(inputs)] = state[: model.nq], state[model.nq :], inputs
            mujoco.mj_forward(model, data)
            expected[row] = data.qacc
        agree(self.acceleration(x, u), expected)
        agree(self.imported.acceleration(x, u), expected)


def agree(ours: Array, theirs: Array) -> None:
    assert np.isfinite(theirs).all()
    assert np.abs(theirs).max(axis=0).min() > 1e-3
    assert (np.abs(ours - theirs).max(axis=0) / np.abs(theirs).max(axis=0)).max() < CLOSE


PLAIN = {
    "armature, damping, and gravity along another axis": (
        arm('armature="0.3" damping="0.7"', 'armature="0.1"'),
        MOTORS,
        '<option gravity="3 -7 2"/>',
    ),
    "damping, springs, friction and couplings that a flag disables": (
        arm('stiffness="20" springref="30" damping="0.7" frictionloss="2"', 'damping="0.2"').replace(
            "<body ", '<body gravcomp="0.75" '
        ),
        MOTORS,
        '<option><flag damper="disable" spring="disable" frictionloss="disable" equality="disable"/></option>'
        '<equality><joint joint1="elbow" joint2="shoulder"/></equality>',
    ),
    "no damping, but a spring": (
        arm('stiffness="20" damping="0.7"', 'damping="0.2"'),
        MOTORS.replace("first", 'first" damping="0.4'),
        '<option><flag damper="disable" constraint="disable"/></option>',
    ),
    "an actuator whose group is disabled, and no gravity": (
        arm(),
        MOTORS + '<position joint="elbow" kp="9" damping="0.4" armature="0.3" group="2"/>',
        '<option actuatorgroupdisable="2"><flag gravity="disable"/></option>',
    ),
    "reference position": (arm('ref="40"', 'ref="-30" stiffness="5" springref="10"'), MOTORS, ""),
    "defaults and classes": (
        f'<body childclass="stiff">{MASS}<joint name="shoulder" axis="0 1 0"/><body pos="0 0 1">{OTHER}'
        '<joint name="elbow" axis="0 1 0" class="loose"/></body></body>',
        MOTORS,
        '<default><default class="stiff"><joint damping="3" range="-90 90"/><default class="loose">'
        '<joint damping="0.1"/></default></default></default>',
    ),
    "mass from geoms": (
        '<body pos="0 0 1"><joint name="shoulder" axis="0 1 0" range="-90 90"/><geom type="capsule" size="0.05" '
        'fromto="0 0 0 0.3 0.1 0.6"/><body pos="0.3 0.1 0.6"><joint name="elbow" axis="1 0 0" range="-90 90"/>'
        '<geom type="box" size="0.1 0.2 0.05" pos="0.1 0 0" euler="10 20 30" mass="0.7"/></body></body>',
        MOTORS,
        "",
    ),
    "several joints of one body, and a fixed body": (
        f'<body pos="0.1 0 0.5" euler="10 0 20"><joint name="rail" type="slide" axis="1 0 1" range="-2 2"/>'
        f'<joint name="shoulder" axis="0 1 0" pos="0.1 0 0.2" range="-90 90"/>{MASS}'
        f'<joint name="elbow" axis="1 0 1" pos="-0.1 0.3 0.2" range="-70 70"/>'
        f'<body pos="0.2 0.1 0" euler="30 0 0">{OTHER}</body></body>',
        f'<motor name="push" joint="rail" ctrlrange="-5 5"/>{MOTORS}',
        "",
    ),
    "a servo whose force limit cannot bind, and a gain with a gear": (
        arm(),
        '<position name="first" joint="shoulder" kp="3" ctrlrange="-1 1" forcerange="-50 50"/>'
        '<general name="second" joint="elbow" gear="-3" gainprm="2.5" ctrlrange="-2 7"/>',
        "",
    ),
    "a velocity servo with a gain of one": (
        arm(),
        '<velocity name="first" joint="shoulder" kv="1" ctrlrange="-3 3"/>'
        '<motor name="second" joint="elbow" ctrlrange="-9 9"/>',
        "",
    ),
    "a position servo and a velocity servo": (
        arm(),
        '<position name="first" joint="shoulder" kp="30" kv="2" ctrlrange="-1 1" gear="2"/>'
        '<velocity name="second" joint="elbow" kv="4" ctrlrange="-3 3" gear="-1.5"/>',
        "",
    ),
    "a general affine actuator": (
        arm(),
        f'<general name="first" joint="shoulder" biastype="affine" gainprm="7" biasprm="1.5 -12 -0.5" '
        f'ctrlrange="-1 2"/>{MOTORS[MOTORS.index("<", 1) :]}',
        "",
    ),
    "an actuator of a tendon": (
        arm(),
        '<position name="first" tendon="both" kp="4" ctrlrange="-1 1"/>'
        '<motor name="second" joint="elbow" ctrlrange="-9 9"/>',
        '<tendon><fixed name="both" stiffness="6" springlength="0.2" damping="0.3" armature="0.2">'
        '<joint joint="shoulder" coef="0.5"/><joint joint="elbow" coef="-2"/></fixed></tendon>',
    ),
    "gravity compensation of all bodies, and the spring of an endless joint": (
        arm().replace('range="-100 100"', 'stiffness="3"').replace("<body ", '<body gravcomp="0.75" '),
        MOTORS,
        "",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("feature", PLAIN)
def test_a_file_moves_as_in_mujoco(tmp_path: Path, feature: str) -> None:
    Machine(tmp_path, *PLAIN[feature]).moves_as_the_plain_file()


@pytest.mark.slow
def test_a_range_whose_middle_is_not_zero_is_measured_from_the_middle(tmp_path: Path) -> None:
    """Range, spring, servo and tendon are those of the file, at another zero."""
    machine = Machine(
        tmp_path,
        arm('stiffness="20" springref="30"').replace('range="-120 120"', 'range="20 140"'),
        '<position name="first" joint="elbow" kp="30" ctrlrange="-1 1"/>'
        '<motor name="second" joint="shoulder" ctrlrange="-9 9"/>',
        '<tendon><fixed name="both" stiffness="6"><joint joint="shoulder" coef="0.5"/>'
        '<joint joint="elbow" coef="-2"/></fixed></tendon>',
    )
    assert machine.robot.joints[1].limit == pytest.approx(np.pi / 3)
    assert "elbow is measured from 1.3962634016, the middle of its range 0.349066 ... 2.44346." in machine.text
    assert any("elbow from 1.39626" in warning for warning in machine.warnings)
    machine.moves_as_in_mujoco()


@pytest.mark.slow
def test_dry_friction_is_smoothed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, arm('frictionloss="0.4"', 'frictionloss="900"'))
    assert "robot.dry_friction(shoulder, shoulder_friction, smoothing=0.01)" in machine.text
    assert any("dry friction of elbow" in warning for warning in machine.warnings)
    machine.moves_as_in_mujoco()


@pytest.mark.parametrize(
    ("polycoef", "lines"),
    [
        ("0.3 2 0 0 0", "robot.coupling(elbow - 0.3, shoulder, ratio=2, "),
        ("0.1 0.5 0.2 0 0", "robot.coupling(elbow, 0.1 + 0.5 * (shoulder) + 0.2 * (shoulder)**2, "),
    ],
)
@pytest.mark.slow
def test_an_equality_of_joints_is_a_coupling(tmp_path: Path, polycoef: str, lines: str) -> None:
    equality = f'<equality><joint joint1="elbow" joint2="shoulder" polycoef="{polycoef}"/></equality>'
    machine = Machine(tmp_path, arm(), MOTORS[: MOTORS.index("/>") + 2], equality)
    assert lines in machine.text
    assert any("follow others (<equality>): elbow;" in warning for warning in machine.warnings)
    machine.moves_as_in_mujoco()


def test_couplings_of_tendons_and_of_joints_that_turn_without_end(tmp_path: Path) -> None:
    wheels = (
        f'<body><joint name="one" axis="0 0 1"/>{MASS}</body><body pos="1 0 0"><joint name="two" axis="0 0 1"/>{OTHER}'
        f'</body><body pos="0 2 0"><joint name="slide" type="slide" axis="1 0 1" range="-1 1"/>{MASS}</body>'
    )
    machine = Machine(
        tmp_path,
        wheels,
        '<motor name="turn" joint="one" ctrlrange="-1 1"/>',
        '<tendon><fixed name="all"><joint joint="slide" coef="3"/></fixed></tendon>'
        '<equality><joint joint1="two" joint2="one" polycoef="0.1 -2 0 0 0"/>'
        '<tendon tendon1="all" polycoef="0.3 0 0 0 0"/></equality>',
    )
    assert machine.text.count("continuous=True") == 2
    assert "* (1 - cos(two + 2 * one - 0.1)))" in machine.text
    assert "robot.spring(3.0 * slide, " in machine.text
    machine.moves_as_in_mujoco()


def test_a_joint_that_turns_without_end_follows_by_a_ratio_with_all_its_digits(tmp_path: Path) -> None:
    equality = '<equality><joint joint1="elbow" joint2="shoulder" polycoef="0 -0.3333333333 0 0 0"/></equality>'
    body = arm().replace('range="-120 120"', "")
    machine = Machine(tmp_path, body, MOTORS[: MOTORS.index("/>") + 2], equality)
    assert "* (1 - cos(elbow + 0.3333333333 * shoulder)))" in machine.text


@pytest.mark.slow
def test_a_free_base_floats_in_space_or_in_the_vertical_plane_or_is_held(tmp_path: Path) -> None:
    motor = '<motor name="drive" joint="hip" ctrlrange="-20 20"/>'
    free = Machine(tmp_path, FREE, motor)
    assert free.coordinates[:4] == ["base_joint_x", "base_joint_y", "base_joint_z", "base_joint_qw"]
    free.moves_as_in_mujoco()
    held = Machine(tmp_path, FREE, motor, fixed=["base_joint"])
    assert held.coordinates == ["hip"]
    held.moves_as_in_mujoco()
    planar = Machine(tmp_path, FREE, motor, planar=["base"])
    assert planar.coordinates == ["base_joint_x", "base_joint_height", "base_joint_pitch", "hip"]
    planar.moves_as_in_mujoco()


@pytest.mark.slow
def test_a_ball_joint_with_damping_and_a_range(tmp_path: Path) -> None:
    ball = (
        f'<body pos="0.1 0 1" euler="0 30 0"><joint name="wrist" type="ball" pos="0.1 0 0.2" damping="0.4" '
        f'range="0 100"/>{MASS}{arm().replace("pos=", "pos=", 1)}</body>'
    )
    machine = Machine(tmp_path, ball)
    assert 'wrist = robot.ball("wrist", rate_limit=10, limit=1.7453' in machine.text
    machine.moves_as_in_mujoco()


@pytest.mark.slow
def test_joints_of_fix_stay_in_their_reference_position(tmp_path: Path) -> None:
    more = (
        '<tendon><fixed name="both" stiffness="6" springlength="0.2"><joint joint="shoulder" coef="0.5"/>'
        '<joint joint="elbow" coef="-2"/></fixed></tendon>'
    )
    servo = '<position name="first" tendon="both" kp="4" ctrlrange="-1 1"/>'
    machine = Machine(tmp_path, arm(elbow='ref="40"'), servo, more, fixed=["elb*"])
    assert machine.coordinates == ["shoulder"]
    machine.moves_as_in_mujoco()


def test_what_is_not_carried_over_is_listed_once_with_lines(tmp_path: Path) -> None:
    body = arm().replace("</body></body>", '<site name="tip" pos="0 0 1"/>\n<geom size="0.1"/>\n<geom size="0.2"/>')
    machine = Machine(
        tmp_path,
        f'<site name="anchor"/>{body}</body></body>',
        f'{MOTORS}\n<general site="tip" refsite="anchor" gear="1 0 0 0 0 0"/>\n<muscle tendon="cable"/>\n'
        '<intvelocity joint="elbow" kp="3" actrange="-1 1"/><adhesion body="lower" ctrlrange="0 1"/>\n'
        '<motor joint="elbow" damping="0.3 0.2" ctrlrange="-1 1" group="3"/>',
        '<option density="1.2" actuatorgroupdisable="3"/>'
        '<tendon><spatial name="cable"><site site="anchor"/><site site="tip"/></spatial>'
        "</tendon>",
    )
    assert [declared.symbol.name for declared in machine.robot.inputs] == ["first", "second"]
    listed = [warning for warning in machine.warnings if "not carried over" in warning]
    for words in (
        r"contacts \(2 geoms and pairs\) \(lines 5, 6\)",
        r": spatial tendons \(line 1\)",
        r"actuators at sites .* \(line 9\)",
        r"actuators at spatial tendons \(line 10\)",
        r"actuators with the state `integrator` \(line 11\)",
        r"actuators at bodies \(line 11\)",
        r"dampers of actuators .* \(line 12\)",
        "fluid forces",
    ):
        assert sum(bool(re.search(words, warning)) for warning in listed) == 1, (words, listed)


@pytest.mark.slow
def test_meshes_are_read_only_where_a_mass_follows_from_them(tmp_path: Path) -> None:
    asset = '<asset><mesh name="shape" file="missing.obj"/></asset>'
    drawn = arm().replace("</body></body>", '<geom type="mesh" mesh="shape"/></body></body>')
    Machine(tmp_path, drawn, MOTORS, asset).moves_as_in_mujoco()
    with pytest.raises(ModelError, match=r"missing\.obj"):
        Machine(tmp_path, drawn.replace(OTHER, ""), MOTORS, asset)


@pytest.mark.parametrize(
    ("body", "actuators", "more", "words"),
    [
        ("<body>", MOTORS, "", r"xml:\d+: MuJoCo cannot read the file: XML"),
        (arm(), '<motor joint="knee"/>', "", r"xml:\d+: MuJoCo cannot read the file: .*knee"),
        (f"<body>{MASS}</body>", "", "", "no joint moves. This is an object"),
        (arm(), "", "", "no actuator drives a joint that moves"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused(
    tmp_path: Path, body: str, actuators: str, more: str, words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        Machine(tmp_path, body, actuators, more)


def test_wrong_names_of_options_are_refused(tmp_path: Path) -> None:
    for option, words in (
        ({"fixed": ["elbov"]}, "`elbov` of fixed does not exist. Did you mean `elbow`"),
        ({"planar": ["upper"]}, "`upper` of planar is no free joint"),
        ({"passive": ["third"]}, "`third` of passive matches no actuator or joint"),
        ({"command": ["third"]}, "`third` of command matches no actuator"),
    ):
        with pytest.raises(ModelError, match=words):
            Machine(tmp_path, arm(), **option)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_command_imports_and_its_kernels_agree_with_mujoco(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Coordinates and inputs have the file's names, so that the other engine can read the file itself."""
    monkeypatch.chdir(tmp_path)
    Machine(tmp_path, arm('armature="0.2" damping="0.7"'))
    assert main(["import", "machine.xml"]) == 0
    assert main(["build", "machine"]) == 0
    assert main(["verify", "machine", "--against", "mujoco", "--mjcf", "machine.xml"]) == 0, capsys.readouterr().out
    assert main(["import", "machine.xml", "--name", "other", "--command", "*"]) == 0
    (tmp_path / "machine.urdf").write_text('<robot name="machine"/>')
    assert main(["import", "machine.urdf", "--name", "third", "--command", "*"]) == 2
    assert "a URDF has none" in capsys.readouterr().err
