"""All that is wrong of a URDF is said in one message, each with its line; what other readers overlook is a warning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.cli import main
from modelgen.urdf.read import model_file

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
    """One part a line, the first on line 2."""
    path.write_text("\n".join(["<robot>", *parts, "</robot>"]))
    return path


def refused(path: Path, *parts: str, fixed: Sequence[str] = (), planar: Sequence[str] = ()) -> list[str]:
    """The lines of the refusal, without the path."""
    with pytest.raises(ModelError) as caught:
        model_file(written(path, *parts), "arm", fixed, planar)
    return [line.removeprefix(str(path)) for line in str(caught.value).splitlines()]


def test_all_faults_of_one_joint(urdf: Path) -> None:
    """Each element of it, and each number of an element."""
    wrong = '<origin xyz="0 0" rpy="0 0 a"/><axis xyz="0 0 0"/><limit lower="x" upper="1e200"/><dynamics damping="?"/>'
    found = refused(urdf, link("base"), link("hand"), joint("elbow", "base", "hand", wrong))
    assert all(line.startswith(":4: ") for line in found)
    for line, words in zip(found, ('xyz="0 0"', 'rpy="0 0 a"', "axis", 'lower="x"', "1e200", "damping"), strict=True):
        assert words in line
        assert "`elbow`" in line


def test_faults_of_links_joints_and_the_drive_together(urdf: Path) -> None:
    bad = INERTIAL.replace('value="1"', 'value="one"').replace('ixx="1"', 'ixx="-1"')
    limitless = joint("wrist", "arm", "hand", AXIS)
    idle = joint("elbow", "base", "arm", AXIS + LIMIT.replace('effort="20"', ""))
    found = refused(urdf, link("base"), link("arm", bad), link("hand"), idle, limitless)
    assert found[0].startswith(":1: no joint can be driven: `elbow`, `wrist`")
    assert ':3: value="one" in <mass> of `arm`' in found[1]
    assert ":3: the <inertia> of `arm` has a negative principal moment" in found[2]
    assert ":6: the revolute joint `wrist` has no limits" in found[3]
    assert len(found) == 4


def test_what_keeps_a_file_from_being_read_is_said_at_once(urdf: Path) -> None:
    """With what is invalid besides."""
    parts = (
        link("base"),
        link("base"),
        "<link/>",
        '<joint name="a"/>',
        joint("b", "base", "hand", '<axis xyz="zero"/>' + LIMIT),
    )
    expected = (
        ":3: there are two links named `base`",
        ":4: <link> has no name",
        ":5: <joint> has no type: `a`",
        ":5: the joint `a` has no <parent",
        ":5: the joint `a` has no <child",
        ':6: xyz="zero"',
    )
    for line, words in zip(refused(urdf, *parts), expected, strict=True):
        assert line.startswith(words)


def test_all_wrong_ends_are_said_at_once(urdf: Path) -> None:
    found = refused(
        urdf,
        link("base"),
        link("hand"),
        joint("a", "base", "hand"),
        joint("b", "bas", "hands"),
        joint("c", "base", "hand"),
    )
    assert found[0] == ":5: the joint `b` names a link `bas`, which is not there. Did you mean `base`?"
    assert found[1] == ":5: the joint `b` names a link `hands`, which is not there. Did you mean `hand`?"
    assert found[2].startswith(":6: the link `hand` hangs from two joints, `a` and `c`")


def test_all_loose_links_are_named(urdf: Path) -> None:
    (found,) = refused(urdf, link("base"), link("arm"), link("lid"), link("hand"), joint("a", "base", "arm"))
    assert found == ":1: the links are no single tree: no joint carries `lid`, `hand`, beside `base`."


def test_a_cycle_beside_the_tree_is_a_cycle(urdf: Path) -> None:
    """A link of it is carried, by another of it; so is a link that hangs from itself."""
    base, arm, hand = (link(name) for name in ("base", "arm", "hand"))
    round_ = joint("a", "arm", "hand"), joint("b", "hand", "arm")
    for parts in ((base, arm, hand, *round_), (base, arm, hand, *round_, link("lid")), (arm, hand, *round_, base)):
        (found,) = refused(urdf, *parts)
        assert re.match(r":1: the links form a cycle, `(\w+)` -> `(?!\1)\w+` -> `\1`, so that none", found)
    (found,) = refused(urdf, base, arm, joint("a", "arm", "arm"))
    assert found.startswith(":1: the links form a cycle, `arm` -> `arm`, so that none")


def test_joints_that_follow_each_other_in_a_round(urdf: Path) -> None:
    """None of them leads. That they have no effort is not said, for they have; nor of one that follows from outside."""
    links = [link(name) for name in ("base", "arm", "hand", "tip")]
    ends = ("a", "base", "arm", "b"), ("b", "arm", "hand", "a"), ("c", "hand", "tip", "b")
    joints = [joint(*each[:3], f'{AXIS}{LIMIT}<mimic joint="{each[3]}"/>') for each in ends]
    found = refused(urdf, *links, *joints)
    assert found[0].startswith(":1: no joint can be driven: each of them follows another (<mimic>)")
    for line, name, leader in zip(found[1:3], "ab", "ba", strict=True):
        assert f"the joint `{name}` follows `{leader}` (<mimic>), which follows it in turn" in line
    assert "holds all 3 joints" in found[3]
    assert len(found) == 4
    led = joint("c", "hand", "tip")
    assert ["which follows it" in line for line in refused(urdf, *links, *joints[:2], led)] == [True, True, False]


def test_all_wrong_options_are_said_at_once(urdf: Path) -> None:
    robot = link("base"), link("hand"), joint("elbow", "base", "hand")
    found = refused(urdf, *robot, fixed=["elbo", "grip*"], planar=["bas", "elbow"])
    expected = "`elbo` of --fix", "`grip*` of --fix", "`bas` of --planar", "`elbow` of --planar is revolute"
    for line, words in zip(found, expected, strict=True):
        assert words in line


@pytest.mark.parametrize("mimic", ['<mimic joint="shoulder" multiplier="two"/>', '<mimic multiplier="2"/>'])
def test_a_joint_that_follows_wrongly_names_its_line(urdf: Path, mimic: str) -> None:
    robot = link("base"), link("arm"), link("hand"), joint("shoulder", "base", "arm")
    (found,) = refused(urdf, *robot, joint("elbow", "arm", "hand", AXIS + LIMIT + mimic))
    assert re.match(r":6: .*mimic.* of `elbow`", found)


def test_what_is_stated_twice_alike_is_a_warning(urdf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the axes in pybullet's spirit40newer.urdf, which Pinocchio and Bullet load."""
    robot = link("base"), link("hand", INERTIAL + INERTIAL), joint("elbow", "base", "hand", AXIS + LIMIT + AXIS)
    plain = model_file(written(urdf, *robot[:1], link("hand"), joint("elbow", "base", "hand")), "arm")
    assert model_file(written(urdf, *robot), "arm") == plain
    assert main(["import", str(urdf), "--out", str(urdf.parent)]) == 0
    said = capsys.readouterr().err
    assert "arm.urdf:3: a second <inertial> of `hand`, equal to the first, is overlooked" in said
    assert "arm.urdf:4: a second <axis> of `elbow`, equal to the first, is overlooked" in said


@pytest.mark.parametrize(("izz", "impossible"), [("1.99", False), ("2.1", True)])
def test_moments_that_no_body_has_are_a_warning(urdf: Path, izz: str, impossible: bool) -> None:
    """Of a flat body the largest is the sum of the two others, and none has more."""
    said: list[str] = []
    robot = link("base"), link("hand", INERTIAL.replace('izz="1"', f'izz="{izz}"')), joint("elbow", "base", "hand")
    assert f"{izz}" in model_file(written(urdf, *robot), "arm", warn=said.append)
    assert any(":3: no body has the <inertia> of `hand`" in words for words in said) == impossible


@pytest.mark.parametrize("second", ['<parent link="hand"/>', '<axis xyz="1 0 0"/>'])
def test_what_is_stated_twice_otherwise_is_refused(urdf: Path, second: str) -> None:
    robot = link("base"), link("hand"), joint("elbow", "base", "hand", AXIS + LIMIT + second)
    (found,) = refused(urdf, *robot)
    assert found.startswith(":4: <joint> of `elbow` has two elements <")
