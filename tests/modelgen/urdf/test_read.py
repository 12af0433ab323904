"""A URDF becomes a model file that loads, moves as Pinocchio has it, and refuses what cannot be said."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen import ModelError, Robot
from modelgen.build import build_artifact
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import load
from modelgen.derivation.numeric import evaluator
from modelgen.urdf.read import model_file

pytest.importorskip("yourdfpy")


def inertial(mass: float, xyz: str = "0 0 0", rpy: str = "0 0 0") -> str:
    tensor = 'ixx="0.2" iyy="0.3" izz="0.25" ixy="0.01" ixz="-0.02" iyz="0.03"'
    return f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{mass}"/><inertia {tensor}/></inertial>'


LIMIT = '<limit lower="-1.5" upper="2.5" velocity="3" effort="20"/>'
BASE = f'<link name="base-plate">{inertial(3)}</link>'
ARM = f'<link name="arm">{inertial(2, "0.1 0.2 0.3", "0.3 -0.2 0.1")}</link>'
TOOL = f'<link name="tool">{inertial(0.5, "0 0 0.1")}</link>'
SLIDER = f'<link name="slider">{inertial(0.7)}</link>'
WHEEL = f'<link name="wheel">{inertial(0.4, "0 0 0.05")}</link>'
SHOULDER = f"""<joint name="arm" type="revolute"><parent link="base-plate"/><child link="arm"/>
  <origin xyz="0 0 0.4" rpy="1.5707963267948966 0 0.7"/><axis xyz="0 0 1"/>{LIMIT}
  <dynamics damping="0.3" friction="0.2"/></joint>"""
MOUNT = """<joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/>
  <origin xyz="0.5 0 0" rpy="0.4 1.5707963267948966 -0.3"/></joint>"""
RAIL = """<joint name="rail" type="prismatic"><parent link="tool"/><child link="slider"/>
  <axis xyz="1 1 0"/><limit lower="-1" upper="1" velocity="2" effort="0"/></joint>"""
SPIN = """<joint name="lambda" type="continuous"><parent link="arm"/><child link="wheel"/>
  <origin xyz="0 0.3 0"/><limit velocity="9" effort="1"/></joint>"""
ROBOT = [BASE, ARM, TOOL, SLIDER, WHEEL, SHOULDER, MOUNT, RAIL, SPIN]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """written(*parts): the path of a URDF of these parts, in the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(*parts: str) -> Path:
        path = tmp_path / "machine.urdf"
        path.write_text(f'<?xml version="1.0"?><robot name="machine">{"".join(parts)}</robot>')
        return path

    return write


