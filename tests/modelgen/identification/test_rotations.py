"""Recordings with quaternions: a satellite that is simulated by Euler's equations and SciPy's rotations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import modelgen
from modelgen.arrays import Array
from modelgen.cli import main
from modelgen.errors import ModelError
from modelgen.identification.columns import columns
from modelgen.identification.excitation import excite
from modelgen.identification.experiment import Task, bounds
from modelgen.identification.identify import identify
from modelgen.identification.model import Model
from modelgen.identification.recordings import read
from modelgen.loader import CompiledRobot
from tests.modelgen.support.logs import silent, write

pytestmark = pytest.mark.slow

INERTIA = np.array([1.12, 1.25, 0.71])  # of 1.0, 1.4 and 0.8 in the model file
NOISE, RATE, HOLD, FINER = 1e-3, 50, 5, 5


@pytest.fixture(scope="module")
def satellite() -> CompiledRobot:
    return modelgen.load("satellite", parallel=False)


def tumbling(
    robot: CompiledRobot,
    path: Path,
    seed: int,
    noise: float = NOISE,
    rates: bool = False,
    played: Array | None = None,
) -> Path:
    """Six seconds from a random attitude, or the inputs (K, 3) played from rest; the quaternions have any sign."""
    draw, h = np.random.default_rng(seed), 1 / (RATE * FINER)
    turned, rate = Rotation.random(random_state=seed), draw.normal(size=3) * 0.5
    inputs = np.repeat(draw.uniform(-0.45, 0.45, (61, 3)), HOLD, axis=0)[:301]
    if played is not None:
        turned, rate, inputs = Rotation.identity(), np.zeros(3), played
    rows = len(inputs)
    states = np.empty((rows, 7))
    for k, u in enumerate(inputs):
        states[k] = [*np.roll(turned.as_quat(), 1), *rate]
        for _ in range(FINER):
            middle = rate + 0.5 * h * (u - np.cross(rate, INERTIA * rate)) / INERTIA
            turned = turned * Rotation.from_rotvec(h * middle)
            rate = rate + h * (u - np.cross(middle, INERTIA * middle)) / INERTIA
    measured = Rotation.from_quat(np.roll(states[:, :4], -1, 1)) * Rotation.from_rotvec(
        noise * draw.normal(size=(rows, 3))
    )
    states[:, :4] = np.roll(measured.as_quat(), 1, 1) * draw.choice([-1, 1], size=(rows, 1))
    states[:, 4:] += noise * draw.normal(size=(rows, 3))
    return write(path, robot, np.arange(rows) / RATE, states, inputs, rates)


def test_the_command_finds_the_inertia_of_a_satellite(satellite: CompiledRobot, tmp_path: Path) -> None:
    """The 95 % set holds the truth and excludes the values of the model file."""
    logs = [str(tumbling(satellite, tmp_path / f"log{seed}.csv", seed)) for seed in range(3)]
    out = tmp_path / "found.json"
    assert main(["identify", "satellite", *logs, "--out", str(out)]) == 0
    content = json.loads(out.read_text())
    centre, shape = np.array(content["ellipsoid"]["centre"]), np.array(content["ellipsoid"]["shape"])
    np.testing.assert_allclose(centre, INERTIA, rtol=0.03)

    def distance(theta: Array) -> float:
        return float((theta - centre) @ np.linalg.solve(shape, theta - centre))

    assert distance(INERTIA) <= 1.0 < distance(np.asarray(satellite.nominal_parameters))
    assert content["residual"]["states"][:3] == ["attitude_turn_x", "attitude_turn_y", "attitude_turn_z"]
    assert content["residual"]["root_mean_square"][:3] == pytest.approx([NOISE] * 3, rel=0.15)
    assert content["residual"]["widened"] == 1.0


def test_the_set_from_an_exciting_input_holds_the_truth(satellite: CompiledRobot, tmp_path: Path) -> None:
    """The input is found with the values of the model file, and played on Euler's equations with others."""
    before = bounds(satellite)
    sensors = np.array([NOISE] * 3 + [np.nan] * 3)
    start = np.array(satellite.metadata.task.start_mean)
    task = Task(before.centre, before.shape, sensors, 1.0, start, 6.0, 2.0, 3.0, 0.8)
    found = excite(satellite, task, 10, silent)
    table = np.column_stack([np.round(found.time * RATE), found.inputs])
    rows = np.searchsorted(table[:, 0], np.arange(table[-1, 0] + 1), side="right") - 1
    logs = [tumbling(satellite, tmp_path / f"log{seed}.csv", seed, played=found.inputs[rows]) for seed in range(3)]
    recordings = [read(path, satellite.metadata, columns((), satellite.metadata)) for path in logs]
    ellipsoid = identify(Model(satellite), recordings, 2.0, silent).ellipsoid
    away = [theta - ellipsoid.centre for theta in (INERTIA, before.centre)]
    distances = [each @ np.linalg.solve(ellipsoid.shape, each) for each in away]
    assert distances[0] <= 1.0 < distances[1]
    ratio = np.sqrt(np.diag(ellipsoid.shape) / np.diag(found.shape))
    assert (ratio > 0.3).all()
    assert (ratio < 2.0).all()


