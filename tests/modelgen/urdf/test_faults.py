"""What a URDF cannot say in a model file is refused, all faults at once, each with its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelgen import ModelError
from modelgen.urdf.read import model_file
from tests.modelgen.urdf.machine import (
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
def test_a_urdf_that_no_model_file_can_state_is_refused(written: Callable[..., Path], parts: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        model_file(written(*parts), "machine")


def test_missing_file_and_unknown_joint(written: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no file"):
        model_file(tmp_path / "none.urdf", "none")
    with pytest.raises(ModelError, match="Did you mean `rail`"):
        model_file(written(*ROBOT), "machine", ["rails"])


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
