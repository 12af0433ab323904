"""All errors of a URDF are reported in one message, each with its line; tolerated irregularities are warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.cli import main
from modelgen.importers.urdf import model_file

pytest.importorskip("yourdfpy")

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
AXIS = '<axis xyz="0 0 1"/>'
LIMIT = '<limit lower="-1" upper="1" velocity="3" effort="20"/>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, inside: str = AXIS + LIMIT, kind: str = "revolute") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    return tmp_path / "arm.urdf"


def written(path: Path, *parts: str) -> Path:
    """The path of a URDF with one part per line, the first on line 2."""
    path.write_text("\n".join(["<robot>", *parts, "</robot>"]))
    return path


def refused(path: Path, *parts: str, fixed: Sequence[str] = (), planar: Sequence[str] = ()) -> list[str]:
    """The lines of the error message, without the path."""
    with pytest.raises(ModelError) as caught:
        model_file(written(path, *parts), "arm", fixed, planar)
    return [line.removeprefix(str(path)) for line in str(caught.value).splitlines()]


def test_every_wrong_number_of_a_joint_is_reported(urdf: Path) -> None:
    wrong = '<origin xyz="0 0" rpy="0 0 a"/><axis xyz="0 0 0"/><limit lower="x" upper="1e200"/><dynamics damping="?"/>'
    errors = refused(urdf, link("base"), link("hand"), joint("elbow", "base", "hand", wrong))
    assert all(line.startswith(":4: ") for line in errors)
    for line, words in zip(errors, ('xyz="0 0"', 'rpy="0 0 a"', "axis", 'lower="x"', "1e200", "damping"), strict=True):
        assert words in line
        assert "`elbow`" in line


def test_errors_of_links_joints_and_inputs_are_reported_together(urdf: Path) -> None:
    bad = INERTIAL.replace('value="1"', 'value="one"').replace('ixx="1"', 'ixx="-1"')
    limitless = joint("wrist", "arm", "hand", AXIS)
    idle = joint("elbow", "base", "arm", AXIS + LIMIT.replace('effort="20"', ""))
    errors = refused(urdf, link("base"), link("arm", bad), link("hand"), idle, limitless)
    assert ':3: value="one" in <mass> of `arm`' in errors[0]
    assert ":3: the <inertia> of `arm`" in errors[1]
    assert errors[2].startswith(":5: no joint can be driven: `elbow`, `wrist`")
    assert ":6: the revolute joint `wrist` has no limits" in errors[3]
    assert len(errors) == 4


def test_missing_names_types_and_ends_are_reported_with_wrong_numbers(urdf: Path) -> None:
    parts = (
        link("base"),
        link("base"),
        "<link/>",
        '<joint name="a"/>',
        joint("b", "base", "hand", '<axis xyz="zero"/>' + LIMIT),
    )
    expected = (
        ":3: there are two links named `base`",
        ":4: <link>",
        ":5: <joint> has no type: `a`",
        ":5: the joint `a` has no <parent",
        ":5: the joint `a` has no <child",
        ':6: xyz="zero"',
    )
    for line, words in zip(refused(urdf, *parts), expected, strict=True):
        assert line.startswith(words)


def test_every_wrong_end_of_a_joint_is_reported(urdf: Path) -> None:
    errors = refused(
        urdf,
        link("base"),
        link("hand"),
        joint("a", "base", "hand"),
        joint("b", "bas", "hands"),
        joint("c", "base", "hand"),
    )
    assert re.match(":5: the joint `b` .*`bas`.*`base`", errors[0])
    assert re.match(":5: the joint `b` .*`hands`.*`hand`", errors[1])
    assert re.match(":6: the link `hand` .*`a` and `c`", errors[2])


def test_every_loose_link_is_named(urdf: Path) -> None:
    (error,) = refused(urdf, link("base"), link("arm"), link("lid"), link("hand"), joint("a", "base", "arm"))
    assert re.match(":1: .*`lid`, `hand` .*`base`", error)


def test_a_cycle_apart_from_the_tree_is_reported_as_a_cycle(urdf: Path) -> None:
    """Also a link that hangs from itself."""
    base, arm, hand = (link(name) for name in ("base", "arm", "hand"))
    cycle = joint("a", "arm", "hand"), joint("b", "hand", "arm")
    for parts in ((base, arm, hand, *cycle), (base, arm, hand, *cycle, link("lid")), (arm, hand, *cycle, base)):
        (error,) = refused(urdf, *parts)
        assert re.match(r":1: .*cycle, `(\w+)` -> `(?!\1)\w+` -> `\1`", error)
    (error,) = refused(urdf, base, arm, joint("a", "arm", "arm"))
    assert re.match(":1: .*cycle, `arm` -> `arm`", error)


def test_joints_that_follow_each_other_are_refused(urdf: Path) -> None:
    """The message does not mention their efforts, which they have, nor a joint that follows from outside."""
    links = [link(name) for name in ("base", "arm", "hand", "tip")]
    ends = ("a", "base", "arm", "b"), ("b", "arm", "hand", "a"), ("c", "hand", "tip", "b")
    joints = [joint(*names[:3], f'{AXIS}{LIMIT}<mimic joint="{names[3]}"/>') for names in ends]
    errors = refused(urdf, *links, *joints)
    assert errors[0].startswith(":1: no joint can be driven")
    for line, name, leader in zip(errors[1:3], "ab", "ba", strict=True):
        assert f"the joint `{name}` follows `{leader}` (<mimic>), which follows it in turn" in line
    assert "3 joints" in errors[3]
    assert len(errors) == 4
    led = joint("c", "hand", "tip")
    assert ["which follows it" in line for line in refused(urdf, *links, *joints[:2], led)] == [True, True, False]


def test_every_wrong_option_is_reported(urdf: Path) -> None:
    robot = link("base"), link("hand"), joint("elbow", "base", "hand")
    errors = refused(urdf, *robot, fixed=["elbo", "grip*"], planar=["bas", "elbow"])
    expected = "`elbo` of fixed", "`grip*` of fixed", "`bas` of planar", "`elbow` of planar is revolute"
    for line, words in zip(errors, expected, strict=True):
        assert words in line


@pytest.mark.parametrize("mimic", ['<mimic joint="shoulder" multiplier="two"/>', '<mimic multiplier="2"/>'])
def test_a_mimic_without_a_leader_or_number_names_its_line(urdf: Path, mimic: str) -> None:
    robot = link("base"), link("arm"), link("hand"), joint("shoulder", "base", "arm")
    (error,) = refused(urdf, *robot, joint("elbow", "arm", "hand", AXIS + LIMIT + mimic))
    assert re.match(r":6: .*mimic.* of `elbow`", error)


def test_a_repeated_equal_element_is_a_warning(urdf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The axes in pybullet's spirit40newer.urdf are so; Pinocchio and Bullet load it."""
    robot = link("base"), link("hand", INERTIAL + INERTIAL), joint("elbow", "base", "hand", AXIS + LIMIT + AXIS)
    plain = model_file(written(urdf, *robot[:1], link("hand"), joint("elbow", "base", "hand")), "arm")
    assert model_file(written(urdf, *robot), "arm") == plain
    assert main(["import", str(urdf), "--out", str(urdf.parent)]) == 0
    warnings = capsys.readouterr().err
    assert "arm.urdf:3: a second <inertial> of `hand`" in warnings
    assert "arm.urdf:4: a second <axis> of `elbow`" in warnings


