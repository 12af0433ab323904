"""`modelgen predict`: the file gives back what predicted, a robot that has changed is noticed, mistakes exit with 2."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelgen.cli import main
from modelgen.errors import ModelError
from modelgen.identification import identified_file, result
from modelgen.identification.forecast import forecasts
from modelgen.identification.identify import Identified, identify
from modelgen.identification.model import Model
from modelgen.identification.prediction import in_half_widths, predict, read
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import recordings, silent

pytestmark = pytest.mark.slow

TRUTH = np.array([1.1, 0.9])  # mass, length
Stored = tuple[Identified, Path]


@pytest.fixture(scope="module")
def stored(pendulum: CompiledRobot, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """Of three recordings with a delay that is estimated, and the file of it."""
    folder = tmp_path_factory.mktemp("stored")
    logs = recordings(pendulum, folder, TRUTH, 3, 1e-3)
    found = identify(Model(pendulum, ("delay",), longest_delay=0.02), logs, 0.5, silent)
    identified_file.write(folder / "found.json", result.content(pendulum, logs, found))
    return found, folder / "found.json"


def test_the_file_gives_back_what_predicted(pendulum: CompiledRobot, stored: Stored, tmp_path: Path) -> None:
    found, path = stored
    predictor, logs = read(path, pendulum), recordings(pendulum, tmp_path, TRUTH, 2, 1e-3, seed=5)
    wanted = forecasts(found.model, logs, found.theta, found.deviations, found.ellipsoid.shape)
    assert found.bands is not None
    within = (np.abs(wanted.errors) <= found.bands.about(wanted))[..., 0]
    (outcome,) = predict(predictor, logs).outcomes  # no rate was measured
    known = ~np.isnan(wanted.errors[..., 0])
    assert (outcome.state, outcome.predictions) == (0, len(wanted.begin))
    assert outcome.share == pytest.approx(within[known].mean())
    assert outcome.share >= 0.95
    ratio = np.abs(wanted.errors) / found.bands.about(wanted)
    worst = outcome.worst
    assert np.max(in_half_widths(worst.error, worst.half_width)) == pytest.approx(np.nanmax(ratio))
    (each,) = np.flatnonzero((wanted.recording == worst.recording) & (wanted.begin == worst.begin))
    assert np.nanmax(ratio[:, each]) == np.nanmax(ratio)


def test_a_robot_that_has_changed_is_noticed(
    pendulum: CompiledRobot, stored: Stored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, truth, code in (("same", TRUTH, 0), ("heavier", TRUTH * [1.15, 1.0], 1)):
        (tmp_path / name).mkdir()
        logs = [str(each.path) for each in recordings(pendulum, tmp_path / name, truth, 2, 1e-3, seed=7)]
        picture = tmp_path / name / "worst.png"
        words = ["predict", "pendulum", *logs, "--identified", str(stored[1]), "--plot", str(picture)]
        assert main(words) == code
        said = capsys.readouterr().out
        assert picture.read_bytes()[:4] == b"\x89PNG"
        assert said.startswith("angle: ")
        assert (", fewer than the 95%" in said) == bool(code)
        assert any(f"worst in {each} at" in said for each in logs)
        assert main([*words, "--json"]) == code
        about = json.loads(capsys.readouterr().out)
        assert (about["robot"], about["holds"]) == ("pendulum", code == 0)
        (angle,) = about["states"].values()  # no rate was measured
        assert (angle["share"] >= about["content"]) == about["holds"]
        assert angle["worst"]["recording"] in logs
        assert f"off by {angle['worst']['off']:.3g} rad, {angle['worst']['half_widths']:.3g} half widths" in said
    assert "angle_rate" not in said


def test_a_recording_that_is_too_short_is_left_out(
    pendulum: CompiledRobot, stored: Stored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = recordings(pendulum, tmp_path, TRUTH, 1, 1e-3, seed=5)[0].path
    short = tmp_path / "short.csv"
    short.write_text("".join(whole.read_text().splitlines(keepends=True)[:40]))
    said = []
    for logs in ([whole], [short, whole]):
        words = ["predict", "pendulum", *map(str, logs), "--identified", str(stored[1])]
        assert main(words) == 0
        said.append(capsys.readouterr().out)
        assert main([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["left_out"] == [str(each) for each in logs if each == short]
    assert said[1] == f"{said[0]}{short} is left out: no stretch of 0.67 s without a gap\n"


def test_no_forecast_begins_where_nothing_was_measured(
    pendulum: CompiledRobot, stored: Stored, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells of 0.3 s are empty: twice as long as the past of a forecast, and shorter than the whole of it."""
    path = recordings(pendulum, tmp_path, TRUTH, 1, 1e-3, seed=5)[0].path
    worst, predictions = [], []
    for _ in range(2):
        assert main(["predict", "pendulum", str(path), "--identified", str(stored[1]), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["states"]["angle"]
        worst.append(found["worst"]["half_widths"])
        predictions.append(found["predictions"])
        lines = [line.split(",") for line in path.read_text().splitlines()]
        emptied = [[t, "", u] if 150 < k <= 180 else [t, x, u] for k, (t, x, u) in enumerate(lines)]
        path.write_text("".join(f"{','.join(row)}\n" for row in emptied))
    assert worst[1] <= 1.1 * worst[0]
    assert 0.5 * predictions[0] < predictions[1] < predictions[0]


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in a JSON file."""
    yield path
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield from leaves(value, (*path, key))


@given(st.data(), st.sampled_from([None, "x", -1.0, float("nan"), [], {}, True, 1e300]))
def test_an_edited_file_is_refused_or_predicts(pendulum: CompiledRobot, stored: Stored, data: Any, value: Any) -> None:
    whole = json.loads(stored[1].read_text())
    parts = [("prediction",), ("ellipsoid",), ("effects",), ("residual",)]
    places = [(*part, *leaf) for part in parts for leaf in leaves(whole[part[0]])]
    place = data.draw(st.sampled_from(places))
    inner: Any = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    path = stored[1].with_name("edited.json")
    path.write_text(json.dumps(whole))
    said = "edited.json"
    try:
        assert np.isfinite(read(path, pendulum).theta).all()
    except ModelError as error:
        said = str(error)
    assert "edited.json" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs LOG.csv"),
        (["LOG", "LOG"], "has the same content as"),
        (["LOG", "--identified", "none.json"], "cannot read none.json"),
        (["LOG", "--identified", "bare.json"], "has no bands about the motion ahead"),
        (["LOG", "--identified", "older.json"], "older.json"),
        (["LOG", "--identified", "other.json"], "000000000000"),
        (["LOG", "--plot", "a.txt"], "write --plot a.png"),
        (["short.csv"], "a recording needs a stretch of 0.67 s"),
    ],
)
def test_a_wrong_prediction_command_names_its_mistake(
    pendulum: CompiledRobot,
    stored: Stored,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    data = json.loads(stored[1].read_text())
    Path("pendulum.identified.json").write_text(json.dumps(data))
    ahead = {key: value for key, value in data["prediction"].items() if key != "fit"}
    changes = {"bare": {"prediction": None}, "older": {"prediction": ahead}, "other": {"model_hash": "0" * 64}}
    for name, change in changes.items():
        Path(f"{name}.json").write_text(json.dumps(data | change))
    log = recordings(pendulum, tmp_path, TRUTH, 1, 1e-3, seed=3)[0].path
    Path("short.csv").write_text("".join(log.read_text().splitlines(keepends=True)[:40]))
    assert main(["predict", "pendulum", *(str(log) if word == "LOG" else word for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_an_error_in_a_band_without_width_is_outside() -> None:
    found = in_half_widths(np.array([0.0, 0.1, -0.2]), np.array([0.0, 0.0, 0.1]))
    assert found.tolist() == [0.0, np.inf, 2.0]
