"""What the figures draw, against other ways to the same numbers."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from modelgen.identification.figures import html, least_known, prediction, projections, shadow, welched
from modelgen.identification.identify import Identified
from modelgen.identification.result import content
from modelgen.loader import CompiledRobot
from tests.modelgen.support.forgery import with_free_text
from tests.modelgen.support.logs import recordings


def test_the_shadow_is_the_outline_of_all_points() -> None:
    """Of 40000 points of the ellipsoid none lies outside, and in every direction one comes close."""
    random = np.random.default_rng(0)
    root, centre = random.normal(size=(4, 4)), random.normal(size=4)
    sphere = random.normal(size=(40000, 4))
    points = centre + (sphere / np.linalg.norm(sphere, axis=1, keepdims=True)) @ root.T
    outline = shadow(centre, root @ root.T, (0, 2))
    for angle in np.linspace(0, np.pi, 7):
        along = np.array([np.cos(angle), np.sin(angle)])
        reached, drawn = (along @ points[:, [0, 2]].T).max(), (along @ outline).max()
        assert reached == pytest.approx(drawn, abs=0.03 * float(np.linalg.norm(root)))


def test_the_spectrum_holds_the_power_of_a_sine_at_its_frequency() -> None:
    time = np.arange(4096) * 0.01
    frequency, power = welched(0.3 * np.sin(2 * np.pi * 12.5 * time), 0.01)
    assert frequency[power.argmax()] == 12.5
    assert power.sum() * (frequency[1] - frequency[0]) == pytest.approx(0.3**2 / 2, rel=0.01)


@pytest.mark.slow
def test_the_prediction_has_the_stated_error(hanging: CompiledRobot, found: Identified) -> None:
    held = found.held_out[0]
    above, below = prediction(hanging, held).axes
    measured, *predicted = (np.array(line.get_xydata(), float) for line in above.lines)
    drawn = np.concatenate(predicted)
    order = np.argsort(measured[:, 0])
    np.testing.assert_array_equal(measured[order, 0], drawn[:, 0])
    error = np.sqrt(((drawn[:, 1] - measured[order, 1]) ** 2).mean())
    assert error == pytest.approx(held.error[0], rel=1e-9)
    assert len(below.lines) == len(predicted) + 1


def test_the_null_direction_is_named_first_and_drawn(hanging: CompiledRobot, found: Identified) -> None:
    first = least_known(hanging, found.ellipsoid)[0]
    assert "mass up" in first or "mass down" in first
    assert "length" in first.partition(":")[0]
    assert "damping" not in first
    assert len([axes for axes in projections(hanging, found).axes if axes.axison]) == 3


@pytest.mark.slow
def test_a_script_in_a_name_stays_text(hanging: CompiledRobot, found: Identified, tmp_path: Path) -> None:
    """An artifact with such names is refused when it is loaded; this is the second wall."""
    evil = "</pre><script>alert(1)</script>"
    robot = copy.copy(hanging)
    robot.name, robot.metadata = evil, with_free_text(hanging.metadata, evil)
    robot.parameter_names = tuple(f"{name}{evil}" for name in robot.parameter_names)
    logs = recordings(hanging, tmp_path, np.array([1.2, 0.6, 0.12]), 2, 1e-3)
    text = html(robot, content(hanging, logs, found), found, evil)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
