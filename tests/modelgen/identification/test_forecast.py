"""Bands about the motion predicted: order statistics of known errors, and a friction that the model lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from modelgen.identification.columns import columns
from modelgen.identification.forecast import AHEAD, LEADS, Forecasts, bands, forecasts, rank, tolerance, widening
from modelgen.identification.identify import identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording, read
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import log, recordings, silent, write

TRUTH = np.array([1.1, 0.9])  # mass, length
RUB = 0.1  # N m of dry friction


def of(sizes: np.ndarray, spread: np.ndarray | float = 1.0) -> Forecasts:
    """One forecast a block with errors (N, n), the same over all its time, of either sign; spread: (N, n)."""
    lead = np.repeat(np.linspace(AHEAD / LEADS, AHEAD, LEADS)[:, None], len(sizes), axis=1)
    signs = np.where(np.arange(LEADS) % 2, -1.0, 1.0)[:, None, None]
    begin = np.array([AHEAD * number for number in range(len(sizes))])
    errors = signs * sizes
    return Forecasts(lead, errors, np.broadcast_to(spread, errors.shape), np.zeros(len(sizes), np.intp), begin)


def rubbed(robot: CompiledRobot, folder: Path, seed: int) -> Recording:
    """A recording whose torques lack a friction that changes its sign with that of the rate."""
    time, states, inputs = log(robot, TRUTH, [3.0, 0.0], 4.0, 100, seed=seed, share=0.5)
    path = write(folder / f"{seed}.csv", robot, time, states, inputs + RUB * np.sign(states[:, 1:]))
    return read(path, robot.metadata, columns((), robot.metadata))


def test_the_rank_is_that_of_a_tolerance_limit() -> None:
    """Of 1000 samples of a uniform distribution, the k-th smallest is below 0.95 with the stated risk at most."""
    random = np.random.default_rng(0)
    for count, risk in ((60, 0.1), (200, 0.05)):
        k = rank(count, risk)
        short = np.mean(np.sort(random.uniform(size=(1000, count)), axis=1)[:, k - 1] < 0.95)
        shorter = np.mean(np.sort(random.uniform(size=(1000, count)), axis=1)[:, k - 2] < 0.95)
        assert short <= risk + 0.02
        assert shorter > risk - 0.02
    assert rank(10, 0.1) == 10


@pytest.mark.slow
def test_bands_are_wider_where_recordings_differ() -> None:
    """Six recordings of twelve blocks; in the logarithm, errors have a variance of 1. Where half of it is their
    recording's, the largest block alone misses their quantile far more often than it states."""
    random, recording, risk = np.random.default_rng(0), np.repeat(np.arange(6), 12), 0.05
    quantile = np.exp(norm.ppf(0.95))
    short, wider = {}, {}
    for share in (0.0, 0.5):
        effects = np.sqrt(share) * random.normal(size=(1000, 6))
        errors = np.exp(effects[:, recording] + np.sqrt(1 - share) * random.normal(size=(1000, 72)))
        factors = np.array([widening(each, recording, risk) for each in errors])
        largest = np.sort(errors, axis=1)[:, rank(72, risk) - 1]
        short[share] = np.mean(largest < quantile), np.mean(largest * factors < quantile)
        wider[share] = np.median(factors)
    assert short[0.0][0] <= risk
    assert wider[0.0] < 1.1
    assert short[0.5][0] > 3 * risk
    assert short[0.5][1] <= 2 * risk
    assert widening(errors[0], np.zeros(72, np.intp), risk) == 1.0
    assert widening(np.full(72, 0.3), recording, risk) == 1.0


def test_two_recordings_that_differ_give_a_band_of_use() -> None:
    """One with three times the errors of the other, and a spread of 30 % in each."""
    sizes = np.exp(np.repeat([0.0, np.log(3.0)], 12) + 0.3 * np.random.default_rng(0).normal(size=24))
    assert 1.5 < widening(sizes, np.repeat([0, 1], 12), 0.05) < 5.0


def test_a_tolerance_limit_holds_the_quantile() -> None:
    samples = np.random.default_rng(0).normal(size=(5_000, 1_000))
    limits = samples.mean(axis=1) + tolerance(1_000, 0.1) * samples.std(axis=1, ddof=1)
    assert np.mean(limits < norm.ppf(0.95)) == pytest.approx(0.1, abs=0.01)


