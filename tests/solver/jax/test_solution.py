"""Policy and value function in JAX beside those of Torch, and their derivatives beside differences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.errors import SolverError
from solver.training.solution import load_solution
from tests.closeness import assert_close

pytestmark = pytest.mark.slow

jax = pytest.importorskip("jax", reason="JAX is not installed")
make = pytest.importorskip("solver.jax.solution").make

RUNS = {  # one input and two; a basin in both
    "pendulum-rfvi": 1e-4,
    "planar_arm2-rfvi": 2e-3,  # Torch ends its contraction at a relative change of 1e-5
}


@cache
def functions_of(run: str) -> Any:
    """Compiled once for every shape."""
    return solver.load(run).to_jax()


def states(run: str, size: int = 200) -> Any:
    problem = load_solution(run).problem
    x = problem.sample_domain(size, torch.Generator().manual_seed(0)).numpy()
    x[: size // 10] = 1e-2 * x[: size // 10] + problem.target.numpy()  # in the basin
    return x


@pytest.mark.parametrize("run", RUNS)
def test_policy_and_value_beside_torch(run: str) -> None:
    x, functions, policy = states(run), functions_of(run), solver.load_policy(run)
    value: Any
    value, gradient = solver.load_value(run)(x)
    np.testing.assert_allclose(functions.value(x), value, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(functions.value))(x), gradient, rtol=0, atol=2e-4 * np.abs(gradient).max()
    )
    np.testing.assert_allclose(functions.policy(x), policy(x), rtol=0, atol=RUNS[run] * policy.limits.max())
    np.testing.assert_allclose(functions.policy(x[3]), policy(x[3]), rtol=0, atol=RUNS[run] * policy.limits.max())


def test_closed_form_beside_torch() -> None:
    x = states("pendulum-rfvi")
    solution = load_solution("pendulum-rfvi", reaction_periods=0)
    expected = solver.load_policy("pendulum-rfvi", reaction_periods=0)(x)
    np.testing.assert_allclose(
        make(solution).policy(x), expected, rtol=0, atol=1e-4 * float(solution.problem.input_limits.max())
    )


def test_far_states_and_those_that_are_no_numbers_are_treated_as_in_torch() -> None:
    x, policy = states("pendulum-rfvi"), solver.load_policy("pendulum-rfvi")
    x[:3] = [[0.3, 1e30], [np.nan, 0.0], [0.1, np.inf]]
    found = functions_of("pendulum-rfvi").policy(x)[:3]
    np.testing.assert_allclose(found, policy(x[:3]), rtol=1e-4, atol=1e-9)


def test_gain_of_the_policy_by_differences() -> None:
    with jax.enable_x64(True):
        policy = solver.load("pendulum-rfvi").to_jax("float64").policy
        x, step = np.array([2.5, 1.0]), 1e-5
        expected = np.stack([(policy(x + step * e) - policy(x - step * e)) / (2 * step) for e in np.eye(2)], -1)
        np.testing.assert_allclose(jax.jit(jax.jacrev(policy))(x), expected, rtol=1e-5, atol=1e-6)


def test_rotations_beside_torch(begun: Callable[..., Path]) -> None:
    """Quaternions of any length."""
    run = begun("quadrotor", drift=True)
    problem, generator = load_solution(run).problem, torch.Generator().manual_seed(1)
    near = problem.geometry.moved(problem.target, 0.02 * torch.randn(50, 12, generator=generator))
    x = torch.cat([problem.sample_domain(100, generator), near]).numpy()
    u, (value, gradient) = solver.load_policy(run)(x), solver.load_value(run)(x)
    x[:, 3:7] *= 1.7
    functions = solver.load(run).to_jax()
    np.testing.assert_allclose(functions.value(x), value, rtol=1e-3, atol=1e-4 * np.abs(value).max())
    np.testing.assert_allclose(functions.gradient(x), gradient, rtol=1e-3, atol=1e-4 * np.abs(gradient).max())
    np.testing.assert_allclose(functions.policy(x), u, atol=2e-3 * 1.4)


def test_networks_with_other_inputs_are_refused() -> None:
    solution = load_solution("pendulum-rfvi")
    for member in solution.ensemble.factors:
        member.weights[0] = torch.nn.Parameter(torch.zeros(4, 8))
    with pytest.raises(SolverError, match="JAX"):
        make(solution)


def test_states_by_name_are_read_in_any_order() -> None:
    policy = solver.load("pendulum-rfvi").to_jax().policy
    named = {"angle_rate": np.array([1.0, -2.0]), "angle": np.array([0.1, 0.5])}
    assert_close(policy(named), policy(np.array([[0.1, 1.0], [0.5, -2.0]])))


def test_wrong_calls_are_explained() -> None:
    run = solver.load("pendulum-rfvi")
    for wrong in (np.ma.array([0.1, 1.0], mask=[True, False]), np.array([1j, 0.0])):
        with pytest.raises(SolverError, match="real numbers"):
            run.to_jax().policy(wrong)
    with pytest.raises(SolverError, match=r"\(3,\).*\(2,\)"):
        run.to_jax().value(np.zeros(3))
    with jax.enable_x64(True):
        exact = run.to_jax("float64")
    with jax.enable_x64(False), pytest.raises(SolverError, match="jax_enable_x64"):
        exact.value(np.zeros(2))
