"""Extreme points of the admissible sets, compared with brute force over members of the set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from modelgen.loader import CompiledRobot
from solver.errors import SolverError
from solver.game.adversaries import Ball, Box, Ellipsoid, unit_rows
from solver.problem import Problem

Load = Callable[[str], CompiledRobot]
P = torch.tensor([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.2]])
CENTRE = torch.tensor([0.4, -0.2, 1.0])


def gradients(dimension: int, size: int = 20) -> Tensor:
    """Random gradients (size, dimension)."""
    return torch.randn(size, dimension, generator=torch.Generator().manual_seed(1))


def unit_vectors(dimension: int, size: int = 20000) -> Tensor:
    """Random unit vectors (size, dimension)."""
    return unit_rows(torch.randn(size, dimension, generator=torch.Generator().manual_seed(2)))


def ellipsoid_boundary(size: int = 20000) -> Tensor:
    """Points on the boundary of the ellipsoid of P and CENTRE, by a Cholesky factor."""
    return CENTRE + unit_vectors(3, size) @ torch.linalg.cholesky(P).T


def assert_best(extreme: Tensor, members: Tensor, z: Tensor) -> None:
    """No member has a smaller z . xi than the extreme point, and some are close to it."""
    reached, others = (z * extreme).sum(1), z @ members.T
    spread = others.amax(1) - others.amin(1)
    assert bool((others.amin(1) >= reached - 1e-5 * spread).all())
    assert bool((others.amin(1) <= reached + 0.02 * spread).all())


def test_extreme_point_of_a_ball_is_the_best_of_its_members() -> None:
    z = gradients(3)
    extreme = Ball(0.7).extreme_point(z)
    torch.testing.assert_close(torch.linalg.vector_norm(extreme, dim=1), torch.full((20,), 0.7))
    assert_best(extreme, 0.7 * unit_vectors(3), z)


def test_ball_takes_one_radius_for_every_sample() -> None:
    radius = torch.linspace(0.1, 2.0, 20)[:, None]
    norms = torch.linalg.vector_norm(Ball(radius).extreme_point(gradients(3)), dim=1)
    torch.testing.assert_close(norms, radius[:, 0])


def test_extreme_point_of_a_box_is_the_best_of_its_corners() -> None:
    lower, upper = torch.tensor([-1.0, 0.2, -3.0]), torch.tensor([2.0, 0.3, -1.0])
    z = gradients(3)
    corners = torch.tensor(list(itertools.product(*zip(lower.tolist(), upper.tolist(), strict=True))))
    extreme = Box(lower, upper, 0.5 * (lower + upper)).extreme_point(z)
    torch.testing.assert_close((z * extreme).sum(1), (z @ corners.T).amin(1))


def test_extreme_point_of_an_ellipsoid_is_the_best_of_its_members() -> None:
    z = gradients(3)
    extreme = Ellipsoid.from_matrix(CENTRE, P).extreme_point(z)
    shift = (extreme - CENTRE).double()
    torch.testing.assert_close(
        (shift @ torch.linalg.inv(P.double()) * shift).sum(1), torch.ones(20, dtype=torch.float64), rtol=1e-4, atol=0.0
    )
    assert_best(extreme, ellipsoid_boundary(), z)
    by_formula = CENTRE - z @ P / torch.sqrt((z @ P * z).sum(1, keepdim=True))
    torch.testing.assert_close(extreme, by_formula)


def test_extreme_point_of_a_flat_ellipsoid_with_tiny_units_is_exact() -> None:
    """The second parameter is known exactly. The first is of the order of 1e-9, as an inertia may be."""
    centre = torch.tensor([2e-9, 3.0, 0.5])
    ellipsoid = Ellipsoid.from_matrix(centre, torch.diag(torch.tensor([1e-20, 0.0, 0.04])))
    extreme = ellipsoid.extreme_point(torch.tensor([[1e9, 5.0, 0.0], [0.0, 5.0, 0.0], [0.0, 1.0, -1e-6]]))
    expected = torch.tensor([[2e-9 - 1e-10, 3.0, 0.5], [2e-9, 3.0, 0.5], [2e-9, 3.0, 0.7]])
    torch.testing.assert_close(extreme, expected, rtol=1e-5, atol=0.0)


@pytest.mark.parametrize("admissible_set", [Ball(1.0), Box(-CENTRE.abs(), CENTRE.abs(), 0.0 * CENTRE)])
def test_extreme_point_for_a_zero_gradient_is_the_centre(admissible_set: Ball | Box) -> None:
    assert torch.equal(admissible_set.extreme_point(torch.zeros(2, 3)), torch.zeros(2, 3))
    ellipsoid = Ellipsoid.from_matrix(CENTRE, P)
    torch.testing.assert_close(ellipsoid.extreme_point(torch.zeros(2, 3)), CENTRE.expand(2, 3))


@pytest.mark.parametrize(
    ("matrix", "match"),
    [
        (P - torch.eye(3), "semidefinite"),
        (P + torch.triu(torch.ones(3, 3), 1), "symmetric"),
        (torch.eye(2), r"3 dimensions.*\(2, 2\)"),
    ],
)
def test_matrix_of_no_ellipsoid_is_an_error(matrix: Tensor, match: str) -> None:
    with pytest.raises(SolverError, match=match):
        Ellipsoid.from_matrix(CENTRE, matrix)


@pytest.mark.parametrize("name", ["pendulum", "furuta"])
def test_ellipsoid_minimises_the_linearised_hamiltonian_of_a_robot(
    load: Load, load64: Callable[[str], CompiledRobot], name: str
) -> None:
    """An ellipsoid of parameters is compared with its members, by differences of the dynamics in float64."""
    problem, robot = Problem(load(name)), load64(name)
    nominal, generator = problem.theta, torch.Generator().manual_seed(3)
    root = 0.1 * nominal[:, None] * torch.randn(len(nominal), len(nominal), generator=generator)
    centre = 1.05 * nominal
    members = (centre + unit_vectors(len(nominal), 2000) @ torch.linalg.cholesky(root @ root.T).T).double().numpy()
    x = problem.sample_domain(5, generator)
    costate = torch.randn(x.shape, generator=generator) / problem.state_limits
    u = problem.input_limits * (2.0 * torch.rand(5, len(problem.input_limits), generator=generator) - 1.0)
    z = problem.robot.hamiltonian_gradient(x, u, costate)[2]
    extreme = Ellipsoid.from_matrix(centre, root @ root.T).extreme_point(z).double().numpy()
    step, at = 1e-5, nominal.double().numpy()
    for i in range(5):
        y, v, p = (rows[i : i + 1].double().numpy() for rows in (x, u, costate))

        def linearised(theta: np.ndarray, y: np.ndarray = y, v: np.ndarray = v, p: np.ndarray = p) -> float:
            ahead, behind = (robot.dynamics(y, v, at + side * step * (theta - at)) for side in (1.0, -1.0))
            return float((p * (ahead - behind)).sum()) / (2.0 * step)

        reached, others = linearised(extreme[i]), [linearised(member) for member in members[:400]]
        spread = max(others) - min(others)
        assert min(others) >= reached - 1e-3 * spread
        assert not math.isclose(spread, 0.0)