def test_bands_are_order_statistics_and_say_how_sure_they_are() -> None:
    sizes = np.random.default_rng(0).permutation(np.arange(1.0, 201.0))
    found = bands([of(sizes[:120, None]), of(sizes[120:, None])])
    assert found is not None
    np.testing.assert_array_equal(found.half_width[:, 0], rank(200, 0.1))
    assert found.blocks == 200
    assert found.confidence >= 0.9
    few = bands([of(np.array([[1.0, np.nan], [3.0, np.nan], [2.0, np.nan]]))])
    assert few is not None
    np.testing.assert_array_equal(few.half_width, np.tile([3.0, np.nan], (LEADS, 1)))
    assert few.confidence == pytest.approx(1 - 0.95**3)
    assert bands([of(np.full((3, 1), np.nan))]) is None


def test_a_band_grows_with_what_the_set_leaves_open() -> None:
    """Errors in proportion to sqrt(1 + spread^2): one number describes all of them, of every spread."""
    random = np.random.default_rng(0)
    spread = np.exp(random.normal(size=(301, 1)))
    spread /= np.median(spread)
    noise = random.uniform(size=(301, 1))
    found = bands([of(np.sqrt((1.0 + spread**2) / 2.0) * noise, 0.3 * spread)])
    assert found is not None
    np.testing.assert_allclose(found.spread, 0.3)
    np.testing.assert_allclose(found.half_width[:, 0], np.sort(noise[:, 0])[rank(301, 0.1) - 1])
    doubled = of(np.ones((2, 1)), np.array([[0.3], [0.6]]))
    np.testing.assert_allclose(found.about(doubled)[-1, :, 0] / found.half_width[-1, 0], [1.0, np.sqrt(2.5)])


@pytest.mark.slow
def test_the_spread_is_that_of_predictions_from_the_sets_edge(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """Forecasts by parameters at either end of the set's one axis, their starts fitted anew, beside those of its
    middle."""
    logs, deviations = recordings(pendulum, tmp_path, TRUTH, 2, 1e-3), np.array([1e-3, 1.0])
    axis = np.array([2e-4, -1e-4])
    ahead = forecasts(Model(pendulum), logs, TRUTH, deviations, np.outer(axis, axis))
    ends = [forecasts(Model(pendulum), logs, TRUTH + side * axis, deviations, np.eye(2)).errors for side in (-1, 1)]
    apart = np.abs(ends[1] - ends[0])[..., 0] / 2
    some = ahead.lead > AHEAD / 2
    np.testing.assert_allclose(ahead.spread[some][:, 0], apart[some], rtol=2e-2, atol=2e-7)


@pytest.mark.slow
def test_friction_that_the_model_lacks_is_in_the_bands(pendulum: CompiledRobot, tmp_path: Path) -> None:
    found = identify(Model(pendulum), [rubbed(pendulum, tmp_path, seed) for seed in range(3)], 0.5, silent)
    others, shape = [rubbed(pendulum, tmp_path, seed) for seed in (8, 9)], found.ellipsoid.shape
    ahead = forecasts(found.model, others, found.theta, found.deviations, shape)
    assert found.bands is not None
    within = np.abs(ahead.errors) <= found.bands.about(ahead)
    assert within[ahead.part == LEADS - 1][:, 0].mean() >= 0.9
    (tmp_path / "clean").mkdir()
    clean = identify(Model(pendulum), recordings(pendulum, tmp_path / "clean", TRUTH, 3, 1e-3), 0.5, silent).bands
    assert clean is not None
    assert clean.half_width[-1, 0] < 0.5 * found.bands.half_width[-1, 0]


def test_a_forecast_of_a_model_that_is_right_is_exact(pendulum: CompiledRobot, tmp_path: Path) -> None:
    logs = recordings(pendulum, tmp_path, TRUTH, 2, 0.0)
    ahead = forecasts(Model(pendulum), logs, TRUTH, np.array([1e-3, 1.0]), np.eye(2))
    assert np.nanmax(np.abs(ahead.errors)) < 1e-5
    assert set(ahead.recording.tolist()) == {0, 1}
    assert np.nanmax(ahead.lead) <= AHEAD + 1e-9
    assert np.isnan(ahead.errors[ahead.lead <= 0]).all()
