"""Figures: they are written, they show something, and they survive runs with little to show."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from solver.errors import SolverError
from solver.evaluation import plots
from solver.evaluation.plots import _broken, coordinate, learning_curve, plot_run, value_and_policy
from solver.game import ClosedFormPolicy
from solver.plants.outcome import Rollouts, controller, rollouts
from solver.problem import Problem
from solver.problem.integrator import integrate_period
from solver.problem.parameters import Relative
from solver.runs.folder import METRICS
from solver.runs.metrics import read_metrics
from solver.training.settings import Settings
from solver.training.solution import RunDescription, Solution, load_solution, make_ensemble
from solver.value.frozen import FrozenValue
from tests.solver.references import limited_body


def assert_shows_something(path: Path, colours: int) -> None:
    """A picture of some size with at least so many colours that is not mostly one of them."""
    image = matplotlib.image.imread(path)
    assert min(image.shape[:2]) > 300
    quantised = (image[:, :, :3] * 15).astype(int) @ np.array([256, 16, 1])
    _, counts = np.unique(quantised, return_counts=True)
    assert len(counts) >= colours
    assert counts.max() < 0.98 * counts.sum()


@pytest.mark.slow
def test_plots_of_a_run_are_three_figures(run_copy: Path) -> None:
    paths = plot_run(run_copy, None, {"mass": Relative(1.3)}, None)
    assert [path.name for path in paths] == ["value_and_policy.png", "rollouts.png", "learning_curve.png"]
    for path, colours in zip(paths, (150, 20, 15), strict=True):
        assert path.parent == run_copy / "figures"
        assert_shows_something(path, colours)


@pytest.mark.slow
def test_figures_show_the_chosen_joint_and_the_changed_parameters(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[int, Rollouts, str]] = []

    def spy(solution: Solution, i: int, result: Rollouts, title: str) -> Figure:
        drawn.append((i, result, title))
        return value_and_policy(solution, i, result, title)

    monkeypatch.setattr(plots, "value_and_policy", spy)
    monkeypatch.setattr(plots, "coordinate", lambda _, joint: {"the one asked for": 0}[joint])
    for changes in ({}, {"mass": Relative(1.3)}):
        plot_run(run_copy, "the one asked for", changes, None)
    (_, nominal, _), (i, heavy, title) = drawn
    assert i == 0
    assert "mass=1.3x" in title
    assert torch.equal(nominal.x[0], heavy.x[0])
    problem = load_solution(run_copy).problem
    expected = integrate_period(problem, heavy.x[0].clone(), heavy.u[0], torch.tensor([1.3, 1.0])).x
    torch.testing.assert_close(heavy.x[1], expected)
    assert not torch.equal(heavy.x[1], nominal.x[1])
    labels = [axes.get_xlabel() for axes in value_and_policy(load_solution(run_copy), 0, heavy, title).axes]
    assert any("angle" in label for label in labels)


@pytest.mark.slow
def test_maps_show_value_and_inputs_at_their_states(begun: Callable[..., Path]) -> None:
    solution = load_solution(begun("double_pendulum"))
    x = torch.zeros(1, 4)
    x[0, 1], x[0, 3] = 0.5, 8.0
    result = rollouts(solution.problem, controller(solution.problem, solution.value), x, seconds=0.1)
    value, gradient = solution.value(x)
    u, _, _ = ClosedFormPolicy(solution.problem).respond(x, gradient)
    shown: list[Any] = [
        axes.collections[0] for axes in value_and_policy(solution, 1, result, "").axes if axes.get_title()
    ]
    for mesh, expected in zip(shown, (value[0], u[0, 0], u[0, 1]), strict=True):
        places = np.asarray(mesh.get_coordinates())
        corners = (places[1:, 1:] + places[:-1, :-1]) / 2.0  # the middles of the cells
        field = np.asarray(mesh.get_array()).reshape(corners.shape[:2])
        distance = np.abs((corners - [0.5, 8.0]) / [np.pi, 20.0]).sum(-1)
        i, j = np.unravel_index(distance.argmin(), distance.shape)
        span = field.max() - field.min()
        assert abs(field[i, j] - float(expected)) < 0.05 * span
        assert abs(field[-1 - i, j] - field[i, j]) > 1e-6 * span  # no mirror would show the same
    assert not np.array_equal(shown[1].get_array(), shown[2].get_array())


@pytest.mark.slow
def test_maps_of_a_limited_rotation_end_at_its_limit_and_white_is_no_input() -> None:
    """A body that turns by 0.5 rad at most, with torques from -0.1 to 0.5 N m. Untrained networks."""
    robot = copy.copy(limited_body())
    robot.metadata = replace(
        robot.metadata, inputs=tuple(replace(each, middle=0.2, limit=0.3) for each in robot.metadata.inputs)
    )
    problem = Problem(robot)
    run = RunDescription("limited_body", "", None, Settings(), "fast")
    ensemble = make_ensemble(robot, run.settings)
    solution = Solution(run, problem, ensemble, FrozenValue(ensemble), 0)
    x = torch.zeros(2, 0, len(problem.target))
    nobody = Rollouts(x[0, :, 0], x[0, :, 0], x[0, :, 0] > 0, x[0] > 0, x, x[:1, :, :3])
    panels = [axes for axes in value_and_policy(solution, 0, nobody, "").axes if axes.get_title()]
    assert panels[0].get_xlim() == pytest.approx((-0.5, 0.5), rel=0.01)
    assert [panel.collections[0].get_clim() for panel in panels[1:]] == [pytest.approx((-0.5, 0.5))] * 3


def test_learning_curve_has_the_band_of_the_returns(run_copy: Path) -> None:
    rows = [row for row in read_metrics(run_copy) if "return_mean" in row]
    (axes, *_) = learning_curve(rows, "").axes
    (path, *_) = next(band for band in axes.collections if isinstance(band, PolyCollection)).get_paths()
    band = np.asarray(path.vertices)[:, 1]
    assert band.min() == pytest.approx(min(row["return_mean"] - row["return_spread"] for row in rows))
    assert band.max() == pytest.approx(max(row["return_mean"] + row["return_spread"] for row in rows))


def test_coordinate_is_the_named_joint_or_the_first_continuous_one(finished_run: Path) -> None:
    problem = load_solution(finished_run).problem
    assert coordinate(problem, None) == coordinate(problem, "angle") == 0
    with pytest.raises(SolverError, match="`angle`"):
        coordinate(problem, "angel")


@pytest.mark.slow
def test_run_without_metrics_has_no_learning_curve(run_copy: Path) -> None:
    (run_copy / METRICS).unlink()
    assert all(path.stat().st_size > 5000 for path in plot_run(run_copy, None, {}, None))


def test_figures_that_cannot_be_written_are_an_error(run_copy: Path) -> None:
    (run_copy / "figures").write_text("in the way")
    with pytest.raises(SolverError, match="figures"):
        plot_run(run_copy, None, {}, None)


def test_lines_have_a_gap_where_an_angle_wraps() -> None:
    angle = torch.tensor([3.0, 3.1, -3.1, -3.0])
    first, second = _broken(angle, True, torch.arange(4.0))
    assert [math.isnan(v) for v in first] == [False, False, True, False, False]
    assert [math.isnan(v) for v in second] == [False, False, True, False, False]
    assert len(_broken(angle, False, angle)[0]) == 4
