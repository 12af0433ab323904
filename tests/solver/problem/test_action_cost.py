"""Action costs on tensors: closed forms, shapes, limits, and accuracy in float32 where the input saturates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import modelgen
from modelgen.statement.action_costs import ACTION_COSTS, ActionCost
from solver.problem.action_cost import TensorActionCost
from tests.modelgen.support.action_costs import LIMITS, REFERENCES, WEIGHTS, build_pairs, name

Kind = type[ActionCost]
every_cost = pytest.mark.parametrize("kind", ACTION_COSTS)
every_backend = pytest.mark.parametrize("backend", ["llvm", "torch"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with one robot for every action cost."""
    made = tmp_path_factory.mktemp("generated")
    build_pairs(made)
    return made


def make(folder: Path, kind: Kind, dtype: str = "float64", backend: str = "llvm") -> TensorActionCost:
    """The cost as `Problem` makes it."""
    return TensorActionCost(modelgen.load(f"pair_{name(kind)}", backend, dtype, folder))


def closed_form(kind: Kind, u: Tensor) -> list[float]:
    """Closed form of g(u), summed over the inputs."""
    rows = (zip(row, LIMITS, WEIGHTS, strict=True) for row in u.tolist())
    return [sum(REFERENCES[kind](value, limit, weight) for value, limit, weight in row) for row in rows]


@pytest.mark.slow
@every_backend
@every_cost
def test_cost_is_its_closed_form_summed_over_inputs(folder: Path, kind: Kind, backend: str) -> None:
    u = torch.tensor([[1.0, -0.3], [-2.4, 0.79], [0.0, 0.0]], dtype=torch.float64)
    cost = make(folder, kind, backend=backend).cost(u)
    np.testing.assert_allclose(cost, closed_form(kind, u), rtol=1e-12, atol=1e-15)


@pytest.mark.slow
def test_log_cos_policy_has_the_authors_constants(folder: Path) -> None:
    """a = 2.501, beta = 4 * 2.5^2 * 0.5/pi, as for the pendulum."""
    w = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    u = make(folder, modelgen.LogCos).policy(w)
    assert float(u[0, 0]) == pytest.approx(2 * 2.501 / math.pi * math.atan(3.0 * math.pi / 12.5))


@every_cost
def test_cost_of_policy_equals_the_cost_of_its_input(folder: Path, kind: Kind) -> None:
    cost = make(folder, kind)
    w = 6.0 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    np.testing.assert_allclose(cost.cost_of_policy(w), cost.cost(cost.policy(w)), rtol=1e-8, atol=1e-12)


@every_backend
@every_cost
def test_functions_take_any_leading_axes_and_strides(folder: Path, kind: Kind, backend: str) -> None:
    cost = make(folder, kind, backend=backend)
    w = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).permute(1, 2, 0)
    for function, shape in ((cost.policy, (3, 4, 2)), (cost.cost_of_policy, (3, 4)), (cost.cost, (3, 4))):
        arguments = 0.5 * torch.tanh(w)
        costs = function(arguments)
        assert costs.shape == shape
        torch.testing.assert_close(costs[2, 1], function(arguments[2, 1][None])[0])


@every_backend
@every_cost
def test_cost_of_saturated_inputs_is_accurate_in_float32(folder: Path, kind: Kind, backend: str) -> None:
    w = torch.tensor([[10.0**k, -(10.0**k)] for k in range(-2, 4)], dtype=torch.float64)
    exact, single = make(folder, kind), make(folder, kind, "float32", backend)
    np.testing.assert_allclose(single.cost_of_policy(w.float()), exact.cost_of_policy(w), rtol=1e-4, atol=2e-6)
    huge = torch.tensor([[1e15, -1e15], [-1e8, 1e8]])
    assert bool(torch.isfinite(single.cost_of_policy(huge)).all())
    torch.testing.assert_close(single.policy(huge), torch.tensor([LIMITS, LIMITS]) * torch.sign(huge))
    assert bool((single.policy(torch.randn(1000, 2) * 1e4).abs() <= torch.tensor(LIMITS)).all())


@every_backend
@every_cost
def test_cost_of_inputs_near_zero_and_the_limit_is_accurate_in_float32(folder: Path, kind: Kind, backend: str) -> None:
    """A learned policy gives u and not w."""
    shares = torch.tensor([0.9999, 0.99, 0.5, 1e-2, 1e-3, 1e-4, -1e-3, -0.9999], dtype=torch.float64)
    for i, limit in enumerate(LIMITS):
        u = torch.zeros(len(shares), 2)
        u[:, i] = shares * limit
        expected = [
            REFERENCES[kind](value, float(torch.tensor(limit)), WEIGHTS[i]) for value in u[:, i].double().tolist()
        ]
        np.testing.assert_allclose(make(folder, kind, "float32", backend).cost(u), expected, rtol=1e-5)


def test_tanh_cost_at_the_limit_is_finite(folder: Path) -> None:
    """g(limit) = 2 R a^2 log 2, computed from u, and from w of any size."""
    expected = sum(2.0 * r * a**2 * math.log(2.0) for a, r in zip(LIMITS, WEIGHTS, strict=True))
    cost = make(folder, modelgen.Tanh, "float32")
    costs = cost.cost_of_policy(torch.tensor([[1e3, -1e3], [1e6, 1e6], [1e12, 1e12]]))
    np.testing.assert_allclose(costs, expected, rtol=1e-5)
    np.testing.assert_allclose(
        cost.cost(torch.tensor([LIMITS, LIMITS]) * torch.tensor([[1.0], [-1.0]])), expected, rtol=1e-5
    )


def test_quadratic_policy_is_clipped_to_the_input_limits(folder: Path) -> None:
    w = torch.tensor([[1.0, 1.0], [100.0, -100.0]], dtype=torch.float64)
    expected = torch.tensor([[1.0, 1.0 / 3.4], [2.5, -0.8]], dtype=torch.float64)
    torch.testing.assert_close(make(folder, modelgen.Quadratic).policy(w), expected)
