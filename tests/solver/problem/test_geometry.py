"""Errors of rotations: beside `modelgen.tangent`, SciPy and autograd; and states that stay in the domain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

import modelgen
from modelgen.metadata import Metadata
from modelgen.tangent import Tangent
from solver.evaluation import held_names
from solver.plants.outcome import succeeded
from solver.problem import Problem
from solver.problem.geometry import Geometry, exponential, matrix, turns_within, uniform
from solver.problem.robots import load_robot


@pytest.fixture(scope="module")
def metadata() -> Metadata:
    return modelgen.load("quadrotor").metadata


def states(metadata: Metadata, size: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, len(metadata.states), generator=generator).double()
    x[:, metadata.rotations[0].quaternion] = uniform(size, generator).double()
    Geometry.of(metadata).normalise(x)
    return x


def test_errors_and_moves_are_those_of_the_tangent_space(metadata: Metadata) -> None:
    geometry, tangent, x = Geometry.of(metadata), Tangent(metadata), states(metadata, 20)
    e = 0.5 * torch.randn(20, geometry.size, generator=torch.Generator().manual_seed(2)).double()
    for target, change in zip(x, e, strict=True):
        moved = tangent.moved(target.numpy(), change.numpy())
        np.testing.assert_allclose(geometry.moved(target, change[None])[0], moved, atol=1e-14)
        np.testing.assert_allclose(geometry.error(torch.from_numpy(moved), target), change, atol=1e-12)
        np.testing.assert_allclose(geometry.basis(target[None])[0], tangent.basis(target.numpy()), atol=1e-15)
        np.testing.assert_allclose(geometry.projection(target[None])[0], tangent.projection(target.numpy()), atol=1e-15)
    product = geometry.projection(x) @ geometry.basis(x)
    torch.testing.assert_close(product, torch.eye(geometry.size).double().expand_as(product))


def test_rotations_are_scipys() -> None:
    q = uniform(50, torch.Generator().manual_seed(0)).double()
    expected = Rotation.from_quat(q.numpy(), scalar_first=True)
    np.testing.assert_allclose(matrix(q).view(-1, 3, 3), expected.as_matrix(), atol=1e-6)
    vector = 4.0 * torch.randn(50, 3, generator=torch.Generator().manual_seed(1)).double()
    found = Rotation.from_quat(exponential(vector).numpy(), scalar_first=True)
    np.testing.assert_allclose(found.as_matrix(), Rotation.from_rotvec(vector.numpy()).as_matrix(), atol=1e-12)


def test_the_gradient_of_the_error_is_autograds(metadata: Metadata) -> None:
    """Along the sphere: autograd differentiates the error of a quaternion scaled to length one."""
    geometry, x = Geometry.of(metadata), states(metadata, 200).requires_grad_()
    target, weight = states(metadata, 1, 5)[0], torch.randn(200, geometry.size).double()
    entries = metadata.rotations[0].quaternion
    q = x[:, entries] / x[:, entries].norm(dim=1, keepdim=True)
    on_sphere = torch.cat([x[:, : entries.start], q, x[:, entries.stop :]], 1)
    (geometry.error(on_sphere, target) * weight).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(geometry.pull_back(x.detach(), target, weight), x.grad)


@pytest.mark.parametrize("limit", [0.3, 2.0, math.pi])
def test_rotations_within_an_angle_are_uniform(limit: float) -> None:
    """The angle has the distribution function (a - sin a) / (limit - sin limit), and the axis no direction."""
    turns = turns_within(40_000, limit, torch.Generator().manual_seed(0))
    angle, axis = turns.norm(dim=1), turns / turns.norm(dim=1, keepdim=True)
    assert float(angle.max()) <= limit * (1 + 1e-6)
    share = (angle - angle.sin()) / (limit - math.sin(limit))
    quantiles = torch.quantile(share, torch.tensor([0.1, 0.5, 0.9]))
    torch.testing.assert_close(quantiles, torch.tensor([0.1, 0.5, 0.9]), atol=0.01, rtol=0)
    assert float(axis.mean(0).abs().max()) < 0.02


def test_a_limited_rotation_stays_within_its_angle() -> None:
    """States beyond the angle are turned back about the same axis; they count as at the limit."""
    robot = load_robot("satellite", "cpu", None)
    (rotation,) = robot.metadata.rotations
    robot.metadata = replace(robot.metadata, rotations=(replace(rotation, limit=1.0),))
    problem = Problem(robot)
    x = problem.sample_domain(500, torch.Generator().manual_seed(0))
    entries = rotation.quaternion
    assert float(2.0 * torch.acos(x[:, entries][:, 0].abs()).max()) < 1.0 + 1e-3
    assert not problem.at_limit(x)[:, 4:].any()
    far = x.clone()
    far[:, entries] = uniform(500, torch.Generator().manual_seed(1))
    near = problem.confine(far)
    turned = 2.0 * torch.acos(far[:, entries][:, 0].abs().clamp_max(1.0)) > 1.0
    torch.testing.assert_close(2.0 * torch.acos(near[turned][:, 0].abs()), torch.full((int(turned.sum()),), 1.0))
    assert problem.at_limit(near)[turned][:, entries].all()
    assert held_names(problem, problem.at_limit(near)[turned].any(0).tolist()) == ("attitude",)
    axis, before = (q[turned][:, 1:4] / q[turned][:, 1:4].norm(dim=1, keepdim=True) for q in (near, far))
    torch.testing.assert_close(axis, before, atol=1e-4, rtol=0)
    torch.testing.assert_close(problem.beyond(near), torch.zeros(500), atol=1e-4, rtol=0)


def test_success_counts_the_angle_of_either_quaternion() -> None:
    problem = Problem(load_robot("satellite", "cpu", None))
    settled = problem.target.repeat(40, 3, 1)
    settled[:, 1] = problem.geometry.spread(
        problem.target, torch.tensor([[0.0, math.radians(4.9), 0.0, 0.0, 0.0, 0.0]])
    )
    settled[:, 2] = problem.geometry.spread(
        problem.target, torch.tensor([[0.0, math.radians(5.1), 0.0, 0.0, 0.0, 0.0]])
    )
    assert succeeded(problem, settled).tolist() == [True, True, False]
    settled[..., :4] *= -1.0
    assert succeeded(problem, settled).tolist() == [True, True, False]
