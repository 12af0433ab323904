"""Functions of JAX of a family, beside Torch's at random states and contexts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import solver
from solver.errors import SolverError
from solver.training.solution import load_solution
from tests.solver.small_trainings import FAMILIES

jax = pytest.importorskip("jax", reason="JAX is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "planar_quadrotor", "lean"])
def test_beside_torch(name: str, trained_family: Callable[[str], Path]) -> None:
    run = trained_family(name)
    solution = load_solution(run, contexts=True)
    problem, context = solution.problem, solution.problem.context
    assert context is not None
    rows, n = problem.sample_domain(60, torch.Generator().manual_seed(1)), len(problem.target)
    rows[:20, :n] = problem.target + 0.02 * (rows[:20, :n] - problem.target)
    theta = np.asarray(problem.split(rows)[1])[:, context.columns.tolist()]
    values: Any = dict(zip(context.names, theta.T, strict=True))
    x, functions = rows[:, :n].numpy(), solver.load(run).to_jax()
    value, gradient = solution.value(rows)
    u, limits = solution.controller()(rows)[0].numpy(), problem.input_limits.numpy()
    np.testing.assert_allclose(functions.value(x, **values), value, rtol=1e-3, atol=1e-4 * float(value.abs().max()))
    found = functions.gradient(x, **values)
    np.testing.assert_allclose(found, gradient, rtol=1e-2, atol=1e-3 * float(gradient.abs().max()))
    assert np.abs((np.asarray(functions.policy(x, **values)) - u) / limits).max() < 0.02
    one = {key: float(each[5]) for key, each in values.items()}
    np.testing.assert_allclose(functions.policy(x[5], **one), u[5], atol=0.02 * limits.max())
    assert np.abs(np.asarray(functions.policy(x)) - u).max() > 1e-2 * limits.max()  # nominal ones


@pytest.mark.slow
def test_a_derivative_by_what_is_told(trained_family: Callable[[str], Path]) -> None:
    functions = solver.load(trained_family("pendulum")).to_jax()
    assert set(FAMILIES["pendulum"]) == {"mass", "length"}
    x = np.array([2.0, 0.5], np.float32)
    slope = float(jax.grad(lambda mass: functions.value(x, mass=mass))(1.1))
    step = 0.02
    expected = float(functions.value(x, mass=1.1 + step) - functions.value(x, mass=1.1 - step)) / (2 * step)
    assert slope == pytest.approx(expected, rel=0.02, abs=1e-3)
    with pytest.raises(SolverError, match="weight"):
        functions.policy(x, weight=1.0)
    with pytest.raises(SolverError, match=r"mass .*\(3,\)"):
        functions.policy(x, mass=np.ones(3))
