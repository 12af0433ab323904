"""A wrong model: its residual is noticed, its set holds the truth, its cause is named. A fit that has not arrived."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from modelgen.cli import main
from modelgen.errors import ModelError
from modelgen.identification import fit as fitting
from modelgen.identification.columns import columns
from modelgen.identification.fit import fit, settle
from modelgen.identification.identify import identify, misfit
from modelgen.identification.model import Model
from modelgen.identification.recordings import Recording, read
from modelgen.identification.windows import Windows
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import HOLD, recordings, silent, write

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
TRUTH = np.array([1.1, 0.9])  # mass, length
RATE, SECONDS, NOISE = 100, 4.0, 1e-3


def rubbing(robot: CompiledRobot, folder: Path, friction: float, seed: int, count: int = 3) -> list[Recording]:
    """Recordings of a pendulum whose pivot rubs with a constant torque (N m), which the model lacks."""
    random, time, found = np.random.default_rng(seed), np.arange(round(SECONDS * RATE) + 1) / RATE, []
    for number in range(count):
        held = random.uniform(-1.5, 1.5, int(SECONDS / HOLD) + 1)

        def slope(t: float, x: Array, held: Array = held) -> Array:
            torque = held[int(t / HOLD + 1e-9)] - friction * np.tanh(x[1] / 0.01)
            return np.asarray(robot.dynamics(x[None], np.array([[torque]]), TRUTH))[0]

        states = solve_ivp(slope, (0.0, time[-1]), [3.0, 0.0], t_eval=time, rtol=1e-6, atol=1e-8, max_step=0.01).y.T
        states += NOISE * random.normal(size=states.shape)
        path = write(folder / f"{seed}-{number}.csv", robot, time, states, held[(time / HOLD + 1e-9).astype(int), None])
        found.append(read(path, robot.metadata, columns((), robot.metadata)))
    return found


def holds_truth(centre: Array, shape: Array) -> bool:
    away = TRUTH - centre
    return bool(away @ np.linalg.solve(shape, away) <= 1.0)


def test_dry_friction_that_the_model_lacks_widens_the_set_until_it_holds_the_truth(
    pendulum: CompiledRobot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command's warning names the size, the width and dry friction."""
    monkeypatch.chdir(tmp_path)
    logs = rubbing(pendulum, tmp_path, 0.15, 0)
    assert main(["identify", "pendulum", *(str(log.path) for log in logs)]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    content = json.loads(Path("pendulum.identified.json").read_text())
    set_, found = content["ellipsoid"], content["residual"]
    assert holds_truth(np.array(set_["centre"]), np.array(set_["shape"]))
    assert found["noise_ratio"][0] > 2.0
    assert found["noise"][0] == pytest.approx(NOISE, rel=0.3)
    assert found["widened"] > 2.0
    for word in (
        f"{found['noise_ratio'][0]:.3g} times",
        f"{found['widened']:.3g} times",
        "`angle_rate`",
        "dry_friction",
    ):
        assert word in first


@pytest.mark.parametrize("every", [1, 2])
def test_a_right_model_keeps_the_width_of_its_set(pendulum: CompiledRobot, tmp_path: Path, every: int) -> None:
    """Also where a sensor is slower than the inputs, so that no two neighbouring rows have a measurement."""
    logs = recordings(pendulum, tmp_path, TRUTH, 3, NOISE)
    for log in logs:
        log.states[np.arange(len(log.time)) % every > 0] = np.nan
    found = identify(Model(pendulum), logs, 0.5, silent)
    assert found.radii.observation[0] == pytest.approx(2 * NOISE, rel=0.2)
    assert found.misfit.excess == 0.0
    assert found.widened == pytest.approx(1.0)
    assert found.misfit.ratio[0] == pytest.approx(1.0, abs=0.1)
    assert found.misfit.noise[0] == pytest.approx(NOISE, rel=0.1)


def test_counts_of_an_encoder_are_noise() -> None:
    """Slow motion within few counts: the residual is as smooth as the motion, and no larger than rounding."""
    time, count = np.arange(400) / 100, 0.01
    motion = 0.05 * np.sin(2 * time)[:, None, None]
    measured = count * np.round(motion / count)
    steps, inputs, one = np.full((399, 1), 0.01), np.zeros((399, 1, 0)), np.zeros(1)
    windows = Windows(steps, inputs, measured, one[:, None], one.astype(int), one, 4.0, 0.01)
    deviation = np.array([count / np.sqrt(12)])
    assert misfit([(windows, (motion - measured) / deviation)], deviation).excess == 0.0
    assert misfit([(windows, (1.5 * motion - measured) / deviation)], deviation).excess > 1000.0


def test_any_three_digit_start_value_reaches_the_truth(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """Bounds by a tolerance put the middle of a range within rounding of the start value, or on it."""
    logs, random = recordings(pendulum, tmp_path, TRUTH, 2, NOISE), np.random.default_rng(0)
    for _ in range(3):
        model = Model(pendulum)
        model.nominal = np.round(TRUTH * random.uniform(0.8, 1.2, 2), 3)
        tolerance = np.round(random.uniform(0.3, 0.6, 2), 2)
        model.bounds = np.stack([model.nominal * (1 - tolerance), model.nominal * (1 + tolerance)], axis=1)
        _, fitted = fit(model, logs, 0.5, silent)
        np.testing.assert_allclose(fitted.theta, TRUTH, rtol=5e-3, err_msg=f"{model.nominal} {tolerance}")
        assert (np.abs(fitted.remaining) < 1e-4).all()


def test_a_search_that_stops_at_its_start_is_refused(
    pendulum: CompiledRobot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the first trust region had the size of rounding: two evaluations, and no step."""
    search = least_squares

    def stuck(residuals: object, first: Array, **options: object) -> object:
        return search(residuals, first, **{**options, "x_scale": 1e-12, "max_nfev": 2})

    monkeypatch.setattr("scipy.optimize.least_squares", stuck)
    with pytest.raises(ModelError, match=r"would move (mass|length) from (1|0\.99\d*) by"):
        identify(Model(pendulum), recordings(pendulum, tmp_path, TRUTH, 2, NOISE), 0.5, silent)


def test_the_next_newton_step_is_that_of_finite_differences(pendulum: CompiledRobot, tmp_path: Path) -> None:
    """A fit whose data say 1.1 and 0.9, taken at its own minimum and beside it: the step leads back."""
    model, logs = Model(pendulum), recordings(pendulum, tmp_path, TRUTH, 2, NOISE)
    windows, fitted = fit(model, logs, 0.5, silent)
    for change in ([0.002, 0.0], [0.0, -0.001]):
        theta = fitted.theta + change
        moved = settle(model, windows, fitted.settled.starts, theta, fitted.deviations, robust=True)
        step = fitting._newton_step(model, moved, theta, robust=True)
        np.testing.assert_allclose(step, -np.array(change), atol=3e-4)
