"""What an import guesses or leaves out is said."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen.builder import build_artifact
from modelgen.urdf.read import model_file
from tests.modelgen.urdf.machine import (
    RAIL,
    ROBOT,
    SPIN,
    WHEEL,
    load_text,
)

pytest.importorskip("yourdfpy")


def test_what_a_planar_joint_loses_is_said(written: Callable[..., Path]) -> None:
    losing = RAIL.replace('type="prismatic"', 'type="planar"').replace("<axis", '<dynamics damping="5"/><axis')
    assert "damping and friction of rail are left out" in model_file(written(*ROBOT[:-2], losing, SPIN), "machine")


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


@pytest.mark.parametrize(
    ("kind", "limit", "line", "words"),
    [
        ("revolute", 'lower="0.5" upper="2"', "limit=2,", "lambda_joint from 0.5 to 2. State the real range"),
        ("revolute", 'lower="-1e16" upper="1e16"', "continuous=True", "limits of lambda_joint are too large to be one"),
        ("prismatic", 'lower="-1e16" upper="1e16"', "limit=10,", "limits of lambda_joint are too large to be one"),
        ("revolute", 'lower="-2" upper="2"', "limit=2,", ""),
    ],
)
def test_a_range_that_a_file_cannot_state_is_said(
    written: Callable[..., Path], tmp_path: Path, kind: str, limit: str, line: str, words: str
) -> None:
    """And what is written in its place can be built."""
    said: list[str] = []
    spin = SPIN.replace('"continuous"', f'"{kind}"').replace('velocity="9"', f'{limit} velocity="9"')
    text = model_file(written(*ROBOT[:-1], spin), "machine", warn=said.append)
    assert line in next(each for each in text.splitlines() if each.startswith("lambda_joint = "))
    assert any(words in each for each in said) if words else not any("lambda_joint" in each for each in said)
    load_text(text, tmp_path)


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
    assert any("--planar base-plate" in each for each in said)
    said.clear()
    model_file(written(*ROBOT), "machine", planar=["base-plate"], warn=said.append)
    assert not any("--planar" in each for each in said)
