"""Delay, offsets and gains: derivatives against differences, and values that simulated recordings have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen.cli import main
from modelgen.errors import ModelError
from modelgen.identification.columns import columns
from modelgen.identification.fit import fit
from modelgen.identification.identify import identify
from modelgen.identification.model import KINDS, Kind, Model
from modelgen.identification.recordings import Recording, read
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import log, silent, write

pytestmark = pytest.mark.slow

RATE, EVERY = 1000, 10  # Hz of the simulation, and rows of it in a row of a recording
DELAY, OFFSET, GAIN = 0.023, 0.04, 0.85


def recorded(
    robot: CompiledRobot, folder: Path, theta: Any, delay: float = 0.0, offset: float = 0.0, gain: float = 1.0
) -> list[Recording]:
    """Two recordings at 100 Hz, with noise, of a robot that gets `gain` times the inputs in the file."""
    found, random = [], np.random.default_rng(0)
    for number in range(2):
        time, states, inputs = log(robot, theta, [3.0, 0.0], 4.0, RATE, seed=number)
        late = np.maximum(np.arange(len(time)) - round(delay * RATE), 0)
        seen = states[late] + offset + 5e-4 * random.normal(size=states.shape)
        rows = slice(0, None, EVERY)
        path = write(folder / f"{number}.csv", robot, time[rows], seen[rows], inputs[rows] / gain)
        found.append(read(path, robot.metadata, columns((), robot.metadata)))
    return found


def test_derivatives_are_those_of_central_differences(hanging: CompiledRobot, tmp_path: Path) -> None:
    model = Model(hanging, KINDS)
    windows = model.cut(recorded(hanging, tmp_path, np.array([1.2, 0.6, 0.12])), 0.5)
    theta = model.nominal + np.array([0, 0, 0, 0.0013, 0.02, 0.1])
    assert model.names[3:] == ("delay", "offset of angle", "gain of torque")
    found = model.simulate(windows, windows.starts, theta)
    compared = ~np.isnan(windows.measured[..., 0])
    for index in range(len(theta)):
        step = 1e-5 * np.eye(len(theta))[index]
        ends = [model.simulate(windows, windows.starts, theta + sign * step).x for sign in (1, -1)]
        difference = (ends[0] - ends[1])[compared] / 2e-5
        near = 1e-3 * np.abs(difference).max()  # of a line between samples
        np.testing.assert_allclose(found.dx_dtheta[compared][..., index], difference, atol=near)


def test_delay_and_offset_are_found(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """And they spoil the parameters of a fit that does not know them."""
    truth = np.array([1.1, 0.9])
    logs = recorded(pendulum, tmp_path, truth, DELAY, OFFSET)
    found = identify(Model(pendulum, ("offset", "delay")), logs, 0.5, silent)
    np.testing.assert_allclose(found.whole.centre, [*truth, DELAY, OFFSET], rtol=0.02)
    away = np.array([*truth, DELAY, OFFSET]) - found.whole.centre
    assert away @ np.linalg.solve(found.whole.shape, away) < 1.0
    assert np.ptp(found.ellipsoid.shape.diagonal()) < 1e-3
    blind = identify(Model(pendulum), logs, 0.5, silent).ellipsoid
    assert np.abs(blind.centre - truth).max() > 5 * np.abs(away[:2]).max()


def test_the_first_fit_takes_the_shortest_windows_that_a_delay_leaves(pendulum: CompiledRobot, tmp_path: Path) -> None:
    logs = recorded(pendulum, tmp_path, np.array([1.1, 0.9]), DELAY)
    lines: list[str] = []
    estimates: tuple[tuple[Kind, ...], ...] = ((), ("delay",))
    for estimated in estimates:
        fit(Model(pendulum, estimated), logs, 0.5, lines.append)
    assert [line.split(" of ")[1] for line in lines if "first fit" in line] == ["0.125 s", "0.2 s"]


def test_a_gain_is_found_where_something_is_known(
    hanging: CompiledRobot, pendulum: CompiledRobot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a known inertia; not where all masses may be as wrong as the gain, and this is said."""
    truth = np.array([1.2, 0.6, 0.12])
    found = identify(Model(hanging, ("gain",)), recorded(hanging, tmp_path, truth, gain=GAIN), 0.5, silent).whole
    assert found.centre[3] == pytest.approx(GAIN, rel=0.02)
    assert found.identified[3]
    recorded(pendulum, tmp_path, np.array([1.1, 0.9]), gain=GAIN)
    logs = [str(tmp_path / f"{number}.csv") for number in range(2)]
    out = tmp_path / "found.json"
    assert main(["identify", "pendulum", *logs, "--estimate", "gain", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "not told apart: mass up by 10 % with gain of torque up by 10 %" in said
    assert "gain of torque: " in said
    content = json.loads(out.read_text())
    assert list(content["parameters"]) == content["ellipsoid"]["names"] == ["mass", "length"]
    assert not content["effects"]["gain of torque"]["identified"]
    (direction,) = (each["direction"] for each in content["unidentifiable"])
    assert set(direction) == {"mass", "length"}


def test_a_known_delay_is_taken_off(pendulum: CompiledRobot, tmp_path: Path) -> None:
    truth = np.array([1.1, 0.9])
    logs = recorded(pendulum, tmp_path, truth, delay=DELAY)
    away = [
        np.abs(fit(Model(pendulum, known_delay=delay), logs, 0.5, silent)[1].theta / truth - 1).max()
        for delay in (0.0, DELAY)
    ]
    assert away[1] < 0.01
    assert away[0] > 5 * away[1]


def test_a_wrong_choice_of_effects_is_refused(
    pendulum: CompiledRobot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = recorded(pendulum, tmp_path, None)
    assert main(["identify", "pendulum", str(logs[0].path), "--estimate", "delay", "gian"]) == 2
    assert "gain" in capsys.readouterr().err
    for words, said in ((["--estimate", "delay"], "write one of them"), ([], None)):
        assert main(["identify", "pendulum", str(logs[0].path), "--delay", "0.01" if said else "-1", *words]) == 2
        assert (said or "--delay") in capsys.readouterr().err
    with pytest.raises(ModelError, match=r"0\.5 s .*0\.2 s.*window"):
        identify(Model(pendulum, ("delay",), 0.2), logs, 0.5, silent)
