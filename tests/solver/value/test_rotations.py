"""Values, their gradients, the metric and the linearisation of a robot with a rotation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from modelgen.tangent import Tangent
from solver.game.policies import Hold
from solver.local.basin import cost_to_go, find_basin, near_target, shell
from solver.local.linearization import linearization
from solver.problem import Problem
from solver.problem.robots import load_robot
from solver.training.settings import Settings
from solver.training.solution import make_ensemble
from solver.value.family import Basin
from solver.value.features import UNSEEN
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem(load_robot("quadrotor", "cpu", None))


@pytest.fixture(scope="module")
def ensemble(problem: Problem) -> Ensemble:
    """Untrained, with a metric."""
    riccati = cost_to_go(problem)
    assert riccati is not None
    made = make_ensemble(problem.robot, Settings())
    made.set_metric(torch.tensor(riccati[0]).float(), 5.0)
    return made


def test_the_gradient_is_autograds_along_the_sphere(problem: Problem, ensemble: Ensemble) -> None:
    x = problem.sample_domain(200, torch.Generator().manual_seed(0))
    value, gradient = FrozenValue(ensemble)(x)
    free = x.clone().requires_grad_()
    expected = ensemble(free)
    expected.sum().backward()
    assert free.grad is not None
    q = problem.geometry.rotations[0].quaternion
    free.grad[:, q] -= x[:, q] * (free.grad[:, q] * x[:, q]).sum(1, keepdim=True)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(gradient, free.grad, rtol=1e-3, atol=1e-4 * float(gradient.abs().max()))


def test_a_quaternion_and_its_negative_have_one_value(problem: Problem, ensemble: Ensemble) -> None:
    x = problem.sample_domain(50, torch.Generator().manual_seed(0))
    other = x.clone()
    other[:, problem.geometry.rotations[0].quaternion] *= -1.0
    for function in (FrozenValue(ensemble), lambda at: (problem.state_cost(at), None)):
        torch.testing.assert_close(function(x)[0], function(other)[0])


def test_the_metric_is_the_riccati_equations_near_the_target(problem: Problem, ensemble: Ensemble) -> None:
    riccati = cost_to_go(problem)
    assert riccati is not None
    P = torch.tensor(riccati[0]).float()
    e = 0.01 * torch.randn(200, problem.geometry.size, generator=torch.Generator().manual_seed(0))
    z = ensemble.features(problem.geometry.moved(problem.target, e))
    y, _ = ensemble.features.straight(z)
    unseen = UNSEEN * 5.0 * (z - ensemble.features.at_target).square().sum(1)
    torch.testing.assert_close((y * y).sum(1), ((e @ P) * e).sum(1) + unseen, rtol=0.02, atol=0)


def test_one_error_moves_every_state(problem: Problem) -> None:
    """One lean of a robot, of which `solver evaluate` asks at every state of its rollouts."""
    x = problem.sample_domain(5, torch.Generator().manual_seed(0))
    e = 0.1 * torch.randn(1, problem.geometry.size, generator=torch.Generator().manual_seed(1))
    moved = problem.geometry.moved(x, e)
    torch.testing.assert_close(moved, torch.cat([problem.geometry.moved(row, e) for row in x]))
    with pytest.raises(RuntimeError):
        problem.geometry.moved(x, e.expand(3, -1))


def test_the_linearisation_is_that_of_small_errors(problem: Problem) -> None:
    """Differences of the rates of errors, by moves along the sphere."""
    local, tangent = linearization(problem.robot), Tangent(problem.robot.metadata)
    target, trim = np.array(problem.robot.metadata.task.target), problem.trim.double().numpy()[None]

    def rates(e: np.ndarray) -> np.ndarray:
        x = tangent.moved(target, e)
        return tangent.projection(x) @ np.asarray(local.robot.dynamics(x[None], trim))[0]

    steps = 1e-5 * np.eye(tangent.size)
    slopes = np.array([(rates(step) - rates(-step)) / 2e-5 for step in steps]).T
    np.testing.assert_allclose(local.A, slopes, atol=1e-6 * np.abs(slopes).max())


@pytest.mark.slow
def test_a_basin_is_a_set_of_rotations() -> None:
    problem = Problem(load_robot("satellite", "cpu", None))
    basin = find_basin(problem, Hold(0.0))
    assert isinstance(basin, Basin)
    on_shell = shell(problem, basin, 100)
    torch.testing.assert_close(basin.distance(on_shell), torch.full((100,), float(basin.level)), rtol=1e-3, atol=0)
    x = near_target(problem, basin, 500, torch.Generator().manual_seed(0))
    for states in (on_shell, x):
        torch.testing.assert_close(states[:, :4].norm(dim=1), torch.ones(len(states)))
    assert 0.2 < float((basin.distance(x) < basin.level).float().mean()) < 0.8
