"""Figures of robustness draw the numbers of the JSON file, where they belong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection

from modelgen.errors import ReliabilityWarning
from modelgen.loader import CompiledRobot
from solver.evaluation import robustness
from solver.evaluation.robustness import Trial, measure, measure_each, shares
from solver.evaluation.robustness_figures import figure, picture
from solver.evaluation.statistics import ParameterRange

MASS = ParameterRange("mass", 0.5, 1.5, 3, False)


def test_parameters_without_multiples_are_left_out_with_a_word(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[str], CompiledRobot]
) -> None:
    metadata = load("pendulum").metadata
    mass, length = metadata.parameters
    level = replace(length, name="slope", value=0.0, lower=-0.1, upper=0.2)
    robot = SimpleNamespace(metadata=replace(metadata, parameters=(mass, level)))
    opened = SimpleNamespace(problem=SimpleNamespace(robot=robot))
    monkeypatch.setattr(robustness, "policy_reference", lambda *_: SimpleNamespace(load=lambda: opened))
    monkeypatch.setattr(robustness, "measure", lambda _, axes, *__: axes[0].parameter)
    with pytest.warns(ReliabilityWarning, match=r"slope is 0 .*`--parameter slope --from -0\.1 --to 0\.2`"):
        assert measure_each([Path("run")], Trial()) == ["mass"]


@pytest.mark.slow
def test_lines_show_the_statistics_and_their_intervals(runs: list[Path]) -> None:
    result = measure(runs, [MASS], Trial(episodes=3))
    drawn = figure(result)
    axis = result.axes[0]
    for panel, quantity in zip(drawn.axes, ("return", "success_rate", "state_reward", "action_reward"), strict=True):
        median = quantity if quantity == "success_rate" else f"{quantity}_50"
        assert [line.get_xdata() for line in panel.lines[-1:]] == [[axis.nominal, axis.nominal]]
        for line, group in zip(panel.lines, result.groups, strict=False):
            assert np.asarray(line.get_xdata()).tolist() == list(axis.values)
            assert np.asarray(line.get_ydata()).tolist() == group.statistics[median].value
        bars = [bar for bar in panel.collections if isinstance(bar, LineCollection)]
        (segments,) = [bar.get_segments() for bar in bars]  # of the group of three
        ends = zip(result.groups[0].statistics[median].low, result.groups[0].statistics[median].high, strict=True)
        np.testing.assert_allclose([segment[:, 1] for segment in segments], list(ends))
        bands = [band for band in panel.collections if isinstance(band, PolyCollection)]
        assert len(bands) == (0 if quantity == "success_rate" else 2)
        for band, group in zip(bands, result.groups, strict=False):
            heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
            for share, extreme in ((25, min), (75, max)):
                assert extreme(heights) == pytest.approx(extreme(group.statistics[f"{quantity}_{share}"].value))


@pytest.mark.slow
def test_picture_shows_every_parameter_over_its_error_and_the_share_near_nominal(runs: list[Path]) -> None:
    results = measure_each(runs, Trial(episodes=2))
    assert [result.axes[0].parameter for result in results] == ["mass", "length"]
    errors = np.linspace(-60.0, 60.0, 25)
    panels = [axes for axes in picture(results).axes if axes.get_visible()]
    for above, below, result in zip(panels[:2], panels[2:], results, strict=True):
        np.testing.assert_allclose(result.axes[0].changes, 1.0 + errors / 100.0)
        for panel, name in ((above, "return_50"), (below, "success_rate")):
            for line, group in zip(panel.lines, result.groups, strict=True):
                np.testing.assert_allclose(np.asarray(line.get_xdata()), errors, atol=1e-9)
                assert np.asarray(line.get_ydata()).tolist() == group.statistics[name].value
    for group in results[0].groups:
        rates = [
            np.array(each.groups[results[0].groups.index(group)].statistics["success_rate"].value) for each in results
        ]
        expected = np.mean(np.concatenate([rate[8:17] for rate in rates]) >= 0.95)  # -20 to 20 %
        assert shares(results)[group.label] == pytest.approx(expected)


def test_picture_has_both_panels_of_each_of_five_parameters(runs: list[Path]) -> None:
    result = measure([runs[0]], [MASS], Trial(episodes=1))
    shown = [axes for axes in picture([result] * 5).axes if axes.get_visible()]
    above, below = ([axes for axes in shown if bool(axes.get_title()) == titled] for titled in (True, False))
    assert (len(above), len(below)) == (5, 5)
    assert all(axes.lines for axes in shown)
    assert all(axes.xaxis.get_tick_params()["labelbottom"] for axes in below)  # its numbers are shown


def test_map_marks_the_lowest_value_and_the_nominal_robot(runs: list[Path]) -> None:
    result = measure([runs[0]], [MASS, ParameterRange("length", 0.8, 1.4, 4, False)], Trial(episodes=2))
    panels = [axes for axes in figure(result).axes if axes.get_title()]
    for panel, name in zip(panels, ("return_50", "return_worst", "success_rate"), strict=True):
        field = np.array(result.groups[0].statistics[name].value)
        np.testing.assert_array_equal(np.asarray(panel.collections[0].get_array()).reshape(4, 3), field.T)
        i, j = np.unravel_index(field.argmin(), field.shape)
        lowest, nominal = ([*np.asarray(line.get_xdata()), *np.asarray(line.get_ydata())] for line in panel.lines)
        assert lowest == [result.axes[0].values[i], result.axes[1].values[j]]
        assert nominal == [1.0, 1.0]
