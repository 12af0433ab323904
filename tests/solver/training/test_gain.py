"""Derivatives of policies of Torch tensors, beside differences in float64, and under the transformations of Torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.func import grad, jacfwd, jacrev, vmap

import solver
from solver.errors import SolverError
from solver.plants.outcome import without_input
from solver.policy import Policy
from solver.problem.parameters import Change
from solver.training.gain import SmoothPolicy
from solver.training.solution import Solution, load_solution
from tests.closeness import assert_close

pytestmark = pytest.mark.slow

STEP = 1e-5


def states(solution: Solution, size: int = 40) -> Tensor:
    """States of the whole domain, and near the target, where a basin may be."""
    problem, generator = solution.problem, torch.Generator().manual_seed(0)
    e = 0.02 * torch.randn(size, problem.geometry.size, generator=generator)
    return torch.cat([problem.sample_domain(size, generator), problem.geometry.moved(problem.target, e)]).double()


def require_equal_to_differences(
    run: str | Path, periods: float | None = None, told: Mapping[str, Change] | None = None
) -> None:
    """The derivative of the formula in float64, whose inputs are those of the policy in float32."""
    solution = load_solution(run, None, periods, told or {})
    gain, x = SmoothPolicy(solution), states(solution)
    u, slope = gain(x)
    limits = solution.problem.input_limits.double()
    found = solver.load_policy(run, None, periods, told or {})(x).double()
    away = ((found - u) / limits).abs()
    assert away.median() < 1e-4
    assert away.max() < 0.02  # where w is a small difference of large numbers, float32 has few digits
    moves = STEP * torch.eye(x.shape[1]).double()
    differences = torch.stack([(gain(x + move)[0] - gain(x - move)[0]) / (2 * STEP) for move in moves], 2)
    off, size = ((each / limits[:, None]).abs().amax((1, 2)) for each in (slope - differences, slope))
    # A state or two may lie beside an edge, or have a P that is nearly singular, where differences are rounding.
    assert (off / (size + 1e-2)).quantile(0.97) < 1e-4
    assert (off / (size + 1e-2)).median() < 1e-6


@pytest.mark.parametrize(
    ("run", "periods"),
    [("pendulum-rfvi", None), ("pendulum-rfvi", 0), ("planar_arm2-rfvi", None), ("planar_quadrotor-cfvi", None)],
)
def test_the_derivative_is_that_of_differences(run: str, periods: float | None) -> None:
    require_equal_to_differences(run, periods)


def test_of_a_robot_with_a_rotation(begun: Callable[..., Path]) -> None:
    """Quaternions are scaled to length one, so the derivative along them is 0."""
    run = begun("quadrotor", drift=True)
    require_equal_to_differences(run, 1)
    x = states(load_solution(run))
    along = torch.zeros_like(x)
    along[:, 3:7] = x[:, 3:7]
    _, slope = SmoothPolicy(load_solution(run))(x)
    assert (slope @ along[..., None]).abs().max() < 1e-9 * slope.abs().max()


def test_of_a_policy_that_is_told_parameters(trained_family: Callable[[str], Path]) -> None:
    require_equal_to_differences(trained_family("lean"), told={"mass": 1.2})


def test_gradients_and_transformations_of_torch() -> None:
    """Of one state and of many; `vmap` gives what a batch gives."""
    run = "planar_arm2-rfvi"
    policy, x = solver.load_policy(run), states(load_solution(run), 5)
    u, (_, slope) = policy(x), SmoothPolicy(load_solution(run))(x)
    assert torch.equal(vmap(policy)(x), u)
    assert torch.equal(vmap(policy, in_dims=1)(x.T.contiguous()), u)
    assert torch.equal(vmap(policy)(x.unflatten(0, (2, 5))), u.unflatten(0, (2, 5)))
    assert torch.equal(vmap(vmap(policy))(x.unflatten(0, (2, 5))), u.unflatten(0, (2, 5)))
    for found in (vmap(jacrev(policy))(x), torch.stack([jacrev(policy)(row) for row in x]), vmap(jacfwd(policy))(x)):
        assert_close(found / slope.abs().max(), slope / slope.abs().max())
    expected = 2 * torch.einsum("bm,bmn->bn", u.double(), slope)
    free = x.clone().requires_grad_()
    policy(free).square().sum().backward()
    assert free.grad is not None
    assert free.grad.dtype == torch.float64
    assert_close(free.grad, expected)
    assert_close(vmap(grad(lambda row: policy(row).square().sum()))(x), expected)
    exact = x.float().requires_grad_()
    policy(exact).square().sum().backward()
    assert exact.grad is not None
    assert exact.grad.dtype == torch.float32


def test_states_beyond_all_and_none() -> None:
    policy = solver.load_policy("pendulum-rfvi")
    x = torch.tensor([[0.3, 1e30], [torch.nan, 0.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(policy(x).sum(), x)
    assert slope[0, 1] == 0.0
    assert slope[1].isnan().any()
    assert vmap(policy)(torch.zeros(0, 2)).shape == (0, 1)


@pytest.mark.slow
def test_wrong_calls_are_explained() -> None:
    policy = solver.load_policy("pendulum-rfvi")
    with pytest.raises(SolverError, match=r"\(3,\).*\(2,\)"):
        vmap(policy)(torch.zeros(4, 3))
    for second in (jacrev(jacrev(policy)), jacfwd(jacrev(policy))):
        with pytest.raises(SolverError, match="once"):
            second(torch.zeros(2))
    problem = load_solution("pendulum-rfvi").problem
    idle, x = Policy(without_input(problem), problem.robot, "idle"), torch.zeros(2, requires_grad=True)
    with pytest.raises(SolverError, match="idle"):
        idle(x).sum().backward()
    assert_close(vmap(idle)(torch.ones(3, 2)), torch.zeros(3, 1))
