"""Where searches begin: within the limits, repeatable, and on the way to the target."""

from __future__ import annotations

import numpy as np
import pytest

import modelgen
from solver.oracles.guesses import pumped, random_motions
from solver.oracles.trajectory import Guess, NonlinearProgram


def test_guesses_stay_within_the_limits_and_repeat() -> None:
    program = NonlinearProgram(modelgen.load("cartpole", backend="casadi"), seconds=2.0)
    start = np.array([0.0, np.pi, 0.0, 0.0])
    guesses = random_motions(program, start, 6, seed=3)
    again = random_motions(program, start, 6, seed=3)
    ends = set()
    for guess, same in zip(guesses, again, strict=True):
        assert isinstance(guess, Guess)
        assert np.array_equal(guess.x, same.x)
        assert guess.x.shape == (251, 4)
        assert (np.abs(guess.x[:, program.clipped]) <= program.state_limits[program.clipped]).all()
        ends.add(round(float(guess.x[-1, 1]) / np.pi))
    assert ends == {0, 2}  # up by either way round


def test_a_pumped_motion_gains_energy_up_to_the_target() -> None:
    program = NonlinearProgram(modelgen.load("pendulum", backend="casadi"))
    found = pumped(program, np.array([np.pi, 0.01]), 0.4)
    pumping = np.flatnonzero(found.u[:, 0])
    assert np.abs(found.u).max() == pytest.approx(0.4 * 2.5)
    angle, rate = found.x[: len(pumping)].T
    energy = rate**2 / 6 + 9.81 / 2 * np.cos(angle)
    assert energy[-1] - energy[0] > 0.7 * 9.81  # of what lifts it to the top
    assert np.diff(energy).min() > -0.02  # but for the period in which the rod turns round
    np.testing.assert_allclose(np.cos(found.x[len(pumping) + 1 :, 0]), 1.0)
    assert not found.x[len(pumping) + 1 :, 1].any()
