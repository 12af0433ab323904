"""Action costs against their definitions: convexity, the conjugate by search, float32 at saturation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from modelgen.metadata import ActionCost as ActionCostMetadata
from solver.errors import SolverError
from solver.problem.action_cost import ACTION_COSTS, ActionCost, make_action_cost

LIMITS, WEIGHTS = [2.5, 0.8], [0.5, 1.7]


def make(name: str, dtype: torch.dtype = torch.float64) -> ActionCost:
    metadata = ActionCostMetadata(name, tuple(WEIGHTS))  # type: ignore[arg-type]
    return make_action_cost(metadata, torch.tensor(LIMITS, dtype=dtype))


def reference_log_cos(u: float, limit: float, weight: float) -> float:
    a, beta = limit + 1e-3, 4.0 * limit**2 * weight / math.pi
    return -2.0 * beta * a / math.pi * math.log(math.cos(math.pi * u / (2.0 * a)))


def reference_quadratic(u: float, _limit: float, weight: float) -> float:
    return weight * u**2


def reference_tanh(u: float, limit: float, weight: float) -> float:
    s = u / limit
    return 2.0 * weight * limit**2 * (s * math.atanh(s) + 0.5 * math.log(1.0 - s**2))


REFERENCES: dict[str, Callable[[float, float, float], float]] = {
    "log_cos": reference_log_cos,
    "quadratic": reference_quadratic,
    "tanh": reference_tanh,
}


def sampled_w(size: int = 40) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return 6.0 * torch.randn(size, 2, generator=generator, dtype=torch.float64)


def test_every_cost_has_a_reference() -> None:
    assert REFERENCES.keys() == ACTION_COSTS.keys()


@pytest.mark.parametrize("name", REFERENCES)
def test_cost_is_its_formula_summed_over_inputs(name: str) -> None:
    u = torch.tensor([[1.0, -0.3], [-2.4, 0.79], [0.0, 0.0]], dtype=torch.float64)
    expected = [
        sum(REFERENCES[name](v, limit, weight) for v, limit, weight in zip(row, LIMITS, WEIGHTS, strict=True))
        for row in u.tolist()
    ]
    np.testing.assert_allclose(make(name).cost(u), expected, rtol=1e-12, atol=1e-15)


def test_log_cos_has_the_authors_constants() -> None:
    """Pendulum: a = 2.501, beta = 4 * 2.5^2 * 0.5/pi."""
    cost = make("log_cos")
    w = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    assert float(cost.policy(w)[0, 0]) == pytest.approx(2 * 2.501 / math.pi * math.atan(3.0 * math.pi / 12.5))


@pytest.mark.parametrize("name", REFERENCES)
def test_policy_maximises_the_hamiltonian(name: str) -> None:
    """w u - g(u) on a dense grid is nowhere larger than at policy(w), and largest beside it."""
    w = sampled_w()
    u = make(name).policy(w)
    for i, (limit, weight) in enumerate(zip(LIMITS, WEIGHTS, strict=True)):
        grid = np.linspace(-limit, limit, 20001)[1:-1]
        cost = np.array([REFERENCES[name](v, limit, weight) for v in grid])
        for wi, ui in zip(w[:, i].tolist(), u[:, i].tolist(), strict=True):
            objective = wi * grid - cost
            best = int(objective.argmax())
            inside = min(max(ui, grid[0]), grid[-1])
            assert wi * inside - REFERENCES[name](inside, limit, weight) >= objective[best] - 1e-9
            assert abs(ui - grid[best]) < 2.5e-4 * limit


@pytest.mark.parametrize("name", REFERENCES)
def test_cost_of_policy_is_the_cost_of_the_policy(name: str) -> None:
    cost, w = make(name), sampled_w()
    np.testing.assert_allclose(cost.cost_of_policy(w), cost.cost(cost.policy(w)), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", REFERENCES)
def test_cost_is_convex_even_and_zero_only_at_rest(name: str) -> None:
    limits = torch.tensor(LIMITS, dtype=torch.float64)
    grid = torch.linspace(-0.999, 0.999, 4001, dtype=torch.float64)[:, None] * limits
    cost = make(name).cost(grid)
    assert bool((cost[2:] - 2.0 * cost[1:-1] + cost[:-2] > 0.0).all())
    torch.testing.assert_close(cost, cost.flip(0))
    assert float(make(name).cost(torch.zeros(1, 2, dtype=torch.float64))) == 0.0
    assert bool((cost[:2000] > 0.0).all())


@pytest.mark.parametrize("name", ["quadratic", "tanh"])
def test_curvature_at_rest_is_twice_the_weight(name: str) -> None:
    h = 1e-3
    for i, weight in enumerate(WEIGHTS):
        u = torch.zeros(1, 2, dtype=torch.float64)
        u[0, i] = h
        assert float(2.0 * make(name).cost(u)) / h**2 == pytest.approx(2.0 * weight, rel=1e-4)


@pytest.mark.parametrize("name", REFERENCES)
def test_saturated_inputs_keep_their_digits_in_float32(name: str) -> None:
    w = torch.tensor([[10.0**k, -(10.0**k)] for k in range(-2, 4)], dtype=torch.float64)
    exact, single = make(name), make(name, torch.float32)
    np.testing.assert_allclose(single.cost_of_policy(w.float()), exact.cost_of_policy(w), rtol=1e-4, atol=2e-6)
    huge = torch.tensor([[1e15, -1e15], [-1e8, 1e8]])
    assert bool(torch.isfinite(single.cost_of_policy(huge)).all())
    torch.testing.assert_close(single.policy(huge).abs(), torch.tensor([LIMITS, LIMITS]))
    assert bool((single.policy(torch.randn(1000, 2) * 1e4).abs() <= torch.tensor(LIMITS)).all())


def test_tanh_cost_levels_off_at_its_limit() -> None:
    """g(limit) = 2 R a^2 log 2, however large w is."""
    expected = sum(2.0 * r * a**2 * math.log(2.0) for a, r in zip(LIMITS, WEIGHTS, strict=True))
    cost = make("tanh", torch.float32).cost_of_policy(torch.tensor([[1e3, -1e3], [1e6, 1e6], [1e12, 1e12]]))
    np.testing.assert_allclose(cost, expected, rtol=1e-5)


def test_quadratic_policy_is_clipped() -> None:
    w = torch.tensor([[1.0, 1.0], [100.0, -100.0]], dtype=torch.float64)
    expected = torch.tensor([[1.0, 1.0 / 3.4], [2.5, -0.8]], dtype=torch.float64)
    torch.testing.assert_close(make("quadratic").policy(w), expected)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(SolverError, match=r"cubic.*log_cos"):
        make("cubic")


@pytest.mark.parametrize("name", REFERENCES)
def test_cost_of_a_saturated_input_keeps_its_digits_in_float32(name: str) -> None:
    """A learned policy gives u, not w, and may sit on the limit, where the tanh barrier is 2 R a^2 log 2."""
    u = torch.tensor([[2.5, -0.8], [-2.4999, 0.79999]], dtype=torch.float32)
    limits = torch.tensor(LIMITS, dtype=torch.float32)
    metadata = ActionCostMetadata(name, tuple(WEIGHTS))  # type: ignore[arg-type]
    exact, single = make_action_cost(metadata, limits.double()).cost(u.double()), make(name, torch.float32).cost(u)
    np.testing.assert_allclose(single, exact, rtol=1e-5)
    if name == "tanh":
        at_limit = sum(2.0 * w * a**2 * math.log(2.0) for w, a in zip(WEIGHTS, LIMITS, strict=True))
        assert float(single[0]) == pytest.approx(at_limit, rel=1e-6)
