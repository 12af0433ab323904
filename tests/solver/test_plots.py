"""Figures: they are written, they show something, and they survive runs with little to show."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from solver import plots
from solver.errors import SolverError
from solver.evaluation import Rollouts
from solver.plots import _broken, coordinate, plot_run, value_and_policy
from solver.policy import Solution, load_solution
from solver.run_folder import METRICS
from solver.settings import Settings
from solver.training import start


def assert_shows_something(path: Path, colours: int) -> None:
    """A picture of some size with at least so many colours that is not mostly one of them."""
    image = matplotlib.image.imread(path)
    assert min(image.shape[:2]) > 300
    quantised = (image[:, :, :3] * 15).astype(int) @ np.array([256, 16, 1])
    _, counts = np.unique(quantised, return_counts=True)
    assert len(counts) >= colours
    assert counts.max() < 0.98 * counts.sum()


def test_three_figures_of_the_pendulum(run_copy: Path) -> None:
    paths = plot_run(run_copy, None, ["mass=1.3x"], None)
    assert [path.name for path in paths] == ["value_and_policy.png", "rollouts.png", "learning_curve.png"]
    for path, colours in zip(paths, (200, 20, 15), strict=True):
        assert path.parent == run_copy / "figures"
        assert_shows_something(path, colours)


def test_two_inputs_and_two_joints(tiny: Callable[..., Settings], tmp_path: Path) -> None:
    start("double_pendulum", "fast", tiny(iterations=1), tmp_path, None, lambda _: None)
    for path in plot_run(tmp_path, "elbow", [], None):
        assert_shows_something(path, 15)


def test_the_joint_and_the_changed_parameters_are_what_is_drawn(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, Rollouts, str]] = []

    def spy(solution: Solution, i: int, result: Rollouts, title: str) -> Figure:
        drawn.append((i, result, title))
        return value_and_policy(solution, i, result, title)

    monkeypatch.setattr(plots, "value_and_policy", spy)
    monkeypatch.setattr(plots, "coordinate", lambda _, joint: {"the one asked for": 0}[joint])
    for changes in ([], ["mass=1.3x"]):
        plot_run(run_copy, "the one asked for", changes, None)
    (_, nominal, _), (i, heavy, title) = drawn
    assert i == 0
    assert "mass=1.3x" in title
    assert torch.equal(nominal.x[0], heavy.x[0])
    game = load_solution(run_copy).game
    expected = game.hold(heavy.x[0].clone(), heavy.u[0], torch.tensor([1.3, 1.0]))
    torch.testing.assert_close(heavy.x[1], expected)
    assert not torch.equal(heavy.x[1], nominal.x[1])
    labels = [axes.get_xlabel() for axes in value_and_policy(load_solution(run_copy), 0, heavy, title).axes]
    assert any("angle" in label for label in labels)


def test_coordinates_by_name(finished_run: Path) -> None:
    game = load_solution(finished_run).game
    assert coordinate(game, None) == coordinate(game, "angle") == 0
    with pytest.raises(SolverError, match="Did you mean `angle`"):
        coordinate(game, "angel")


def test_a_run_without_metrics_yet(run_copy: Path) -> None:
    (run_copy / METRICS).unlink()
    assert all(path.stat().st_size > 5000 for path in plot_run(run_copy, None, [], None))


def test_figures_that_cannot_be_written(run_copy: Path) -> None:
    (run_copy / "figures").write_text("in the way")
    with pytest.raises(SolverError, match="cannot write"):
        plot_run(run_copy, None, [], None)


def test_lines_break_where_an_angle_wraps() -> None:
    angle = torch.tensor([3.0, 3.1, -3.1, -3.0])
    first, second = _broken(angle, True, torch.arange(4.0))
    assert [math.isnan(v) for v in first] == [False, False, True, False, False]
    assert [math.isnan(v) for v in second] == [False, False, True, False, False]
    assert len(_broken(angle, False, angle)[0]) == 4
