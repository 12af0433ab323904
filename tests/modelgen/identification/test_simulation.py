"""Simulated windows and their sensitivities, against SciPy's DOP853 and central differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

import modelgen
from modelgen.arrays import runge_kutta_step
from modelgen.identification import model
from modelgen.identification.columns import columns
from modelgen.identification.fit import eliminated, settle
from modelgen.identification.model import Model, Motion, safe_step, simulate
from modelgen.identification.recordings import read
from modelgen.identification.windows import Windows, cut
from modelgen.loader import CompiledRobot
from tests.modelgen.support.declared import TASK, cart
from tests.modelgen.support.logs import log, write

Array = NDArray[np.float64]

EPS = 1e-6  # of one-sided differences


@pytest.fixture(scope="module")
def robot() -> CompiledRobot:
    return modelgen.load("cartpole", parallel=False)


@pytest.fixture(scope="module")
def motion(robot: CompiledRobot, tmp_path_factory: pytest.TempPathFactory) -> tuple[Windows, Array]:
    """Windows of a recording with irregular sampling, and the true states at their samples."""
    time, states, inputs = log(robot, None, [0.0, 2.0, 0.0, 1.0], 1.5, 100, seed=1, share=0.2)
    kept = np.flatnonzero((np.random.default_rng(0).random(len(time)) < 0.8) | (np.arange(len(time)) % 10 == 0))
    path = write(tmp_path_factory.mktemp("logs") / "log.csv", robot, time[kept], states[kept], inputs[kept], rates=True)
    recording = read(path, robot.metadata, columns((), robot.metadata))
    windows = cut(robot, [recording], 0.3)
    return windows, windows.measured


def test_the_motion_is_that_of_another_integrator(robot: CompiledRobot, tmp_path: Path) -> None:
    time, states, inputs = log(robot, None, [0.0, 2.0, 0.0, 1.0], 1.0, 100, seed=1, share=0.2)
    path = write(tmp_path / "log.csv", robot, time, states, inputs, rates=True)
    windows = cut(robot, [read(path, robot.metadata, columns((), robot.metadata))], 0.5)
    found = simulate(robot, windows, windows.measured[0], np.asarray(robot.nominal_parameters))
    known = ~np.isnan(windows.measured)
    np.testing.assert_allclose(found.x[known], windows.measured[known], atol=1e-7)


@pytest.mark.slow
def test_sensitivities_are_those_of_central_differences(robot: CompiledRobot, motion: tuple[Windows, Array]) -> None:
    windows, theta = motion[0], np.asarray(robot.nominal_parameters)
    pushes = np.eye(4)[:, 2:]
    found = simulate(robot, windows, windows.starts, theta, pushes)
    for index in range(len(theta)):
        step = 1e-5 * theta[index] * np.eye(len(theta))[index]
        ends = [simulate(robot, windows, windows.starts, theta + sign * step).x for sign in (1, -1)]
        difference = (ends[0] - ends[1]) / (2 * step[index])
        np.testing.assert_allclose(
            found.dx_dtheta[..., index], difference, rtol=1e-6, atol=1e-6 * np.abs(difference).max()
        )
    for index in range(4):
        step = 1e-5 * np.eye(4)[index]
        ends = [simulate(robot, windows, windows.starts + sign * step, theta).x for sign in (1, -1)]
        difference = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(
            found.dx_dstart[..., index], difference, rtol=1e-6, atol=1e-6 * np.abs(difference).max()
        )
    assert found.dx_dpush.shape == (*found.x.shape, 2)


def test_without_a_folder_to_write_it_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(model._stage)
    assert isinstance(model._compiled(), CPUDispatcher)


def test_derivatives_with_two_inputs_are_those_of_another_integrator() -> None:
    """Both inputs move both joints, by amounts that depend on theta; the second is driven."""
    arm, start = modelgen.load("planar_arm2", parallel=False), [0.5, 1.0, 0.0, 2.0]
    theta, pushes = np.asarray(arm.nominal_parameters), np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.5], [0.0, -1.0]])
    time, states, inputs = log(arm, theta, start, 0.5, 100, seed=3)
    steps, measured = np.diff(time)[:, None], np.full((len(time), 1, 4), np.nan)
    windows = Windows(steps, inputs[:-1, None], measured, np.array([start]), np.zeros(1, int), np.zeros(1), 0.5, 0.01)
    found = simulate(arm, windows, windows.starts, theta, pushes, driven=(1,))
    np.testing.assert_allclose(found.x[:, 0], states, atol=1e-7)

    def difference(theta: Array = theta, **change: Any) -> Array:
        return np.asarray(log(arm, theta, start, 0.5, 100, seed=3, **change)[1] - states) / EPS

    def same(derivative: Array, expected: Array) -> None:
        np.testing.assert_allclose(derivative[:, 0], expected, atol=1e-4 * np.abs(expected).max())

    for index, push in enumerate(pushes.T):
        same(found.dx_dpush[..., index], difference(push=EPS * push))
    for index, change in enumerate(np.eye(len(theta))):
        same(found.dx_dtheta[..., index], difference(theta + EPS * change))
    same(found.dx_dgain[..., 0], difference(gains=np.array([1.0, 1.0 + EPS])))


def test_the_starts_follow_the_parameters(robot: CompiledRobot, motion: tuple[Windows, Array]) -> None:
    """The projected derivative is that of the residuals with the starts found again at other parameters."""
    windows, theta, one = motion[0], np.asarray(robot.nominal_parameters), np.ones(4)
    found = settle(Model(robot), windows, windows.starts, theta, one, robust=False)
    step = 1e-4 * theta[2] * np.eye(len(theta))[2]
    ends = [settle(Model(robot), windows, found.starts, theta + sign * step, one, robust=False) for sign in (1, -1)]
    difference = (ends[0].residuals - ends[1].residuals) / (2 * step[2])
    np.testing.assert_allclose(found.sensitivity[..., 2], difference, atol=1e-4 * np.abs(difference).max())
    follow = (ends[0].starts - ends[1].starts) / (2 * step[2])
    np.testing.assert_allclose(found.starts_by_theta[..., 2], follow, atol=1e-4 * np.abs(follow).max())


def test_units_of_a_start_do_not_count() -> None:
    """What is left when the starts follow is the residual of a projection, of which one column may be in Pa."""
    random = np.random.default_rng(4)
    by_start, by_theta = random.normal(size=(30, 2, 3, 3)), random.normal(size=(30, 2, 3, 2))
    units, found = np.array([1.0, 1e-10, 1e4]), np.zeros((30, 2, 3))
    motion = Motion(found, by_start * units, by_theta, np.zeros((30, 2, 3, 0)), np.zeros((30, 2, 3, 0)))
    left = eliminated(motion, np.zeros((2, 3)), found, np.ones((30, 2, 3)), robust=False).sensitivity
    for window in range(2):
        J, S = by_start[:, window].reshape(-1, 3), by_theta[:, window].reshape(-1, 2)
        expected = S - J @ np.linalg.lstsq(J, S, rcond=None)[0]
        np.testing.assert_allclose(left[:, window].reshape(-1, 2), expected, rtol=1e-9, atol=1e-12)


def test_velocities_that_are_not_measured_are_found(robot: CompiledRobot, motion: tuple[Windows, Array]) -> None:
    windows, true = motion
    hidden = windows.measured.copy()
    hidden[..., 2:] = np.nan
    only = replace(windows, measured=hidden, starts=windows.starts + np.array([0, 0, 0.3, -0.3]))
    found = settle(Model(robot), only, only.starts, np.asarray(robot.nominal_parameters), np.full(4, 1e-3), robust=True)
    np.testing.assert_allclose(found.starts, true[0], atol=1e-5)


@pytest.mark.slow
def test_the_speeds_of_wheels_that_roll_are_found(built_unseen: Callable[[str], Path], tmp_path: Path) -> None:
    """A unicycle on an arc: two speeds from the rates of three coordinates."""
    robot = modelgen.load("unicycle", directory=built_unseen("unicycle"), parallel=False)
    time = np.arange(60) / 100
    motion = [np.sin(time), 1 - np.cos(time), time, np.ones(60), np.ones(60)]
    path = write(tmp_path / "arc.csv", robot, time, np.stack(motion, axis=1), np.zeros((60, 2)))
    starts = cut(robot, [read(path, robot.metadata, columns((), robot.metadata))], 0.5).starts
    np.testing.assert_allclose(starts, [[0.0, 0.0, 0.0, 1.0, 1.0]], atol=2e-3)


def test_the_step_resolves_the_stiffest_parameters() -> None:
    """A friction of up to ten times the nominal one: the rate decays as exp(-damping t)."""
    robot, s, mass, force = cart()
    damping = robot.parameter("damping", 150.0, "N s/m", bounds=(50, 1500))
    robot.point_mass(mass, (s, 0))
    robot.apply(s, force)
    robot.damp(s, damping)
    robot.task(**{**TASK, "state_cost": s**2})
    built = modelgen.compile(robot)
    x, theta, h = np.array([[0.0, 2.0]]), np.array([1.0, 1500.0]), safe_step(built)
    for _ in range(round(1 / (TASK["control_rate"] * h))):
        x = runge_kutta_step(lambda at, _: built.dynamics(at, np.zeros((1, 1)), theta), x, 0.0, h)
    assert abs(x[0, 1] - 2.0 * np.exp(-1500.0 / TASK["control_rate"])) < 1e-4
