"""From recordings to the file: recovery, an exact null direction, coverage, correlation, mistakes of the command."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelgen.cli import main
from modelgen.identification.columns import columns
from modelgen.identification.confidence import blocks, covariance, inflation, quantile, scores
from modelgen.identification.fit import Settled, cost, fit, fit_windows, settle
from modelgen.identification.fit import spread_of as spread
from modelgen.identification.identify import Identified, identify
from modelgen.identification.model import Model, safe_step
from modelgen.identification.recordings import read
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import log, recordings, silent, write

pytestmark = pytest.mark.slow

TRUTH = np.array([1.1, 0.9])  # mass, length


def test_mass_and_length_of_noiseless_positions(pendulum: CompiledRobot, tmp_path: Path) -> None:
    _, found = fit(Model(pendulum), recordings(pendulum, tmp_path, TRUTH, 2, 0.0), 0.5, silent)
    np.testing.assert_allclose(found.theta, TRUTH, rtol=1e-8)


def test_outliers_do_not_move_the_fit(pendulum: CompiledRobot, tmp_path: Path) -> None:
    logs = recordings(pendulum, tmp_path, TRUTH, 2, 1e-4)
    for each in logs:
        each.states[7::40, 0] += 0.3
    _, found = fit(Model(pendulum), logs, 0.5, silent)
    np.testing.assert_allclose(found.theta, TRUTH, rtol=2e-3)
    assert 0.8e-4 < found.deviations[0] < 2e-4  # they pull at the starts of their windows, and so at their neighbours


def test_a_joint_at_rest_keeps_its_deviation() -> None:
    """Two thirds of a recording without a residual: the median would say that the sensor never errs."""
    sizes = np.where(np.arange(3000) % 3, 0.0, np.random.default_rng(0).normal(size=3000))
    assert 0.3 < spread(sizes.reshape(10, 300, 1), np.ones((10, 300, 1), bool))[0] < 1.0
    noise = np.random.default_rng(1).normal(size=(100, 100, 1))
    assert spread(noise, np.ones(noise.shape, bool))[0] == pytest.approx(1.0, rel=0.03)


def test_the_steps_are_as_long_as_the_sensors_allow(pendulum: CompiledRobot, tmp_path: Path) -> None:
    model = Model(pendulum)
    windows = model.cut(recordings(pendulum, tmp_path, TRUTH, 2, 0.0), 0.5)
    finest = model.simulate(windows, windows.starts, TRUTH).x
    for deviation in (1e-4, 1e-7):
        chosen = model.resolved(windows, windows.starts, TRUTH, np.full(2, deviation))
        error = (model.simulate(chosen, windows.starts, TRUTH).x - finest)[..., 0]
        assert np.abs(error).max() <= 2e-3 * deviation
        assert chosen.longest > 0
    sensors = [np.full(2, 10.0**exponent) for exponent in range(-9, 1)]
    steps = {round(model.resolved(windows, windows.starts, TRUTH, each).longest, 9) for each in sensors}
    assert steps == {0.01, 0.005, safe_step(pendulum)}


def test_a_fit_from_far_away_arrives_and_its_residuals_are_its_own(pendulum: CompiledRobot, tmp_path: Path) -> None:
    model = Model(pendulum)
    windows = model.cut(recordings(pendulum, tmp_path, TRUTH, 2, 1e-4), 0.5)
    deviations = np.array([1e-4, 1.0])
    found = fit_windows(model, windows, np.array([0.51, 1.49]), windows.starts, deviations, robust=True)
    np.testing.assert_allclose(found.theta, TRUTH, rtol=2e-3)
    again = settle(model, windows, windows.starts, found.theta, deviations, robust=True)
    assert cost(found.settled.residuals, True).sum() == pytest.approx(cost(again.residuals, True).sum(), rel=1e-6)


class TestAnExactNullDirection:
    def test_the_product_is_identified_and_its_factors_get_the_declared_bounds(self, found: Identified) -> None:
        region = found.ellipsoid
        assert region.centre[0] * region.centre[1] == pytest.approx(0.72, rel=0.01)
        assert region.identified.tolist() == [False, False, True]
        assert (region.lower[:2].tolist(), region.upper[:2].tolist()) == ([0.5, 0.25], [2.0, 1.0])
        assert region.lower[2] < 0.12 < region.upper[2]

    def test_the_direction_is_the_tangent_of_a_constant_product(self, found: Identified) -> None:
        region = found.ellipsoid
        assert region.exact.tolist() == [True]
        change = region.unidentified[:, 0] * [0.75, 0.375, 0.075]
        tangent = np.array([region.centre[0], -region.centre[1], 0.0])
        cosine = abs(change @ tangent) / np.linalg.norm(change) / np.linalg.norm(tangent)
        assert cosine == pytest.approx(1.0, abs=1e-9)

    def test_the_set_is_thin_across_and_long_along(self, found: Identified) -> None:
        P, (mass, length, _) = found.ellipsoid.shape, found.ellipsoid.centre
        across, along = np.array([length, mass, 0.0]), np.array([mass, -length, 0.0])
        size_across = np.sqrt(across @ P @ across)  # half-width of the product mass length
        assert size_across < 0.02
        assert np.sqrt(along @ P @ along) > 10 * size_across


def test_three_of_four_confidence_sets_hold_the_truth(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """Of four 95 % sets at least three hold the truth, and they are small: under 8 % of the parameters' ranges."""
    held = 0
    for seed in range(4):
        found = identify(Model(pendulum), recordings(pendulum, tmp_path, TRUTH, 2, 2e-3, seed), 0.5, silent).ellipsoid
        away = TRUTH - found.centre
        held += bool(away @ np.linalg.solve(found.shape, away) <= 1)
        assert (found.upper - found.lower < 0.12).all()
    assert held >= 3


