"""Every guess and omission of an import is reported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from modelgen.builder import build_artifact
from modelgen.importers.urdf import model_file
from tests.modelgen.importers.machine import (
    RAIL,
    ROBOT,
    SPIN,
    WHEEL,
    load_text,
)

pytest.importorskip("yourdfpy")


def test_losses_of_a_planar_joint_are_reported_as_left_out(written: Callable[..., Path]) -> None:
    losing = RAIL.replace('type="prismatic"', 'type="planar"').replace("<axis", '<dynamics damping="5"/><axis')
    assert "damping and friction of rail" in model_file(written(*ROBOT[:-2], losing, SPIN), "machine")


def test_a_missing_rate_limit_is_reported_as_a_guess(written: Callable[..., Path]) -> None:
    warnings: list[str] = []
    text = model_file(written(*ROBOT[:-1], SPIN.replace('velocity="9"', "")), "machine", warn=warnings.append)
    assert "rate_limit=10)  # a guess" in text
    assert "lambda_joint" in warnings[0]


def test_a_rate_limit_of_1000_is_replaced_by_a_guess(written: Callable[..., Path]) -> None:
    """Solo, Bolt and others have 1000 or 10000 rad/s, which no control rate simulates."""
    warnings: list[str] = []
    spin = SPIN.replace('velocity="9"', 'velocity="1000"')
    text = model_file(written(*ROBOT[:-1], spin), "machine", warn=warnings.append)
    assert re.search("rate_limit=10.*1000", text)
    assert "lambda_joint" in warnings[0]


@pytest.mark.parametrize(
    ("kind", "limit", "line", "words"),
    [
        ("revolute", 'lower="-0.5" upper="1"', "limit=1,", "lambda_joint from -0.5 to 1"),
        ("revolute", 'lower="0.5" upper="2"', "limit=0.75,", "lambda_joint from 1.25"),
        ("revolute", 'lower="-1e16" upper="1e16"', "continuous=True", "limits of lambda_joint"),
        ("prismatic", 'lower="-1e16" upper="1e16"', "limit=10,", "limits of lambda_joint"),
        ("revolute", 'lower="-2" upper="2"', "limit=2,", ""),
    ],
)
@pytest.mark.slow
def test_a_range_that_a_model_file_cannot_hold_is_reported_and_replaced(
    written: Callable[..., Path], tmp_path: Path, kind: str, limit: str, line: str, words: str
) -> None:
    warnings: list[str] = []
    spin = SPIN.replace('"continuous"', f'"{kind}"').replace('velocity="9"', f'{limit} velocity="9"')
    text = model_file(written(*ROBOT[:-1], spin), "machine", warn=warnings.append)
    assert line in next(row for row in text.splitlines() if row.startswith("lambda_joint = "))
    if words:
        assert any(words in warning for warning in warnings)
    else:
        assert not any("lambda_joint" in warning for warning in warnings)
    load_text(text, tmp_path)


@pytest.mark.parametrize(("kind", "inertia"), [("continuous", 0.2), ("prismatic", 0.4)])
def test_an_effort_that_no_build_simulates_is_reported(written: Callable[..., Path], kind: str, inertia: float) -> None:
    """The threshold is 100 times 9 rad/s or m/s within 1/250 s; the wheel has 0.2 kg m^2 about x and 0.4 kg."""
    effort = 100 * 9 * 250 * inertia
    for share, words in ((0.99, 0), (1.01, 1)):
        warnings: list[str] = []
        limit = f'lower="-1" upper="1" velocity="9" effort="{share * effort}"'
        spin = SPIN.replace('"continuous"', f'"{kind}"').replace('velocity="9" effort="1"', limit)
        model_file(written(*ROBOT[:-1], spin), "machine", warn=warnings.append)
        assert sum("lambda_joint" in warning and "robot.rotor" in warning for warning in warnings) == words


@pytest.mark.slow
def test_dry_friction_of_a_light_joint_can_be_simulated(written: Callable[..., Path], tmp_path: Path) -> None:
    """Z1 and TALOS have 1 N m at the fingers: with a smoothing of 0.01 rad/s, no number of steps is enough."""
    warnings: list[str] = []
    light = WHEEL.replace('"0.2"', '"2e-4"').replace('"0.3"', '"3e-4"').replace('"0.25"', '"2.5e-4"')
    light = re.sub(r'i(xy|xz|yz)="[^"]*"', r'i\1="0"', light).replace('xyz="0 0 0.05"', 'xyz="0 0 0"')
    spin = SPIN.replace("</joint>", '<dynamics friction="1"/></joint>')
    text = model_file(written(*ROBOT[:4], light, *ROBOT[5:-1], spin), "machine", warn=warnings.append)
    assert "robot.dry_friction(lambda_joint, lambda_joint_friction, smoothing=2.5)  # a guess" in text
    assert "robot.dry_friction(arm, arm_friction, smoothing=0.01)\n" in text
    assert any("dry friction of lambda_joint" in warning for warning in warnings)
    report = build_artifact(load_text(text, tmp_path), tmp_path / "generated")
    assert all("holds the target" in warning for warning in report.warnings)  # gravity acts along the rail


def test_a_root_on_the_ground_is_reported_unless_it_floats(written: Callable[..., Path]) -> None:
    warnings: list[str] = []
    model_file(written(*ROBOT), "machine", warn=warnings.append)
    assert any("--planar base-plate" in warning for warning in warnings)
    warnings.clear()
    model_file(written(*ROBOT), "machine", planar=["base-plate"], warn=warnings.append)
    assert not any("--planar" in warning for warning in warnings)
