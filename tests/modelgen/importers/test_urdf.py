"""A URDF becomes a readable model file that loads."""

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
from modelgen.importers.urdf import model_file
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


def test_the_file_has_readable_numbers_and_remarks(written: Callable[..., Path]) -> None:
    text = model_file(written(*ROBOT), "machine")
    assert 'arm = robot.revolute("arm", limit=2.5, rate_limit=3)' in text
    assert 'arm_link_mass = robot.parameter("arm_link_mass", 2, "kg", tolerance=0.3)' in text
    assert "turned=(pi / 2, 0, 0.7)" in text
    assert 'arm_damping = robot.parameter("arm_damping", 0.3, "N m s", fixed=True)' in text
    assert "-1.5 ... 2.5" in text
    assert "rail has no effort" in text
    assert "lambda_joint" in text


def test_an_existing_file_is_not_overwritten(written: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    written(*ROBOT)
    assert main(["import", "machine.urdf"]) == 0
    assert main(["import", "machine.urdf"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_joints_of_fix_are_held(written: Callable[..., Path]) -> None:
    text = model_file(written(*ROBOT), "machine", ["rail", "lambda"])
    assert "prismatic" not in text
    assert text.count("robot.revolute(") == 1


def test_a_pattern_and_mimic_hold_several_joints(written: Callable[..., Path]) -> None:
    following = SPIN.replace("</joint>", '<mimic joint="nobody"/></joint>')
    path = written(*ROBOT[:-2], MIMIC, following)
    with pytest.raises(ModelError, match=r"fixed mimic .*2"):
        model_file(path, "machine")
    both = model_file(path, "machine", ["rail", "lambda"])
    assert model_file(path, "machine", ["mimic"]) == both
    assert model_file(path, "machine", ["[rl]a*"]) == both
    with pytest.raises(ModelError, match=r"`gripper\*` of fixed"):
        model_file(path, "machine", ["gripper*"])


def test_masses_without_effect_are_not_parameters(written: Callable[..., Path]) -> None:
    """They are on the ground, or on the axis of the only joint below. A massless link keeps its inertia."""
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


def test_a_moment_that_is_a_rounding_error_is_dropped(written: Callable[..., Path]) -> None:
    """iCub's head in example-robot-data has 1.3 kg, no moments, and one product of 2e-35 kg m^2."""
    zero = re.sub(r'i([xyz]{2})="[^"]*"', r'i\1="0"', TOOL)
    rounded = zero.replace('ixz="0"', 'ixz="2.4e-35"')
    texts = [model_file(written(*ROBOT[:2], tool, *ROBOT[3:]), "machine") for tool in (zero, rounded)]
    assert texts[0] == texts[1]


def test_a_published_finger_is_imported_and_passes_its_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_drawings_are_ignored(written: Callable[..., Path]) -> None:
    plain = model_file(written(*ROBOT), "machine")
    path = written(BASE.replace("</link>", f"{DRAWN}</link>"), *ROBOT[1:], "<transmission/><gazebo/>")
    path.write_text(path.read_text().replace(' name="machine"', "", 1))
    assert model_file(path, "machine") == plain


def test_similar_names_become_different_identifiers(written: Callable[..., Path], tmp_path: Path) -> None:
    """A link with the name of a joint and its prefix, and a joint with the name of the base that floats."""
    parts = [part.replace("base-plate", "base").replace('"arm"', '"joint a"') for part in (BASE, ARM, SHOULDER)]
    parts[2] = parts[2].replace('name="joint a"', 'name="a"')
    assert len(load_text(model_file(written(*parts), "machine"), tmp_path).joints) == 1
    parts[2] = parts[2].replace('name="a"', 'name="base"')
    assert len(load_text(model_file(written(*parts), "machine", planar=["base"]), tmp_path).joints) == 4


def test_xml_that_other_readers_accept_gives_the_same_file(
    written: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A declaration with version 0.0, a declaration behind a comment, and undeclared namespace prefixes."""
    path = written(*ROBOT)
    plain, text = model_file(path, "machine"), path.read_text()
    warnings: list[str] = []
    for changed in (
        text.replace('version="1.0"', 'version="0.0"'),
        f"<!-- drawn by hand -->\n{text}",
        text.replace("<limit ", '<limit drake:acceleration="3" ').replace("<dynamics", "<drake:motor/><dynamics"),
    ):
        path.write_text(changed)
        assert model_file(path, "machine", warn=warnings.append) == plain
        assert "ignored" in warnings.pop(0)
        warnings.clear()
    assert main(["import", "machine.urdf"]) == 0
    assert "warning: machine.urdf:2: Namespace prefix drake" in capsys.readouterr().err
    path.write_text(text.replace("</robot>", ""))
    with pytest.raises(ModelError, match=r"machine\.urdf:\d+: "):
        model_file(path, "machine")


@pytest.mark.parametrize(
    ("leader", "follower", "mimic", "line"),
    [
        (SHOULDER, RAIL, 'offset="0.1"', "robot.coupling(rail - 0.1, arm, ratio=1.0, "),
        (SHOULDER, SPIN, 'multiplier="0.3" offset="-0.2"', "* (1 - cos(lambda_joint - 0.3 * arm + 0.2)))"),
        (
            SHOULDER.replace("revolute", "continuous"),
            SPIN,
            'multiplier="0.5"',
            "* (1 - cos(lambda_joint - 0.5 * arm)))",
        ),
        (
            SHOULDER.replace('lower="-1.5"', 'lower="0.5"'),
            RAIL,
            'multiplier="2"',
            "robot.coupling(rail - 3.0, arm, rat",
        ),
    ],
)
@pytest.mark.slow
def test_a_mimic_joint_may_have_an_offset_or_turn_without_end(
    written: Callable[..., Path], tmp_path: Path, leader: str, follower: str, mimic: str, line: str
) -> None:
    """A spring whose force repeats after a whole turn, where it does so for the leader; otherwise it has limits."""
    follower = follower.replace("</joint>", f'<mimic joint="arm" {mimic}/></joint>')
    others = [part for part in (RAIL, SPIN) if part[:20] != follower[:20]]
    text = model_file(written(*ROBOT[:5], leader, MOUNT, follower, *others), "machine")
    assert line in text
    robot = load_text(text, tmp_path)
    assert robot.joints[0].continuous == ('multiplier="-2"' in mimic)
    assert robot.stated_task is not None
    at_target = dict(zip(robot.limits, robot.stated_task.numbers.target, strict=True))
    (spring,) = [energy.value for energy in robot.potential]
    assert float(spring.subs(at_target)) == pytest.approx(0.0, abs=1e-9)  # the first task strains no spring
    check_domain(robot, equations_of_motion(robot))


@pytest.mark.parametrize("follower", ["revolute", "prismatic"])
def test_a_joint_that_follows_another_is_coupled(written: Callable[..., Path], tmp_path: Path, follower: str) -> None:
    """The spring has the ratio of the URDF, and a stiffness that follows from the joint's inertia."""
    mimic = '<mimic joint="arm" multiplier="-0.5"/><axis xyz="0 0 1"/></joint>'
    rail = RAIL.replace('<axis xyz="1 1 0"/>', "").replace("prismatic", follower).replace("</joint>", mimic)
    warnings: list[str] = []
    text = model_file(written(*ROBOT[:-2], rail, SPIN), "machine", warn=warnings.append)
    inertia = 0.25 if follower == "revolute" else 0.7  # of the slider: about its axis, or its mass
    assert f"robot.coupling(rail, arm, ratio=-0.5, stiffness={3600 * inertia:.3g}, damping={60 * inertia:.3g})" in text
    assert any("rail" in warning and "--fix mimic" in warning for warning in warnings)
    robot = load_text(text, tmp_path)
    assert [declared.symbol.name for declared in robot.inputs] == ["arm_effort", "lambda_joint_effort"]
    assert any(energy.elastic for energy in robot.potential)