def test_a_push_that_the_model_lacks_widens_the_action_radius(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """The torque of the files lacks a disturbance that changes every second: a rectangle of 0.2 N m."""
    found = []
    for number in range(2):
        time, states, inputs = log(pendulum, TRUTH, [3.0, 0.0], 4.0, 100, seed=number, share=0.5)
        hidden = 0.2 * np.where((time + 1e-9) % 2 < 1, 1.0, -1.0)[:, None]
        path = write(tmp_path / f"{number}.csv", pendulum, time, states, inputs - hidden)
        found.append(read(path, pendulum.metadata, columns((), pendulum.metadata)))
    result = identify(Model(pendulum), found, 0.5, silent)
    assert 0.15 < result.radii.action[0] < 0.4  # above 0.2: the parameters' error and the switches add to it
    np.testing.assert_array_equal(result.radii.state, 0.0)  # one input reaches the one velocity


class TestCovariance:
    """Linear problems with known answers: residuals r = e + J theta, one sample of one state in a window."""

    def scored(self, J: Any, errors: Any, size: float = 1e-3) -> Any:
        J = np.asarray(J)[None, :, None, :]
        settled = Settled(np.zeros((len(errors), 1)), size * np.asarray(errors)[None, :, None], J, J[0], J[..., :0])
        return scores(settled, np.eye(J.shape[-1]))

    def test_repeated_errors_count_once(self) -> None:
        """Ten copies of every error in a block: as wide as with one copy, where windows by themselves are narrower."""
        random = np.random.default_rng(0)
        errors, J = random.normal(size=40), random.normal(size=(40, 2))
        once = covariance(self.scored(J, errors, 3.0), np.arange(40))
        copies = self.scored(np.repeat(J, 10, axis=0), np.repeat(errors, 10), 3.0)
        np.testing.assert_allclose(covariance(copies, np.repeat(np.arange(40), 10)), once, rtol=1e-3)
        assert np.trace(covariance(copies, np.arange(400))) < 0.2 * np.trace(once)

    def test_blocks_that_agree_by_chance_are_not_trusted_more_than_independent_residuals(self) -> None:
        random = np.random.default_rng(0)
        J = random.normal(size=(40, 2))
        found = self.scored(J, random.normal(size=40))
        np.testing.assert_allclose(covariance(found, np.arange(40)), np.linalg.inv(J.T @ J), rtol=1e-5)

    def test_an_offset_of_whole_recordings_inflates(self) -> None:
        """Blocks of one window miss an error that all windows of a recording share; held-out recordings show it."""
        random = np.random.default_rng(1)
        fold = np.repeat(np.arange(8), 50)
        J = np.ones((400, 1))
        for shared, low, high in ((0.0, 1.0, 3.0), (3.0, 30.0, 2000.0)):
            errors = random.normal(size=400) + shared * random.normal(size=8)[fold]
            found = self.scored(J, errors)
            whole, total = found.curvature.sum(axis=0), found.gradient.sum(axis=0)
            best = -np.linalg.solve(whole, total)
            found = self.scored(J, errors + 1e3 * best[0])
            moves = []
            for rest in (fold != index for index in range(8)):
                change = -np.linalg.solve(found.curvature[rest].sum(axis=0), found.gradient[rest].sum(axis=0))
                moves.append(float(change @ found.curvature[~rest].sum(axis=0) @ change))
            assert low <= inflation(found, np.arange(400), fold, moves) <= high

    def test_blocks_are_longer_than_the_correlation_and_stay_in_their_recording(self) -> None:
        owner = np.repeat([0, 1], [10, 5])
        nothing = np.zeros(15)
        windows = Windows(
            np.zeros((1, 15)), np.zeros((1, 15, 0)), np.zeros((2, 15, 1)), nothing[:, None], owner, nothing, 0.5, 0.1
        )
        assert blocks(windows, 0.1).tolist() == list(range(15))
        assert blocks(windows, 0.4).tolist() == [0] * 4 + [1] * 3 + [2] * 3 + [3] * 5

    def test_the_quantile_is_that_of_chi_squared_for_many_blocks(self) -> None:
        assert quantile(2, 10**6) == pytest.approx(5.9915, rel=1e-4)
        assert quantile(1, 10) == pytest.approx(2.2622**2, rel=1e-4)  # Student's t with nine degrees of freedom


class TestCommand:
    @pytest.fixture
    def files(self, pendulum: CompiledRobot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        monkeypatch.chdir(tmp_path)
        return [str(each.path) for each in recordings(pendulum, tmp_path, TRUTH, 2, 1e-3)]

    def test_identify_writes_its_json_and_its_page(self, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["identify", "pendulum", *files, "--out", "deep/found.json", "--html", "deep/page.html"]) == 0
        said = capsys.readouterr()
        assert "deep/found.json is written\ndeep/page.html is written" in said.out
        page = Path("deep/page.html").read_text()
        assert page.count("<svg") > page.count('<figure role="img"') == 4  # of several panels
        assert "http" not in page
        assert "refit 2 of 2" in said.err
        data = json.loads(Path("deep/found.json").read_text())
        manifest = json.loads((Path(__file__).parents[3] / "generated/pendulum/manifest.json").read_text())
        assert data["model_hash"] == manifest["model_hash"]
        assert data["confidence"] == 0.95
        for index, (name, each) in enumerate(data["parameters"].items()):
            assert name == data["ellipsoid"]["names"][index]
            half = np.sqrt(data["ellipsoid"]["shape"][index][index])
            np.testing.assert_allclose([each["lower"], each["upper"]], each["value"] + half * np.array([-1, 1]))
            assert each["value"] == data["ellipsoid"]["centre"][index] == pytest.approx(TRUTH[index], rel=0.02)
            assert each["identified"] is True
        assert data["unidentifiable"] == []
        assert [len(data["radii"][name]) for name in ("state", "action", "observation")] == [2, 1, 2]
        assert data["radii"]["observation"][0] == pytest.approx(1.96e-3, rel=0.2)
        assert data["radii"]["observation"][1] is None
        ahead = data["prediction"]
        assert (ahead["content"], ahead["half_width"]["angle_rate"]) == (0.95, None)
        assert ahead["confidence"] == pytest.approx(1 - 0.95 ** ahead["blocks"])  # too few for 90 %, and it says so
        assert len(ahead["half_width"]["angle"]) == len(ahead["seconds"]) == 10
        assert "0.5 s ahead" in said.out
        assert re.search(r"condition \d", said.out)
        assert data["residual"]["root_mean_square"][0] == pytest.approx(1e-3, rel=0.2)
        for each, path in zip(data["recordings"], files, strict=True):
            assert each["sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest()

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["pendulum"], "LOG.csv"),
            (["pendulum", "LOG", "LOG"], "log0-0.csv"),
            (["pendulum", "LOG", "--out", "LOG"], "--out"),
            (["pendulum", "LOG", "--out", "a", "--html", "a"], "--html a"),
            (["pendulum", "LOG", "--longest-delay", "0.2"], "--estimate delay"),
            (["pendulum", "LOG", "--window", "100"], "100 s"),
            (["pendulum", "LOG", "--window", "2.5"], "needs at least"),
            (["pendulums", "LOG"], "pendulum"),
            (["cartpole", "LOG"], "`cart`"),
        ],
    )
    def test_a_mistake_writes_no_file(
        self, files: list[str], capsys: pytest.CaptureFixture[str], words: list[str], said: str
    ) -> None:
        assert main(["identify", *(files[0] if word == "LOG" else word for word in words)]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ")
        assert said in error
        assert not list(Path().glob("*.json"))

    def test_a_torque_of_the_other_sign_gives_a_warning(
        self, files: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The robot would need more than its motor has; with the right sign nothing is said."""
        for words, warned in (([], False), (["--columns", "torque=torque*-1"], True)):
            assert main(["identify", "pendulum", *files, *words]) == 0
            first = capsys.readouterr().out.splitlines()[0]
            assert ("whose limit is 2.5" in first) == warned
