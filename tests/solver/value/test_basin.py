"""The basin against autograd of its formula, and the value function with a basin set."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from solver.value.basin import Basin
from solver.value.frozen import FrozenValue, Workspace
from solver.value.network import Ensemble

CONTINUOUS, TARGET = [False, True, False, True], [0.2, 2.9, -0.3, -1.0]
ROOT = torch.tensor([[2.0, 0, 0, 0], [-0.7, 1.5, 0, 0], [0.4, 0.3, 0.8, 0], [-0.2, 0.9, 0.1, 0.6]], dtype=torch.float64)
COST = ROOT @ ROOT.T


def ensemble_of(level: float, members: int = 2) -> Ensemble:
    generator = torch.Generator().manual_seed(3)
    ensemble = Ensemble(CONTINUOUS, TARGET, [1.0, 1.0, 0.6, 1.0], members, 2, 9, generator).double()
    ensemble.target.copy_(torch.tensor(TARGET, dtype=torch.float64))
    ensemble.set_basin(basin_of(level))
    return ensemble


def basin_of(level: float) -> Basin:
    return Basin(torch.tensor(TARGET, dtype=torch.float64), torch.tensor(CONTINUOUS), COST, level)


def around(size: int = 200, spread: float = 0.6) -> Tensor:
    """States near the target, angles less than half a turn from it."""
    draw = torch.randn(size, 4, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return torch.tensor(TARGET, dtype=torch.float64) + spread * draw.clamp(-3.0, 3.0)


def test_value_and_gradient_inside_are_those_of_the_quadratic_form() -> None:
    x = around().requires_grad_()
    e = x - torch.tensor(TARGET, dtype=torch.float64)
    expected = -torch.einsum("bi,ij,bj->b", e, COST, e)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    value, gradient = basin_of(1e9).overlaid(x.detach(), torch.full((200,), 7.0).double(), torch.ones(200, 4).double())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=0)
    torch.testing.assert_close(gradient, slope, rtol=1e-12, atol=1e-12)


def test_outside_of_the_basin_the_network_stays() -> None:
    x, basin = around(), basin_of(1.0)
    given = torch.linspace(-9.0, -8.0, 200).double(), torch.randn(200, 4, dtype=torch.float64)
    value, gradient = basin.overlaid(x, *given)
    inside = basin.distance(x) < 1.0
    assert 10 < int(inside.sum()) < 190
    assert torch.equal(value[~inside], given[0][~inside])
    assert torch.equal(gradient[~inside], given[1][~inside])
    assert bool((value[inside] > -1.0).all())
    assert not bool((gradient[inside] == given[1][inside]).any())


def test_angles_are_taken_the_short_way_round_and_positions_are_not() -> None:
    """Across -pi and pi, and any number of turns away."""
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


def test_a_state_that_is_nan_stays_nan() -> None:
    x = torch.full((1, 4), math.nan, dtype=torch.float64)
    value, gradient = FrozenValue(ensemble_of(0.5))(x)
    assert bool(torch.isnan(value).all())
    assert bool(torch.isnan(gradient).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_level_zero_leaves_every_bit_of_the_networks(dtype: torch.dtype) -> None:
    """Its cost is set, and rounding may make e^T P e of it negative."""
    with_cost, without = ensemble_of(0.0).to(dtype), ensemble_of(0.0).to(dtype)
    indefinite = replace(basin_of(0.0), cost=-COST)
    with_cost.set_basin(indefinite)
    without.set_basin(replace(indefinite, cost=torch.zeros(4, 4)))
    x = around().to(dtype)
    assert torch.equal(with_cost(x), without(x))
    for found, expected in zip(FrozenValue(with_cost)(x), FrozenValue(without)(x), strict=True):
        assert torch.equal(found, expected)
    torch.testing.assert_close(FrozenValue(with_cost)(x)[0], with_cost(x).detach(), rtol=1e-5, atol=1e-5)


def test_ensemble_and_frozen_value_agree_inside_and_outside() -> None:
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


def test_buffers_of_a_batch_see_the_basin() -> None:
    frozen, x = FrozenValue(ensemble_of(1.5)), around()
    for found, expected in zip(frozen.buffered(200)(x), frozen(x), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("level", [0.0, 1.5, 1e9])
def test_sparing_asks_no_network_inside(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen, x, given = FrozenValue(ensemble_of(level)), around(), []
    outside = int((frozen.basin.distance(x) >= level).sum())
    expected, networks = frozen(x), frozen._networks

    def counted(x: Tensor, space: Workspace) -> tuple[Tensor, Tensor]:
        given.append(len(x))
        return networks(x, space)

    monkeypatch.setattr(frozen, "_networks", counted)
    for each, known in zip(frozen.sparing(x), expected, strict=True):
        torch.testing.assert_close(each, known, rtol=1e-12, atol=1e-12)
    assert given == ([outside] if outside else [])


def test_sparing_leaves_nan() -> None:
    x = torch.cat([torch.full((1, 4), math.nan, dtype=torch.float64), around(3)])
    value, gradient = FrozenValue(ensemble_of(0.5)).sparing(x)
    assert torch.isnan(value).tolist() == torch.isnan(gradient).all(1).tolist() == [True, False, False, False]


def test_a_frozen_value_keeps_the_basin_it_was_made_with() -> None:
    ensemble, x = ensemble_of(1.5), around()
    frozen = FrozenValue(ensemble)
    before = frozen(x)
    ensemble.set_basin(replace(basin_of(3.0), cost=2.0 * COST))
    for found, expected in zip(frozen(x), before, strict=True):
        assert torch.equal(found, expected)


def test_a_checkpoint_holds_the_basin_and_nothing_infinite() -> None:
    """`solver.runs.folder` refuses a checkpoint with a number that is not finite."""
    stored, file = ensemble_of(1.5), io.BytesIO()
    torch.save(stored.state_dict(), file)
    file.seek(0)
    content = torch.load(file, weights_only=True)
    assert all(bool(torch.isfinite(each).all()) for each in content.values())
    loaded = ensemble_of(0.0)
    loaded.set_basin(replace(basin_of(0.0), cost=torch.zeros(4, 4)))
    loaded.load_state_dict(content)
    assert torch.equal(loaded(around()), stored(around()))
    assert loaded.basin.level == 1.5
    assert torch.equal(loaded.basin.cost, COST)