def test_errors_of_a_rotation_have_the_derivatives_of_central_differences(
    satellite: CompiledRobot, tmp_path: Path
) -> None:
    """Also far from what was measured, with offsets of the sensor and a delay."""
    recording = read(tumbling(satellite, tmp_path / "log.csv", 1), satellite.metadata, columns((), satellite.metadata))
    model = Model(satellite, ("delay", "offset"))
    windows = model.cut([recording], 1.0).chosen(np.arange(3))
    theta = np.array([*INERTIA, 0.013, 0.1, -0.2, 0.05])
    assert model.names[3:] == ("delay", *(f"offset of attitude_turn_{axis}" for axis in "xyz"))
    starts = model.tangent.moved(windows.starts, np.tile([0.6, -0.4, 0.8, 0.1, 0.0, 0.0], (3, 1)))
    found = model.simulate(windows, starts, theta)
    assert np.abs(found.x[..., :3]).max() > 0.8
    late = windows.time[:, 0] - windows.begin[0] > model.blind
    for k in range(6):
        step = np.tile(1e-5 * np.eye(6)[k], (3, 1))
        ends = [model.simulate(windows, model.tangent.moved(starts, sign * step), theta).x for sign in (1, -1)]
        np.testing.assert_allclose(found.dx_dstart[..., k], (ends[0] - ends[1]) / 2e-5, atol=1e-4)
    for k in range(7):
        step = 1e-5 * np.eye(7)[k]
        ends = [model.simulate(windows, starts, theta + sign * step).x for sign in (1, -1)]
        np.testing.assert_allclose(found.dx_dtheta[late, ..., k], (ends[0] - ends[1])[late] / 2e-5, atol=1e-4)


def test_a_recording_of_rotations_that_is_wrong_is_named(satellite: CompiledRobot, tmp_path: Path) -> None:
    metadata = satellite.metadata
    path = tumbling(satellite, tmp_path / "log.csv", 1, rates=True)
    recording = read(path, metadata, columns((), metadata))
    model = Model(satellite)
    missing = replace(recording, states=np.where(np.arange(301)[:, None] % 4 == 1, np.nan, recording.states))
    windows = model.cut([missing], 0.5).chosen(np.arange(1))
    assert np.isnan(windows.measured[1]).all()
    np.testing.assert_allclose(model.simulate(windows, windows.starts, INERTIA).x[0, :, :3], 0.0, atol=5e-3)
    inverse = columns([f"attitude_q{axis}=attitude_q{axis}*-1" for axis in "xyz"], metadata)
    with pytest.raises(ModelError, match=r"the inverse of what it should be.*attitude_qx=COLUMN\*-1"):
        read(path, metadata, inverse)
    seen = Rotation.from_quat(np.roll(recording.states[:, :4], -1, 1)).apply(recording.states[:, 4:])
    states = np.hstack([recording.states[:, :4], seen])
    turned = write(tmp_path / "turned.csv", satellite, recording.time, states, recording.inputs, rates=True)
    with pytest.raises(ModelError, match="its rates are about the axes of the frame before it"):
        read(turned, metadata, columns((), metadata))
    longer = columns([f"attitude_q{axis}=attitude_q{axis}*2" for axis in "wxyz"], metadata)
    with pytest.raises(ModelError, match="the quaternion of `attitude` has the length 2"):
        read(path, metadata, longer)
