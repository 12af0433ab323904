"""A URDF that a model file cannot hold is refused, with all faults at once and the line of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen import ModelError
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import (
    ARM,
    BASE,
    FLOATING,
    LOOP,
    MIMIC,
    MOUNT,
    RAIL,
    ROBOT,
    SHOULDER,
    SLIDER,
    SPIN,
    TOOL,
    WHEEL,
    inertial,
)

pytest.importorskip("yourdfpy")
XACRO = '<a xmlns:xacro="http://ros.org/wiki/xacro">{}</a>'


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([*ROBOT[:-2], FLOATING.replace("floating", "spherical"), SPIN], "`rail`"),
        ([*ROBOT, LOOP], "closed loop"),
        (
            [*ROBOT[:-2], MIMIC.replace('"arm"/></joint>', '"arms"/></joint>'), SPIN],
            "`rail` follows `arms`",
        ),
        ([*ROBOT[:-1], SPIN.replace("</joint>", '<mimic joint="no"/></joint>')], "`lambda` follows `no`"),
        (["<link/>"], "<link>"),
        (
            [BASE.replace('ixx="0.2"', 'ixx="-0.2"'), *ROBOT[1:]],
            r"urdf:1: the <inertia> of `base-plate`",
        ),
        ([*ROBOT[:-1], SPIN, LOOP.replace("slider", "base-plate")], "cycle, `[a-z-]+` -> "),
        ([*ROBOT[:-2], RAIL.replace('lower="-1" upper="1"', 'lower="0" upper="0"'), SPIN], "`rail` are both 0"),
        ([*ROBOT[:-2], RAIL.replace('lower="-1" upper="1"', 'lower="0.2" upper="0.2"'), SPIN], "`rail` are both 0.2"),
        ([*ROBOT[:-2], RAIL.replace('effort="0"', 'effort="-5"'), SPIN], "effort of `rail` is -5; write 0 to"),
        ([*ROBOT[:3], '<link name="slider"/>', *ROBOT[4:]], "`slider` moves and has no mass"),
        (ROBOT[:-1], "no joint carries `wheel`"),
        ([*ROBOT[:-1], SPIN.replace('"wheel"', '"wheels"')], "Did you mean `wheel`"),
        ([BASE], "no joint can be driven"),
        (["<link>"], "cannot be read"),
        ([*ROBOT, XACRO.format("<xacro:gripper/>")], "<xacro:gripper>"),
        ([*ROBOT[:-1], SPIN.replace("<limit", XACRO.format("<xacro:if/>") + "<limit")], "<xacro:if>"),
        ([*ROBOT[:-2], MIMIC.replace("prismatic", "planar"), SPIN], "`rail` follows `arm`"),
    ],
)
def test_a_robot_that_a_model_file_cannot_hold_is_refused(
    written: Callable[..., Path], parts: list[str], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        model_file(written(*parts), "machine")


def test_a_missing_file_and_an_unknown_joint_are_refused(written: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.urdf"):
        model_file(tmp_path / "none.urdf", "none")
    with pytest.raises(ModelError, match="`rail`"):
        model_file(written(*ROBOT), "machine", ["rails"])


def test_all_faults_are_reported_at_once_with_their_lines(written: Callable[..., Path]) -> None:
    """A joint without limits, one with both limits zero, and one that follows a floating one."""
    tail = '<link name="tail">' + inertial(1) + "</link>"
    zero = SHOULDER.replace('lower="-1.5" upper="2.5"', 'lower="0" upper="0"')
    spin = SPIN.replace('"continuous"', '"floating"')
    wag = SPIN.replace("lambda", "wag").replace('"wheel"', '"tail"').replace('"continuous"', '"revolute"')
    rail = MIMIC.replace('joint="arm"', 'joint="lambda"')
    path = written(*(f"\n{part}" for part in (*ROBOT[:5], tail, zero, MOUNT, rail, spin, wag)))
    with pytest.raises(ModelError) as error:
        model_file(path, "machine")
    lines = path.read_text().splitlines()
    expected = ("arm", "are both 0"), ("rail", "`lambda`"), ("wag", "no limits")
    for name, words in expected:
        line = 1 + next(i for i, text in enumerate(lines) if f'<joint name="{name}"' in text)
        assert re.search(rf"machine\.urdf:{line}: .*`{name}` .*{words}", str(error.value))
    assert len(str(error.value).splitlines()) == len(expected)


def test_invalid_numbers_are_reported_at_once_with_their_lines(written: Callable[..., Path]) -> None:
    heavy = BASE.replace('ixx="0.2"', 'ixx="-0.2"')
    upside = RAIL.replace('lower="-1" upper="1"', 'lower="1" upper="-1"')
    path = written(heavy, ARM, *(f"\n{part}" for part in (TOOL, SLIDER, WHEEL, SHOULDER, MOUNT, upside)), SPIN)
    with pytest.raises(ModelError, match=r"urdf:1: .*`base-plate` .*\n.*urdf:\d+: .*`rail`"):
        model_file(path, "machine")


def test_invalid_numbers_and_missing_limits_are_reported_together(written: Callable[..., Path]) -> None:
    """An invalid part causes no further message, neither of its own nor of the joints that follow it."""
    light = TOOL.replace('ixx="0.2"', 'ixx="-0.2"')
    upside = RAIL.replace('lower="-1" upper="1"', 'lower="1" upper="-1"')
    wag = SPIN.replace('"continuous"', '"revolute"')
    follower = SHOULDER.replace("</joint>", '<mimic joint="rail"/></joint>')
    path = written(*(f"\n{part}" for part in (*ROBOT[:2], light, SLIDER, WHEEL, follower, MOUNT, upside, wag)))
    with pytest.raises(ModelError) as error:
        model_file(path, "machine")
    first, second, third = str(error.value).splitlines()
    assert re.search(r"urdf:4: .*`tool`", first)
    assert re.search(r"urdf:\d+: the lower limit of `rail`", second)
    assert re.search(r"urdf:\d+: .*`lambda` has no limits", third)
