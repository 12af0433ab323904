"""A URDF becomes a model file that can be read and loads."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.cli import main
from modelgen.derivation.derive import equations_of_motion
from modelgen.derivation.domain_checks import check_domain
from modelgen.derivation.model_file import load
from modelgen.importers.read import model_file
from tests.modelgen.importers.machine import (
    ARM,
    BASE,
    MIMIC,
    MOUNT,
    RAIL,
    ROBOT,
    SHOULDER,
    SPIN,
    TOOL,
    inertial,
    load_text,
)

pytest.importorskip("yourdfpy")


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


def test_a_moment_of_rounding_errors_is_none(written: Callable[..., Path]) -> None:
    """As of iCub's head in example-robot-data: 1.3 kg, all moments zero, one product of 2e-35 kg m^2."""
    zero = re.sub(r'i([xyz]{2})="[^"]*"', r'i\1="0"', TOOL)
    rounded = zero.replace('ixz="0"', 'ixz="2.4e-35"')
    texts = [model_file(written(*ROBOT[:2], each, *ROBOT[3:]), "machine") for each in (zero, rounded)]
    assert texts[0] == texts[1]


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


DRAWN = """<collision><geometry><capsule radius="1" length="2"/></geometry></collision><visual/>
<visual><geometry><cylinder radius="${r}"/></geometry><material name="x"><color rgba="a b"/></material></visual>"""


def test_drawings_are_not_looked_at(written: Callable[..., Path]) -> None:
    plain = model_file(written(*ROBOT), "machine")
    path = written(BASE.replace("</link>", f"{DRAWN}</link>"), *ROBOT[1:], "<transmission/><gazebo/>")
    path.write_text(path.read_text().replace(' name="machine"', "", 1))
    assert model_file(path, "machine") == plain


def test_names_that_look_alike_stay_apart(written: Callable[..., Path], tmp_path: Path) -> None:
    """A link called like a joint with the word before it; a joint called like the base that floats."""
    parts = [each.replace("base-plate", "base").replace('"arm"', '"joint a"') for each in (BASE, ARM, SHOULDER)]
    parts[2] = parts[2].replace('name="joint a"', 'name="a"')
    assert len(load_text(model_file(written(*parts), "machine"), tmp_path).joints) == 1
    parts[2] = parts[2].replace('name="a"', 'name="base"')
    assert len(load_text(model_file(written(*parts), "machine", planar=["base"]), tmp_path).joints) == 4


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
