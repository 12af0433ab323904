"""`solver animate`: what is drawn is the rollout, and one picture a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from modelgen.loader import CompiledRobot
from modelgen.style.gif import FRAMES
from solver.cli import main
from solver.evaluation.plots import DPI, SIDE, Scene, animate


def frames(path: Path) -> list[np.ndarray]:
    """Grey pixels of every frame."""
    with Image.open(path) as image:
        pictures = []
        for index in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(index)
            pictures.append(np.asarray(image.convert("L")))
        return pictures


@pytest.mark.slow
def test_two_equal_runs_are_drawn_side_by_side(finished_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.gif"
    assert main(["animate", str(finished_run), str(finished_run), "--out", str(path)]) == 0
    with Image.open(path) as image:
        durations = 0
        for index in range(image.n_frames):  # type: ignore[attr-defined]
            image.seek(index)
            durations += image.info["duration"]
    assert durations == pytest.approx(1000 * (1 + 1 + 1 / FRAMES), abs=60)  # the horizon, and a second of rest
    picture = frames(path)[0]
    assert picture[:2].min() > 250  # no title is cut off
    middle = picture[-round(SIDE * DPI) : -20]  # without titles and clock
    half = middle.shape[1] // 2
    assert np.abs(middle[:, :half].astype(int) - middle[:, -half:]).mean() < 3.0
    assert middle.min() < 100


def test_segments_are_those_of_the_states_at_the_frames(load: Callable[[str], CompiledRobot]) -> None:
    robot = load("pendulum")
    rate = robot.metadata.task.control_rate
    x = np.stack([np.linspace(0.0, 1.0, 251), np.zeros(251)], axis=1).astype(np.float32)
    theta = np.array([1.0, 1.3], dtype=np.float32)
    segments = Scene(robot, theta, x, "").segments()
    assert len(segments) == 251 / rate * FRAMES // 1 + 1
    for frame in (0, 10, len(segments) - 1):
        angle = x[min(frame * round(rate / FRAMES), 250), 0]
        np.testing.assert_allclose(segments[frame, 0, 1], 1.3 * np.array([np.sin(angle), np.cos(angle)]), atol=1e-6)


@pytest.mark.slow
def test_mistakes_are_named(finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([str(finished_run), "--out", str(tmp_path / "a.mp4")], "a.gif"),
        ([str(finished_run), "--start", "100"], "from 0 to 99"),
        ([str(finished_run), "--set", "weight=2x"], "weight"),
    ):
        assert main(["animate", *words]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_robot_that_nothing_draws_is_refused(load: Callable[[str], CompiledRobot], tmp_path: Path) -> None:
    robot = load("pendulum")

    class Blank(Scene):
        def segments(self) -> np.ndarray:
            return np.zeros((1, 0, 2, 2))

    scene = Blank(robot, np.ones(2, np.float32), np.zeros((1, 2), np.float32), "")
    with pytest.raises(Exception, match=r"robot\.draw"):
        animate([scene], tmp_path / "blank.gif")