def test_imported_robot_moves_as_in_pinocchio(written: Callable[..., Path]) -> None:
    pin = pytest.importorskip("pinocchio")
    path = written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    robot = load("machine")
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rows = [[each.symbol.name for each in robot.joints].index(name) for name in ("arm", "lambda_joint", "rail")]
    order = [model.getJointId(name) for name in ("arm", "lambda", "rail")]
    q, v = np.random.default_rng(0).uniform(-1, 1, (2, 3))
    configuration, rates = pin.neutral(model), np.zeros(3)
    for joint, position, rate in zip(order, q, v, strict=True):
        at = model.joints[joint]
        turns = at.nq == 2
        configuration[at.idx_q : at.idx_q + at.nq] = (np.cos(position), np.sin(position)) if turns else position
        rates[at.idx_v] = rate
    permuted = [model.joints[joint].idx_v for joint in order]
    x = np.zeros(6)
    x[rows], x[[3 + row for row in rows]] = q, v
    theta = [each.value for each in robot.parameters if not each.fixed]
    arguments = [*equations.state, *equations.parameters]
    M, force = (
        evaluator(arguments, each, equations.definitions)(*np.array([*x, *theta])[:, None])[0]
        for each in (equations.mass_matrix, equations.force)
    )
    expected = np.triu(pin.crba(model, data, configuration))
    expected = (expected + np.triu(expected, 1).T)[np.ix_(permuted, permuted)]
    bias = pin.rnea(model, data, configuration, rates, np.zeros(3))[permuted]
    losses = np.array([0.3 * v[0] + 0.2 * np.tanh(100 * v[0]), 0, 0])
    np.testing.assert_allclose(M[np.ix_(rows, rows)], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(-force[rows, 0] - losses, bias, rtol=1e-9, atol=1e-9)


def test_imported_robot_is_proven_by_the_other_engines(
    written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """From a URDF to kernels that two engines agree with, without a line written by hand."""
    for engine in ("pinocchio", "mujoco"):
        pytest.importorskip(engine)
    written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    assert main(["build", "machine"]) == 0
    for engine in ("pinocchio", "mujoco"):
        assert main(["verify", "machine", "--against", engine]) == 0, capsys.readouterr().out
        assert "5 checks passed, 0 failed, 0 skipped" in capsys.readouterr().out


def test_file_is_readable(written: Callable[..., Path]) -> None:
    text = model_file(written(*ROBOT), "machine")
    assert 'arm = robot.revolute("arm", limit=2.5, rate_limit=3)' in text
    assert 'arm_link_mass = robot.parameter("arm_link_mass", 2, "kg", tolerance=0.3)' in text
    assert "turned=(pi / 2, 0, 0.7)" in text
    assert 'arm_damping = robot.parameter("arm_damping", 0.3, "N m s", fixed=True)' in text
    assert "arm was limited to -1.5 ... 2.5" in text
    assert "rail has no effort" in text
    assert "lambda_joint" in text


def test_never_overwrites(written: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    assert main(["import", "machine.urdf"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_joints_can_be_held(written: Callable[..., Path]) -> None:
    text = model_file(written(*ROBOT), "machine", ["rail", "lambda"])
    assert "prismatic" not in text
    assert text.count("robot.revolute(") == 1


def against_pinocchio(path: Path, planar: Sequence[str] = (), fixed: Sequence[str] = ()) -> tuple[Any, ...]:
    """Mass matrix and bias forces of the imported robot, and of Pinocchio's reading of the same file, no losses."""
    pin = pytest.importorskip("pinocchio")
    text = model_file(path, "machine", fixed, planar)
    (path.parent / "models").mkdir(exist_ok=True)
    (path.parent / "models" / "machine.py").write_text(text)
    robot = load("machine")
    equations = equations_of_motion(robot)
    check_domain(robot, equations)
    root = pin.JointModelPlanar() if planar == ("base-plate",) else None
    model = pin.buildModelFromUrdf(str(path), root) if root else pin.buildModelFromUrdf(str(path))
    return robot, equations, pin, model


def test_planar_joint_moves_as_in_pinocchio(written: Callable[..., Path]) -> None:
    """Two displacements in the plane across the axis, and a turn about it, z as Pinocchio has it."""
    mount = RAIL.replace("prismatic", "planar").replace("1 1 0", "0 0 1").replace('effort="0"', 'effort="3"')
    path = written(BASE, ARM, SLIDER, SHOULDER, mount.replace('"tool"', '"arm"'))
    robot, equations, pin, model = against_pinocchio(path)
    names = [joint.symbol.name for joint in robot.joints]
    assert names == ["arm", "rail_x", "rail_y", "rail_turn"]
    q, v = np.random.default_rng(0).uniform(-1, 1, (2, 4))
    at = np.array([*q, *v, *(each.value for each in robot.parameters if not each.fixed)])[:, None]
    arguments = [*equations.state, *equations.parameters]
    M, force = (
        evaluator(arguments, each, equations.definitions)(*at)[0] for each in (equations.mass_matrix, equations.force)
    )
    configuration = np.array([q[0], q[1], q[2], np.cos(q[3]), np.sin(q[3])])
    # Pinocchio's planar joint has its rates along the moving link's axes.
    turn = np.eye(4)
    turn[1:3, 1:3] = [[np.cos(q[3]), np.sin(q[3])], [-np.sin(q[3]), np.cos(q[3])]]
    rates = turn @ v
    data = model.createData()
    upper = np.triu(pin.crba(model, data, configuration))
    np.testing.assert_allclose(M, turn.T @ (upper + np.triu(upper, 1).T) @ turn, rtol=1e-9, atol=1e-12)
    spin = np.zeros((4, 4))
    spin[1:3, 1:3] = v[3] * np.array([[0, 1], [-1, 0]])
    bias = turn.T @ pin.rnea(model, data, configuration, rates, spin @ rates)
    losses = np.array([0.3 * v[0] + 0.2 * np.tanh(100 * v[0]), 0, 0, 0])
    np.testing.assert_allclose(-force[:, 0] - losses, bias, rtol=1e-9, atol=1e-9)


def test_floating_base_is_kept_in_a_plane(written: Callable[..., Path]) -> None:
    """A base that floats falls freely, and carries its own mass."""
    path = written(*ROBOT)
    robot, equations, *_ = against_pinocchio(path, planar=("base-plate",))
    names = [joint.symbol.name for joint in robot.joints]
    assert names[:3] == ["base_plate_x", "base_plate_height", "base_plate_pitch"]
    theta = [each.value for each in robot.parameters if not each.fixed]
    at = np.array([*np.zeros(2 * len(names)), *theta])[:, None]
    arguments = [*equations.state, *equations.parameters]
    M, force = (
        evaluator(arguments, each, equations.definitions)(*at)[0] for each in (equations.mass_matrix, equations.force)
    )
    assert M[0, 0] == pytest.approx(3 + 2 + 0.5 + 0.7 + 0.4, rel=1e-12)
    acceleration = np.linalg.solve(M, force)[:, 0]
    np.testing.assert_allclose(acceleration, [0, -9.81, *np.zeros(len(names) - 2)], atol=1e-9)
    assert "base_plate_x, base_plate_height, base_plate_pitch and their rates are guesses" in model_file(
        path, "machine", (), ["base-plate"]
    ).replace("The limits of ", "")


def test_masses_without_effect_are_no_parameters(written: Callable[..., Path]) -> None:
    """On the ground, or on the axis of the only joint below; a massless link keeps its inertia."""
    bracket = f'<link name="bracket">{inertial(1)}</link>'
    fixed = (
        '<joint name="bolt" type="fixed"><parent link="base-plate"/><child link="bracket"/><axis xyz="0 0 0"/></joint>'
    )
    disk = f'<link name="arm">{inertial(2, "0 0 0.3")}</link>'
    tool = TOOL.replace('mass value="0.5"', 'mass value="0"')
    text = model_file(written(BASE, bracket, fixed, disk, tool, SHOULDER, MOUNT), "machine")
    assert "bracket_mass" not in text
    assert "base-plate, bracket: on the ground" in text
    assert 'robot.parameter("arm_link_mass", 2, "kg", fixed=True)' in text
    assert "tool_mass" not in text
    assert text.count("inertia=(") == 2


def test_real_finger_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small robot of a published package, where it is installed: loads, and its checks pass."""
    data = Path(sysconfig.get_paths()["purelib"]) / "cmeel.prefix/share/example-robot-data/robots"
    path = data / "finger_edu_description/robots/finger_edu.urdf"
    if not path.is_file():
        pytest.skip("example-robot-data is not installed")
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(path)]) == 0
    robot = load("finger_edu")
    check_domain(robot, equations_of_motion(robot))
    assert len(robot.joints) == 3


FLOATING = RAIL.replace("prismatic", "floating")
LOOP = '<joint name="loop" type="fixed"><parent link="wheel"/><child link="slider"/></joint>'
MIMIC = RAIL.replace("</joint>", '<mimic joint="arm"/></joint>')


DRAWN = """<collision><geometry><capsule radius="1" length="2"/></geometry></collision><visual/>
<visual><geometry><cylinder radius="${r}"/></geometry><material name="x"><color rgba="a b"/></material></visual>"""


def test_drawings_are_not_looked_at(written: Callable[..., Path]) -> None:
    plain = model_file(written(*ROBOT), "machine")
    path = written(BASE.replace("</link>", f"{DRAWN}</link>"), *ROBOT[1:], "<transmission/><gazebo/>")
    path.write_text(path.read_text().replace(' name="machine"', "", 1))
    assert model_file(path, "machine") == plain


def test_what_a_planar_joint_loses_is_said(written: Callable[..., Path]) -> None:
    losing = RAIL.replace('type="prismatic"', 'type="planar"').replace("<axis", '<dynamics damping="5"/><axis')
    assert "damping and friction of rail are left out" in model_file(written(*ROBOT[:-2], losing, SPIN), "machine")


def test_names_that_look_alike_stay_apart(written: Callable[..., Path], tmp_path: Path) -> None:
    """A link called like a joint with the word before it; a joint called like the base that floats."""
    parts = [each.replace("base-plate", "base").replace('"arm"', '"joint a"') for each in (BASE, ARM, SHOULDER)]
    parts[2] = parts[2].replace('name="joint a"', 'name="a"')
    assert len(load_text(model_file(written(*parts), "machine"), tmp_path).joints) == 1
    parts[2] = parts[2].replace('name="a"', 'name="base"')
    assert len(load_text(model_file(written(*parts), "machine", planar=["base"]), tmp_path).joints) == 4


def load_text(text: str, folder: Path) -> Robot:
    (folder / "machine.py").write_text(text)
    return load(str(folder / "machine.py"))


XACRO = '<a xmlns:xacro="http://ros.org/wiki/xacro">{}</a>'


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([*ROBOT[:-2], FLOATING, SPIN], "--planar rail"),
        ([*ROBOT, LOOP], "closed loop"),
        (
            [*ROBOT[:-2], MIMIC.replace('"arm"/></joint>', '"arms"/></joint>'), SPIN],
            "`rail` follows `arms`.* not there",
        ),
        ([*ROBOT[:-2], MIMIC.replace("<mimic", '<mimic offset="0.1"'), SPIN], "`rail` follows `arm`.* offset of 0.1"),
        ([*ROBOT[:-1], SPIN.replace("</joint>", '<mimic joint="arm"/></joint>')], "`lambda` follows `arm`"),
        (["<link/>"], "<link> has no name"),
        (
            [BASE.replace('ixx="0.2"', 'ixx="-0.2"'), *ROBOT[1:]],
            r"urdf:1: the <inertia> of `base-plate` has a negative",
        ),
        ([*ROBOT[:-1], SPIN, LOOP.replace("slider", "base-plate")], "form a cycle, `[a-z-]+` -> "),
        ([*ROBOT[:-2], RAIL.replace('lower="-1" upper="1"', 'lower="0" upper="0"'), SPIN], "both 0. Give limits"),
        ([*ROBOT[:3], '<link name="slider"/>', *ROBOT[4:]], "`slider` moves and has no mass"),
        (ROBOT[:-1], "no single tree: no joint carries `wheel`"),
        ([*ROBOT[:-1], SPIN.replace('"wheel"', '"wheels"')], "not there. Did you mean `wheel`"),
        ([BASE], "no joint can be driven"),
        (["<link>"], "no URDF that can be read"),
        ([*ROBOT, XACRO.format("<xacro:gripper/>")], "<xacro:gripper> is not expanded"),
        ([*ROBOT[:-1], SPIN.replace("<limit", XACRO.format("<xacro:if/>") + "<limit")], "<xacro:if> is not expanded"),
        ([*ROBOT[:-2], MIMIC.replace("prismatic", "planar"), SPIN], "`rail` follows `arm`"),
    ],
)
def test_what_cannot_be_said(written: Callable[..., Path], parts: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        model_file(written(*parts), "machine")


def test_missing_file_and_unknown_joint(written: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        model_file(tmp_path / "none.urdf", "none")
    with pytest.raises(ModelError, match="Did you mean `rail`"):
        model_file(written(*ROBOT), "machine", ["rails"])


def test_spelling_that_other_readers_accept(written: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A declaration with version 0.0, and one behind a comment; prefixes that nothing declares: the same robot."""
    path = written(*ROBOT)
    plain, text = model_file(path, "machine"), path.read_text()
    said: list[str] = []
    for changed in (
        text.replace('version="1.0"', 'version="0.0"'),
        f"<!-- drawn by hand -->\n{text}",
        text.replace("<limit ", '<limit drake:acceleration="3" ').replace("<dynamics", "<drake:motor/><dynamics"),
    ):
        path.write_text(changed)
        assert model_file(path, "machine", warn=said.append) == plain
        assert "overlooked" in said.pop(0)
        said.clear()
    assert main(["import", "machine.urdf"]) == 0
    assert "warning: machine.urdf:2: Namespace prefix drake" in capsys.readouterr().err
    path.write_text(text.replace("</robot>", ""))
    with pytest.raises(ModelError, match=r"machine\.urdf:\d+: this is no URDF that can be read: .*end"):
        model_file(path, "machine")


def test_all_faults_are_reported_at_once_with_their_lines(written: Callable[..., Path]) -> None:
    """A joint without limits, one with both limits zero, one that floats, and one that follows it and cannot."""
    tail = '<link name="tail">' + inertial(1) + "</link>"
    zero = SHOULDER.replace('lower="-1.5" upper="2.5"', 'lower="0" upper="0"')
    spin = SPIN.replace('"continuous"', '"floating"')
    wag = SPIN.replace("lambda", "wag").replace('"wheel"', '"tail"').replace('"continuous"', '"revolute"')
    rail = MIMIC.replace('joint="arm"', 'joint="lambda"')
    path = written(*(f"\n{part}" for part in (*ROBOT[:5], tail, zero, MOUNT, rail, spin, wag)))
    with pytest.raises(ModelError) as error:
        model_file(path, "machine")
    lines = path.read_text().splitlines()
    found = ("arm", "are both 0"), ("rail", "`lambda`"), ("lambda", "is floating"), ("wag", "no limits")
    for name, words in found:
        line = 1 + next(i for i, each in enumerate(lines) if f'<joint name="{name}"' in each)
        assert re.search(rf"machine\.urdf:{line}: .*`{name}` .*{words}", str(error.value))
    assert len(str(error.value).splitlines()) == len(found)


def test_invalid_numbers_are_reported_at_once_with_their_lines(written: Callable[..., Path]) -> None:
    heavy = BASE.replace('ixx="0.2"', 'ixx="-0.2"')
    upside = RAIL.replace('lower="-1" upper="1"', 'lower="1" upper="-1"')
    path = written(heavy, ARM, *(f"\n{part}" for part in (TOOL, SLIDER, WHEEL, SHOULDER, MOUNT, upside)), SPIN)
    with pytest.raises(
        ModelError, match=r"urdf:1: .*negative principal moment.*\n.*urdf:\d+: the lower limit of `rail`"
    ):
        model_file(path, "machine")


def test_invalid_numbers_and_missing_limits_are_one_message(written: Callable[..., Path]) -> None:
    """An invalid part brings no second fault of its own, nor of the joints that follow it."""
    light = TOOL.replace('ixx="0.2"', 'ixx="-0.2"')
    upside = RAIL.replace('lower="-1" upper="1"', 'lower="1" upper="-1"')
    wag = SPIN.replace('"continuous"', '"revolute"')
    follower = SHOULDER.replace("</joint>", '<mimic joint="rail"/></joint>')
    path = written(*(f"\n{part}" for part in (*ROBOT[:2], light, SLIDER, WHEEL, follower, MOUNT, upside, wag)))
    with pytest.raises(ModelError) as error:
        model_file(path, "machine")
    first, second, third = str(error.value).splitlines()
    assert re.search(r"urdf:4: .*`tool` has a negative principal moment", first)
    assert re.search(r"urdf:\d+: the lower limit of `rail` is above", second)
    assert re.search(r"urdf:\d+: .*`lambda` has no limits", third)


def test_a_moment_of_rounding_errors_is_none(written: Callable[..., Path]) -> None:
    """As of iCub's head in example-robot-data: 1.3 kg, all moments zero, one product of 2e-35 kg m^2."""
    zero = re.sub(r'i([xyz]{2})="[^"]*"', r'i\1="0"', TOOL)
    rounded = zero.replace('ixz="0"', 'ixz="2.4e-35"')
    texts = [model_file(written(*ROBOT[:2], each, *ROBOT[3:]), "machine") for each in (zero, rounded)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("follower", ["revolute", "prismatic"])
def test_a_joint_that_follows_is_coupled(written: Callable[..., Path], tmp_path: Path, follower: str) -> None:
    """Its spring holds it at the URDF's ratio, with the frequency that its own inertia gives."""
    mimic = '<mimic joint="arm" multiplier="-0.5"/><axis xyz="0 0 1"/></joint>'
    rail = RAIL.replace('<axis xyz="1 1 0"/>', "").replace("prismatic", follower).replace("</joint>", mimic)
    said: list[str] = []
    text = model_file(written(*ROBOT[:-2], rail, SPIN), "machine", warn=said.append)
    inertia = 0.25 if follower == "revolute" else 0.7  # of the slider, about its axis and along it
    assert f"robot.coupling(rail, arm, ratio=-0.5, stiffness={3600 * inertia:.3g}, damping={60 * inertia:.3g})" in text
    assert any("rail follow other joints" in each and "--fix mimic" in each for each in said)
    robot = load_text(text, tmp_path)
    assert [each.symbol.name for each in robot.inputs] == ["arm_effort", "lambda_joint_effort"]
    assert any(each.elastic for each in robot.potential)


def test_several_joints_are_held_by_one_word(written: Callable[..., Path]) -> None:
    following = SPIN.replace("</joint>", '<mimic joint="arm"/></joint>')
    path = written(*ROBOT[:-2], MIMIC, following)
    with pytest.raises(ModelError, match="--fix mimic holds all 2 joints"):
        model_file(path, "machine")
    both = model_file(path, "machine", ["rail", "lambda"])
    assert model_file(path, "machine", ["mimic"]) == both
    assert model_file(path, "machine", ["[rl]a*"]) == both
    with pytest.raises(ModelError, match=r"`gripper\*` of --fix is not there"):
        model_file(path, "machine", ["gripper*"])


def test_missing_rate_limit_is_a_guess_that_is_said(written: Callable[..., Path]) -> None:
    said: list[str] = []
    text = model_file(written(*ROBOT[:-1], SPIN.replace('velocity="9"', "")), "machine", warn=said.append)
    assert "rate_limit=10)  # a guess: the URDF states no velocity" in text
    assert "for lambda_joint; the rate_limit in the file is a guess" in said[0]


def test_a_rate_limit_that_no_joint_reaches_is_a_guess(written: Callable[..., Path]) -> None:
    """Solo, Bolt and others state 1000 or 10000 rad/s, which no control rate simulates."""
    said: list[str] = []
    text = model_file(
        written(*ROBOT[:-1], SPIN.replace('velocity="9"', 'velocity="1000"')), "machine", warn=said.append
    )
    assert "rate_limit=10)  # a guess: the URDF states 1000" in text
    assert "for lambda_joint" in said[0]


@pytest.mark.parametrize(("kind", "inertia"), [("continuous", 0.2), ("prismatic", 0.4)])
def test_an_effort_that_no_build_simulates_is_said(written: Callable[..., Path], kind: str, inertia: float) -> None:
    """What 9 rad/s or m/s a hundred times over take within 1/250 s; the wheel has 0.2 kg m^2 about x and 0.4 kg."""
    effort = 100 * 9 * 250 * inertia
    for share, words in ((0.99, 0), (1.01, 1)):
        said: list[str] = []
        limit = f'lower="-1" upper="1" velocity="9" effort="{share * effort}"'
        spin = SPIN.replace('"continuous"', f'"{kind}"').replace('velocity="9" effort="1"', limit)
        model_file(written(*ROBOT[:-1], spin), "machine", warn=said.append)
        assert sum("effort of lambda_joint" in each and "robot.rotor" in each for each in said) == words


def test_dry_friction_of_a_light_joint_can_be_simulated(written: Callable[..., Path], tmp_path: Path) -> None:
    """As of Z1 and TALOS: 1 N m at fingers. With a smoothing of 0.01 rad/s no number of steps was enough."""
    said: list[str] = []
    light = WHEEL.replace('"0.2"', '"2e-4"').replace('"0.3"', '"3e-4"').replace('"0.25"', '"2.5e-4"')
    light = re.sub(r'i(xy|xz|yz)="[^"]*"', r'i\1="0"', light).replace('xyz="0 0 0.05"', 'xyz="0 0 0"')
    spin = SPIN.replace("</joint>", '<dynamics friction="1"/></joint>')
    text = model_file(written(*ROBOT[:4], light, *ROBOT[5:-1], spin), "machine", warn=said.append)
    assert "robot.dry_friction(lambda_joint, lambda_joint_friction, smoothing=2.5)  # a guess" in text
    assert "robot.dry_friction(arm, arm_friction, smoothing=0.01)\n" in text
    assert any("dry friction of lambda_joint" in each for each in said)
    report = build_artifact(load_text(text, tmp_path), tmp_path / "generated")
    assert not report.warnings


def test_robot_on_the_ground_is_said(written: Callable[..., Path]) -> None:
    said: list[str] = []
    model_file(written(*ROBOT), "machine", warn=said.append)
    assert "--planar base-plate" in said[0]
    said.clear()
    model_file(written(*ROBOT), "machine", planar=["base-plate"], warn=said.append)
    assert not said
