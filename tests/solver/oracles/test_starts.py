"""The starts that stand for a task's distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import modelgen
from modelgen.metadata import Metadata
from solver.errors import SolverError
from solver.oracles.starts import design


def with_starts(robot: str, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Metadata:
    metadata = modelgen.load(robot, backend="casadi").metadata
    task = replace(metadata.task, start_mean=mean, start_deviation=deviation)
    return replace(metadata, task=task)


def test_starts_stand_for_the_distribution() -> None:
    """The mean where nothing is drawn; else the Gaussian's means and deviations, always the same, within the limits."""
    assert design(with_starts("pendulum", (np.pi, 0.0), (0.0, 0.0)), 5).tolist() == [[np.pi, 0.0]]
    metadata = modelgen.load("planar_quadrotor", backend="casadi").metadata
    starts = design(metadata, 7)
    assert np.array_equal(starts, design(metadata, 7))
    assert starts.mean(0) == pytest.approx(metadata.task.start_mean, abs=1e-12)
    assert starts.std(0) == pytest.approx(metadata.task.start_deviation, abs=1e-12)
    assert np.abs(np.corrcoef(starts[:, :3].T) - np.eye(3)).max() < 0.6
    assert design(metadata, 1).tolist() == [list(metadata.task.start_mean)]
    wide = design(with_starts("pendulum", (0.0, 7.0), (3.0, 3.0)), 5)
    assert np.abs(wide[:, 1]).max() == pytest.approx(0.99 * 8.0)  # clipped
    assert np.abs(wide[:, 0]).max() > np.pi  # wraps
    with pytest.raises(SolverError, match="the mean start has angle_rate beyond its limit of 8 rad/s"):
        design(with_starts("pendulum", (np.pi, 8.5), (0.0, 0.0)), 5)