@pytest.mark.parametrize(("izz", "impossible"), [("1.99", False), ("2.1", True)])
def test_moments_that_no_body_has_are_a_warning(urdf: Path, izz: str, impossible: bool) -> None:
    """The largest moment is at most the sum of the two others, which a flat body has."""
    warnings: list[str] = []
    robot = link("base"), link("hand", INERTIAL.replace('izz="1"', f'izz="{izz}"')), joint("elbow", "base", "hand")
    assert f"{izz}" in model_file(written(urdf, *robot), "arm", warn=warnings.append)
    assert any(":3: the <inertia> of `hand`" in warning for warning in warnings) == impossible


@pytest.mark.parametrize("second", ['<parent link="hand"/>', '<axis xyz="1 0 0"/>'])
def test_a_repeated_different_element_is_refused(urdf: Path, second: str) -> None:
    robot = link("base"), link("hand"), joint("elbow", "base", "hand", AXIS + LIMIT + second)
    (error,) = refused(urdf, *robot)
    assert error.startswith(":4: <joint> of `elbow` has two elements <")


def test_what_is_not_read_and_may_change_a_motion_is_named(urdf: Path) -> None:
    """A rotation as a quaternion (URDF 1.1), a mass outside <inertial>, and springs of Gazebo were ignored."""
    turned = '<origin xyz="0 0 1" quat_xyzw="0 0 0.6 0.8"/>'
    parts = [
        link("base"),
        link("hand", INERTIAL + '<mass value="3"/><visual><origin foo="1"/></visual>'),
        joint("elbow", "base", "hand", turned + AXIS + LIMIT),
        '<gazebo reference="elbow"><springStiffness>3</springStiffness><turnGravityOff>false</turnGravityOff></gazebo>',
    ]
    warnings: list[str] = []
    model_file(written(urdf, *parts), "arm", warn=warnings.append)
    unread = [warning.removeprefix(f"{urdf}:") for warning in warnings if "is not read" in warning]
    for warning, start in zip(
        unread, ("3: <mass> in <link>", '4: the attribute quat_xyzw="..."', "5: <springStiffness>"), strict=True
    ):
        assert warning.startswith(start)
