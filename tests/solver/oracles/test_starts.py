"""Starts that represent a task's distribution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import modelgen
from modelgen.metadata import Metadata
from solver.errors import SolverError
from solver.oracles.limit import design


def with_starts(robot: str, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Metadata:
    """Metadata of a robot with another start distribution."""
    metadata = modelgen.load(robot, backend="casadi").metadata
    task = replace(metadata.task, start_mean=mean, start_deviation=deviation)
    return replace(metadata, task=task)


def test_design_of_a_distribution_without_spread_is_its_mean() -> None:
    assert design(with_starts("pendulum", (np.pi, 0.0), (0.0, 0.0)), 5).tolist() == [[np.pi, 0.0]]


def test_design_has_the_mean_and_deviation_of_the_gaussian_and_repeats() -> None:
    metadata = modelgen.load("planar_quadrotor", backend="casadi").metadata
    starts = design(metadata, 7)
    assert np.array_equal(starts, design(metadata, 7))
    assert starts.mean(0) == pytest.approx(metadata.task.start_mean, abs=1e-12)
    assert starts.std(0) == pytest.approx(metadata.task.start_deviation, abs=1e-12)
    assert np.abs(np.corrcoef(starts[:, :3].T) - np.eye(3)).max() < 0.6
    assert design(metadata, 1).tolist() == [list(metadata.task.start_mean)]


def test_design_clips_starts_within_the_limits_and_not_continuous_angles() -> None:
    wide = design(with_starts("pendulum", (0.0, 7.0), (3.0, 3.0)), 5)
    assert np.abs(wide[:, 1]).max() == pytest.approx(0.99 * 8.0)
    assert np.abs(wide[:, 0]).max() > np.pi


def test_mean_start_beyond_a_limit_is_an_error() -> None:
    with pytest.raises(SolverError, match=r"angle_rate 8\.5.* 8 rad/s"):
        design(with_starts("pendulum", (np.pi, 8.5), (0.0, 0.0)), 5)


def test_rotations_are_uniform_or_turned_from_the_mean() -> None:
    """Uniform quaternions have the second moments 1/4; rotation vectors of a small deviation have this deviation."""
    metadata = modelgen.load("satellite", backend="casadi").metadata
    q = design(metadata, 50)[:, :4]
    np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(q.T @ q / len(q), np.eye(4) / 4.0, atol=0.08)
    mean = (0.6, 0.8, 0.0, 0.0, 0.0, 0.0, 0.0)
    near = design(with_starts("satellite", mean, (0.1, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0)), 20)[:, :4]
    assert (2.0 * np.arccos(near @ mean[:4]) < 0.45).all()
    axes = 2.0 * np.stack([near @ row for row in np.array([[-0.8, 0.6, 0, 0], [0, 0, 0.6, 0.8], [0, 0, -0.8, 0.6]])], 1)
    np.testing.assert_allclose(axes.std(0), 0.1, rtol=0.02)
