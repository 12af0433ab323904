"""The action cost on tensors: shapes, limits, and the digits of float32 where the input saturates."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import modelgen
from modelgen.statement.action_costs import ACTION_COSTS
from modelgen.statement.action_costs import ActionCost as Statement
from solver.problem.action_cost import ActionCost
from tests.modelgen.support.action_costs import LIMITS, REFERENCES, WEIGHTS, build_pairs, name

Kind = type[Statement]
every_cost = pytest.mark.parametrize("kind", ACTION_COSTS)
every_backend = pytest.mark.parametrize("backend", ["llvm", "torch"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artifacts of robots with every cost."""
    made = tmp_path_factory.mktemp("generated")
    build_pairs(made)
    return made


def make(folder: Path, kind: Kind, dtype: str = "float64", backend: str = "llvm") -> ActionCost:
    """The cost as a solver has it."""
    return ActionCost(modelgen.load(f"pair_{name(kind)}", backend, dtype, folder))


def closed_form(kind: Kind, u: Tensor) -> list[float]:
    """g(u) summed over the inputs."""
    rows = (zip(row, LIMITS, WEIGHTS, strict=True) for row in u.tolist())
    return [sum(REFERENCES[kind](value, limit, weight) for value, limit, weight in row) for row in rows]


@every_backend
@every_cost
def test_cost_is_its_closed_form_summed_over_inputs(folder: Path, kind: Kind, backend: str) -> None:
    u = torch.tensor([[1.0, -0.3], [-2.4, 0.79], [0.0, 0.0]], dtype=torch.float64)
    cost = make(folder, kind, backend=backend).cost(u)
    np.testing.assert_allclose(cost, closed_form(kind, u), rtol=1e-12, atol=1e-15)


def test_log_cos_has_the_authors_constants(folder: Path) -> None:
    """a = 2.501, beta = 4 * 2.5^2 * 0.5/pi, as for the pendulum."""
    w = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    u = make(folder, modelgen.LogCos).policy(w)
    assert float(u[0, 0]) == pytest.approx(2 * 2.501 / math.pi * math.atan(3.0 * math.pi / 12.5))


@every_cost
def test_cost_of_policy_is_the_cost_of_the_policy(folder: Path, kind: Kind) -> None:
    cost = make(folder, kind)
    w = 6.0 * torch.randn(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    np.testing.assert_allclose(cost.cost_of_policy(w), cost.cost(cost.policy(w)), rtol=1e-8, atol=1e-12)


@every_backend
@every_cost
def test_any_leading_axes_and_any_strides(folder: Path, kind: Kind, backend: str) -> None:
    cost = make(folder, kind, backend=backend)
    w = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64).permute(1, 2, 0)
    for function, shape in ((cost.policy, (3, 4, 2)), (cost.cost_of_policy, (3, 4)), (cost.cost, (3, 4))):
        given = 0.5 * torch.tanh(w)
        found = function(given)
        assert found.shape == shape
        torch.testing.assert_close(found[2, 1], function(given[2, 1][None])[0])


@every_backend
@every_cost
def test_saturated_inputs_keep_their_digits_in_float32(folder: Path, kind: Kind, backend: str) -> None:
    w = torch.tensor([[10.0**k, -(10.0**k)] for k in range(-2, 4)], dtype=torch.float64)
    exact, single = make(folder, kind), make(folder, kind, "float32", backend)
    np.testing.assert_allclose(single.cost_of_policy(w.float()), exact.cost_of_policy(w), rtol=1e-4, atol=2e-6)
    huge = torch.tensor([[1e15, -1e15], [-1e8, 1e8]])
    assert bool(torch.isfinite(single.cost_of_policy(huge)).all())
    torch.testing.assert_close(single.policy(huge), torch.tensor([LIMITS, LIMITS]) * torch.sign(huge))
    assert bool((single.policy(torch.randn(1000, 2) * 1e4).abs() <= torch.tensor(LIMITS)).all())


@every_backend
@every_cost
def test_cost_keeps_its_digits_in_float32(folder: Path, kind: Kind, backend: str) -> None:
    """A learned policy gives u, not w, and may sit on the limit or beside zero."""
    shares = torch.tensor([0.9999, 0.99, 0.5, 1e-2, 1e-3, 1e-4, -1e-3, -0.9999], dtype=torch.float64)
    for i, limit in enumerate(LIMITS):
        u = torch.zeros(len(shares), 2)
        u[:, i] = shares * limit
        expected = [
            REFERENCES[kind](each, float(torch.tensor(limit)), WEIGHTS[i]) for each in u[:, i].double().tolist()
        ]
        np.testing.assert_allclose(make(folder, kind, "float32", backend).cost(u), expected, rtol=1e-5)


def test_tanh_levels_off_at_its_limit(folder: Path) -> None:
    """g(limit) = 2 R a^2 log 2, from u and from w, however large w is."""
    expected = sum(2.0 * r * a**2 * math.log(2.0) for a, r in zip(LIMITS, WEIGHTS, strict=True))
    cost = make(folder, modelgen.Tanh, "float32")
    found = cost.cost_of_policy(torch.tensor([[1e3, -1e3], [1e6, 1e6], [1e12, 1e12]]))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(
        cost.cost(torch.tensor([LIMITS, LIMITS]) * torch.tensor([[1.0], [-1.0]])), expected, rtol=1e-5
    )


def test_quadratic_policy_is_clipped(folder: Path) -> None:
    w = torch.tensor([[1.0, 1.0], [100.0, -100.0]], dtype=torch.float64)
    expected = torch.tensor([[1.0, 1.0 / 3.4], [2.5, -0.8]], dtype=torch.float64)
    torch.testing.assert_close(make(folder, modelgen.Quadratic).policy(w), expected)
