"""Value function, compared with explicit matrices in NumPy; its fused gradient, compared with autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from solver.value.features import UNSEEN
from solver.value.frozen import CompiledNetworks, FrozenValue, TorchNetworks
from solver.value.network import DIAGONAL_FLOOR, Ensemble, Factor

CASES = {
    "no angle": ([False, False, False], [0.2, -0.1, 0.3]),
    "one angle, not first": ([False, True, False, False], [0.1, -2.0, 0.2, 0.3]),
    "two angles": ([True, True, False, False], [0.7, -1.3, 0.2, -0.4]),
}
SCALE = [0.7, 1.9, 0.4, 2.5]
cases = pytest.mark.parametrize(("continuous", "target"), CASES.values(), ids=CASES)


def make(continuous: list[bool], target: list[float], members: int = 3, metric: bool = True) -> Ensemble:
    """Float64 ensemble with random weights and biases."""
    generator = torch.Generator().manual_seed(1)
    ensemble = Ensemble(continuous, target, SCALE[: len(target)], members, 2, 12, generator).double()
    ensemble.target.copy_(torch.tensor(target, dtype=torch.float64))
    with torch.no_grad():
        for parameter in ensemble.parameters():  # the biases of a trained network differ
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    if metric:
        ensemble.set_metric(cost_of(len(target)), REACH)
    return ensemble


REACH = 3.0


def cost_of(n: int) -> Tensor:
    """Positive definite P (n, n) with very different costs of its directions."""
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return root @ torch.diag(4.0 ** torch.arange(n).double()) @ root.T


def states(n: int, size: int = 64) -> Tensor:
    """Random states (size, n)."""
    return 3.0 * torch.randn(size, n, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def features(x: np.ndarray, continuous: list[bool], scale: list[float]) -> np.ndarray:
    """Features z of one state, from their definition."""
    angles = [x[i] for i, wraps in enumerate(continuous) if wraps]
    others = [x[i] * scale[i] for i, wraps in enumerate(continuous) if not wraps]
    return np.array([*map(math.sin, angles), *map(math.cos, angles), *others])


def reference(ensemble: Ensemble, x: np.ndarray, continuous: list[bool], target: list[float]) -> float:
    """Value -mean_i y^T L_i L_i^T y of one state, with explicit matrices L_i."""
    scale = ensemble_scale(ensemble, continuous)
    z = features(x, continuous, scale)
    straight = ensemble.metric.numpy().T @ (z - features(np.array(target), continuous, scale))
    error = straight / math.sqrt(1.0 + float(ensemble.bend) * straight @ straight)
    values = []
    for member in ensemble.factors:
        h = z
        for weight, bias in zip(member.weights[:-1], member.biases[:-1], strict=True):
            h = np.tanh(h @ weight.detach().numpy() + bias.detach().numpy())
        entries = h @ member.weights[-1].detach().numpy() + member.biases[-1].detach().numpy()
        factor = np.zeros((len(z), len(z)))
        factor[np.tril_indices(len(z))] = entries
        np.fill_diagonal(factor, np.log1p(np.exp(np.diag(factor))) + DIAGONAL_FLOOR)
        values.append(-error @ factor @ factor.T @ error)
    return float(np.mean(values))


def ensemble_scale(ensemble: Ensemble, continuous: list[bool]) -> list[float]:
    """Scales of the states, as the module rounded them."""
    others = iter(ensemble.scale.tolist())
    return [1.0 if wraps else next(others) for wraps in continuous]


@cases
def test_value_is_the_mean_of_the_members_quadratic_forms(continuous: list[bool], target: list[float]) -> None:
    ensemble, x = make(continuous, target), states(len(target), 10)
    expected = [reference(ensemble, row, continuous, target) for row in x.numpy()]
    np.testing.assert_allclose(ensemble(x).detach(), expected, rtol=1e-10)


@cases
def test_fused_value_and_gradient_equal_autograd(continuous: list[bool], target: list[float]) -> None:
    ensemble, x = make(continuous, target), states(len(target)).requires_grad_()
    expected = ensemble(x)
    (gradient,) = torch.autograd.grad(expected.sum(), x)
    value, costate = FrozenValue(ensemble)(x.detach())
    torch.testing.assert_close(value, expected.detach(), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(costate, gradient, rtol=1e-9, atol=1e-11)


@cases
def test_fused_gradient_in_float32_is_close_to_float64(continuous: list[bool], target: list[float]) -> None:
    ensemble, x = make(continuous, target), states(len(target))
    value, costate = FrozenValue(ensemble)(x)
    value32, costate32 = FrozenValue(ensemble.float())(x.float())
    torch.testing.assert_close(value32.double(), value, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(costate32.double(), costate, rtol=1e-3, atol=1e-3 * float(costate.abs().max()))


@cases
def test_value_is_negative_except_at_the_target(continuous: list[bool], target: list[float]) -> None:
    ensemble = make(continuous, target)
    assert bool((ensemble(states(len(target), 5000)) < 0.0).all())
    at_target = torch.tensor([target], dtype=torch.float64)
    at_target = at_target + 2.0 * math.pi * torch.tensor(continuous).double()  # a full turn is the same state
    assert float(ensemble(at_target).detach()) == pytest.approx(0.0, abs=1e-24)
    value, costate = FrozenValue(ensemble)(at_target)
    assert float(value) == pytest.approx(0.0, abs=1e-24)
    torch.testing.assert_close(costate, torch.zeros_like(costate), rtol=0, atol=1e-9)


@cases
def test_diagonal_of_the_factor_has_a_positive_floor(continuous: list[bool], target: list[float]) -> None:
    """With outputs of -40 on the diagonal and 0 elsewhere, L is the floor times the identity: V = -floor^2 |e|^2."""
    ensemble, x = make(continuous, target, metric=False), states(len(target))
    size = len(target) + sum(continuous)
    rows, columns = np.tril_indices(size)
    for member in ensemble.factors:
        torch.nn.init.zeros_(member.weights[-1])
        member.biases[-1].data = torch.tensor(np.where(rows == columns, -40.0, 0.0))
    scale = ensemble_scale(ensemble, continuous)
    error = np.array([features(row, continuous, scale) for row in x.numpy()])
    error -= features(np.array(target), continuous, scale)
    expected = -(DIAGONAL_FLOOR**2) * (error**2).sum(1)
    np.testing.assert_allclose(ensemble(x).detach(), expected, rtol=1e-8)
    np.testing.assert_allclose(FrozenValue(ensemble)(x)[0], expected, rtol=1e-8)


@cases
def test_squared_error_near_the_target_is_the_quadratic_form(continuous: list[bool], target: list[float]) -> None:
    """|y|^2 is e^T P e plus UNSEEN of the reach, and nowhere more than the reach."""
    ensemble, n = make(continuous, target), len(target)
    away = 1e-4 * states(n)
    features = ensemble.features
    y = features.error(features(torch.tensor(target).double() + away))
    scale = torch.tensor(ensemble_scale(ensemble, continuous)).double()
    expected = ((away @ cost_of(n)) * away).sum(1) + UNSEEN * REACH * ((away * scale) ** 2).sum(1)
    torch.testing.assert_close((y * y).sum(1), expected, rtol=1e-2, atol=0.0)
    far = features.error(features(states(n, 2000)))
    assert 0.9 * REACH < float((far * far).sum(1).max()) < REACH


@cases
def test_squared_error_of_half_a_turn_is_four_times_that_of_a_radian(
    continuous: list[bool], target: list[float]
) -> None:
    """Between two opposite angles, the sine and cosine differ by a vector of length 2."""
    ensemble, P = make(continuous, target), torch.diag(torch.arange(1.0, len(target) + 1.0)).double()
    ensemble.set_metric(P, 1e-3)
    ensemble.bend.zero_()
    features = ensemble.features
    for i in [i for i, wraps in enumerate(continuous) if wraps]:
        x = torch.tensor([target]).double()
        x[0, i] += math.pi
        y = features.error(features(x))
        unseen = UNSEEN * 1e-3 * 4.0
        assert float((y * y).sum()) == pytest.approx(4.0 * float(P[i, i]) + unseen, rel=1e-6)


def test_weights_stored_without_a_metric_give_the_same_value() -> None:
    ensemble, x = make([True, False], [0.1, 0.2], metric=False), states(2)
    stored = {name: value for name, value in ensemble.state_dict().items() if name not in ("metric", "bend")}
    loaded = make([True, False], [0.1, 0.2])
    loaded.load_state_dict(stored)
    assert torch.equal(loaded(x), ensemble(x))


def test_features_scale_only_states_that_do_not_wrap() -> None:
    ensemble = make([False, True, False, False], [0.0] * 4)
    z = ensemble.features(torch.tensor([[2.0, math.pi / 2, 3.0, 4.0]], dtype=torch.float64))
    np.testing.assert_allclose(z[0], [1.0, 0.0, 1.4, 1.2, 10.0], atol=1e-6)


def test_a_value_depends_neither_on_the_size_of_the_batch_nor_on_its_place() -> None:
    """Of the networks: products of the features with the metric round as Torch's matrix products do."""
    networks = CompiledNetworks(make([True, False], [0.0, 0.0]).factors)
    inputs, error = torch.rand(2, 40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    whole = networks(inputs, error)
    for first, last in ((0, 1), (3, 20), (20, 40)):
        for part, expected in zip(networks(inputs[first:last], error[first:last]), whole, strict=True):
            torch.testing.assert_close(part, expected[first:last], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("samples", [1, 16, 37])
@pytest.mark.parametrize(("layers", "width", "told"), [(1, 5, 0), (2, 16, 2), (3, 19, 1)])
def test_compiled_networks_are_those_of_torch(
    layers: int, width: int, told: int, samples: int, dtype: torch.dtype, tolerance: float
) -> None:
    """Also where the width is no multiple of the sums that are computed together, and without any hidden product."""
    generator = torch.Generator().manual_seed(1)
    factors = [Factor(3, layers, width, generator, told).to(dtype) for _ in range(3)]
    inputs = torch.randn(samples, 3 + told, generator=generator).to(dtype)
    error = torch.randn(samples, 3, generator=generator).to(dtype)
    for actual, expected in zip(
        CompiledNetworks(factors)(inputs, error), TorchNetworks(factors)(inputs, error), strict=True
    ):
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
    z, e = inputs.clone().requires_grad_(), error.clone().requires_grad_()
    value = torch.stack([factor(z, e) for factor in factors]).mean(0)
    by_z, by_error = torch.autograd.grad(value.sum(), (z, e))
    for actual, expected in zip(CompiledNetworks(factors)(inputs, error), (value, by_z[:, :3], by_error), strict=True):
        torch.testing.assert_close(actual, expected.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [50.0, 1e4])
def test_saturated_networks_are_finite(size: float) -> None:
    factors = [Factor(3, 2, 8, torch.Generator().manual_seed(1))]
    inputs = size * torch.randn(20, 3, generator=torch.Generator().manual_seed(2))
    compiled, products = CompiledNetworks(factors)(inputs, inputs), TorchNetworks(factors)(inputs, inputs)
    for actual, expected in zip(compiled, products, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=max(1e-4 * float(expected.abs().max()), 1e-20))


def test_frozen_value_does_not_follow_later_training() -> None:
    ensemble, x = make([True, False], [0.0, 0.0]), states(2)
    frozen = FrozenValue(ensemble)
    before = frozen(x)[0]
    for parameter in ensemble.parameters():
        parameter.data.mul_(2.0)
    assert torch.equal(frozen(x)[0], before)


def test_initial_weights_depend_only_on_the_seed_and_differ_between_members() -> None:
    def weights(seed: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return list(Ensemble([True, False], [0.0, 0.0], [1.0, 1.0], 2, 2, 8, generator).parameters())

    assert all(torch.equal(a, b) for a, b in zip(weights(3), weights(3), strict=True))
    assert not torch.equal(weights(3)[0], weights(4)[0])
    first, second = Ensemble([False], [0.0], [1.0], 2, 1, 4, torch.Generator().manual_seed(0)).factors
    assert not torch.equal(first.weights[0], second.weights[0])


def test_nan_states_have_nan_values() -> None:
    value, costate = FrozenValue(make([True, False], [0.0, 0.0]))(torch.full((2, 2), math.nan, dtype=torch.float64))
    assert bool(torch.isnan(value).all())
    assert bool(torch.isnan(costate).all())
