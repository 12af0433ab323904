"""Samples cover the domain and its corners."""

from __future__ import annotations

import numpy as np

from modelgen.derivation.model_file import load
from modelgen.derivation.sampling import samples


def test_samples_stay_within_the_domain_and_reach_its_corners() -> None:
    robot = load("cartpole")
    x, theta = samples(robot, 80)
    limits = np.array([joint.limit for joint in robot.joints] + [speed.limit for speed in robot.velocities])
    lower, upper = np.array([each.bounds for each in robot.parameters if not each.fixed]).T
    assert (np.abs(x) <= limits).all()
    assert ((lower <= theta) & (theta <= upper)).all()
    states, parameters = (np.abs(x) == limits).all(axis=1), ((theta == lower) | (theta == upper)).all(axis=1)
    eighths = np.arange(80) // 10
    np.testing.assert_array_equal(states, eighths <= 1)
    np.testing.assert_array_equal(parameters, (eighths == 1) | (eighths == 2))
