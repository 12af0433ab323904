"""Basin, compared with autograd of its formula, and a value function with a basin."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from solver.value.family import Basin
from solver.value.frozen import FrozenValue
from solver.value.network import Ensemble

CONTINUOUS, TARGET = [False, True, False, True], [0.2, 2.9, -0.3, -1.0]
ROOT = torch.tensor([[2.0, 0, 0, 0], [-0.7, 1.5, 0, 0], [0.4, 0.3, 0.8, 0], [-0.2, 0.9, 0.1, 0.6]], dtype=torch.float64)
COST = ROOT @ ROOT.T


def ensemble_of(level: float, members: int = 2) -> Ensemble:
    """Float64 ensemble with the basin of this level."""
    generator = torch.Generator().manual_seed(3)
    ensemble = Ensemble(CONTINUOUS, TARGET, [1.0, 1.0, 0.6, 1.0], members, 2, 9, generator).double()
    ensemble.target.copy_(torch.tensor(TARGET, dtype=torch.float64))
    ensemble.set_basin(basin_of(level))
    return ensemble


def basin_of(level: float) -> Basin:
    """Basin of COST about TARGET."""
    return Basin(torch.tensor(TARGET, dtype=torch.float64), torch.tensor(CONTINUOUS), COST, level)


def around(size: int = 200, spread: float = 0.6) -> Tensor:
    """States (size, 4) near the target, with angles less than half a turn from it."""
    draw = torch.randn(size, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return torch.tensor(TARGET, dtype=torch.float64) + spread * draw.clamp(-3.0, 3.0)


def test_value_and_gradient_in_the_basin_are_the_quadratic_form() -> None:
    x = around().requires_grad_()
    e = x - torch.tensor(TARGET, dtype=torch.float64)
    expected = -torch.einsum("bi,ij,bj->b", e, COST, e)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    value, gradient = basin_of(1e9).overlaid(x.detach(), torch.full((200,), 7.0).double(), torch.ones(200, 4).double())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, slope, rtol=1e-12, atol=1e-12)


def test_value_and_gradient_outside_the_basin_are_unchanged() -> None:
    x, basin = around(), basin_of(1.0)
    network_value, network_gradient = torch.linspace(-9.0, -8.0, 200).double(), torch.randn(200, 4, dtype=torch.float64)
    value, gradient = basin.overlaid(x, network_value, network_gradient)
    inside = basin.distance(x) < 1.0
    assert 10 < int(inside.sum()) < 190
    assert torch.equal(value[~inside], network_value[~inside])
    assert torch.equal(gradient[~inside], network_gradient[~inside])
    assert bool((value[inside] > -1.0).all())
    assert not bool((gradient[inside] == network_gradient[inside]).any())


def test_error_wraps_continuous_angles_and_not_positions() -> None:
    """Across -pi and pi, and several turns away."""
    basin, x = basin_of(1.0), around(spread=0.3)
    for turns in (-3.0, -1.0, 1.0, 2.0):
        turned = x + 2.0 * math.pi * turns * torch.tensor(CONTINUOUS).double()
        torch.testing.assert_close(basin.error(turned), basin.error(x), rtol=0, atol=1e-13)
    target = torch.tensor([TARGET], dtype=torch.float64)
    across = target.repeat(2, 1)
    across[:, 1] = torch.tensor([math.pi - 1e-9, -math.pi + 1e-9], dtype=torch.float64)
    distance = basin.distance(across)
    assert float(distance[0]) == pytest.approx(float(distance[1]), rel=1e-6)
    assert float(distance[0]) == pytest.approx(float(COST[1, 1]) * (math.pi - 2.9) ** 2, rel=1e-6)
    moved = target + 2.0 * math.pi * torch.tensor([1.0, 0.0, 0.0, 0.0]).double()
    assert float(basin.distance(moved)) == pytest.approx(float(COST[0, 0]) * 4.0 * math.pi**2, rel=1e-9)


def test_nan_state_has_a_nan_value_with_a_basin() -> None:
    x = torch.full((1, 4), math.nan, dtype=torch.float64)
    value, gradient = FrozenValue(ensemble_of(0.5))(x)
    assert bool(torch.isnan(value).all())
    assert bool(torch.isnan(gradient).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_basin_of_level_zero_changes_no_bit_of_the_networks(dtype: torch.dtype) -> None:
    """A cost is set, and e^T P e is negative, as it may be by rounding."""
    with_cost, without = ensemble_of(0.0).to(dtype), ensemble_of(0.0).to(dtype)
    indefinite = replace(basin_of(0.0), cost=-COST)
    with_cost.set_basin(indefinite)
    without.set_basin(replace(indefinite, cost=torch.zeros(4, 4)))
    x = around().to(dtype)
    assert torch.equal(with_cost(x), without(x))
    for actual, expected in zip(FrozenValue(with_cost)(x), FrozenValue(without)(x), strict=True):
        assert torch.equal(actual, expected)
    torch.testing.assert_close(FrozenValue(with_cost)(x)[0], with_cost(x).detach(), rtol=1e-5, atol=1e-5)


def test_frozen_value_agrees_with_the_ensemble_in_and_outside_the_basin() -> None:
    ensemble, x = ensemble_of(1.5), around().requires_grad_()
    inside = basin_of(1.5).distance(x.detach()) < 1.5
    assert 30 < int(inside.sum()) < 170
    expected = ensemble(x)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    value, gradient = FrozenValue(ensemble)(x.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(gradient, slope, rtol=1e-9, atol=1e-11)
    network = ensemble_of(0.0)(x).detach()
    torch.testing.assert_close(value[~inside], network[~inside], rtol=1e-10, atol=1e-12)
    assert bool((value - network)[inside].abs().min() > 1e-6)


@pytest.mark.parametrize("level", [0.0, 1.5, 1e9])
def test_networks_are_evaluated_only_outside_the_basin(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen, x, sizes = FrozenValue(ensemble_of(level)), around(), []
    outside = int((frozen.basin.distance(x) >= level).sum())
    networks = frozen.networks

    def counted(inputs: Tensor, error: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sizes.append(len(inputs))
        return networks(inputs, error)

    monkeypatch.setattr(frozen, "networks", counted)
    frozen(x)
    assert sizes == ([outside] if outside else [])


def test_only_a_nan_state_has_a_nan_value() -> None:
    x = torch.cat([torch.full((1, 4), math.nan, dtype=torch.float64), around(3)])
    value, gradient = FrozenValue(ensemble_of(0.5))(x)
    assert torch.isnan(value).tolist() == torch.isnan(gradient).all(1).tolist() == [True, False, False, False]


def test_frozen_value_does_not_follow_a_later_basin() -> None:
    ensemble, x = ensemble_of(1.5), around()
    frozen = FrozenValue(ensemble)
    before = frozen(x)
    ensemble.set_basin(replace(basin_of(3.0), cost=2.0 * COST))
    for actual, expected in zip(frozen(x), before, strict=True):
        assert torch.equal(actual, expected)


def test_checkpoint_restores_the_basin_and_has_finite_numbers() -> None:
    """`solver.runs.folder` rejects a checkpoint with a number that is not finite."""
    stored, file = ensemble_of(1.5), io.BytesIO()
    torch.save(stored.state_dict(), file)
    file.seek(0)
    content = torch.load(file, weights_only=True)
    assert all(bool(torch.isfinite(tensor).all()) for tensor in content.values())
    loaded = ensemble_of(0.0)
    loaded.set_basin(replace(basin_of(0.0), cost=torch.zeros(4, 4)))
    loaded.load_state_dict(content)
    assert torch.equal(loaded(around()), stored(around()))
    assert loaded.basin.level == 1.5
    assert torch.equal(loaded.basin.cost, COST)
