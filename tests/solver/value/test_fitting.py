"""Gradient of the loss, compared with autograd, and the fit as a whole."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor

from solver.fvi.fit import FitPlan, MemberFit, fit_ensemble
from solver.parallel import run_side_by_side
from solver.value.fitting import Adam, LossGradient, Samples
from solver.value.network import Ensemble


def make(members: int = 1, metric: bool = True) -> Ensemble:
    """Ensemble for a robot with one continuous angle and three states."""
    generator = torch.Generator().manual_seed(0)
    ensemble = Ensemble([True, False, False], [0.0] * 3, [1.0, 0.5, 0.7], members, 3, 10, generator)
    if metric:
        ensemble.set_metric(torch.diag(torch.tensor([1.0, 4.0, 0.2])), 3.0)
    return ensemble


def samples(ensemble: Ensemble, size: int = 23) -> tuple[Tensor, Samples]:
    """States (size, 3) and samples with random targets and weights at them."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(size, 3, generator=generator).to(ensemble.target)
    target = -3.0 * torch.rand(size, generator=generator).to(ensemble.target)
    weight = 0.1 + torch.rand(size, generator=generator).to(ensemble.target)
    return x, Samples.of(ensemble, x, target, weight)


def test_loss_gradient_equals_autograd_in_repeated_calls() -> None:
    """Calls with a full, a short and a full minibatch: nothing may accumulate or remain in the buffers."""
    ensemble = make().double()
    x, data = samples(ensemble)
    member = ensemble.factors[0]
    loss_gradient = LossGradient(member, Adam(member, 1e-3, 0.0, False).weights, 23)
    for index in (torch.arange(23), torch.arange(5, 12), torch.arange(23)):
        loss = loss_gradient(data.shuffled(index))
        written = [p.grad.clone() for p in member.parameters() if p.grad is not None]
        distance = (ensemble(x[index]) - data.target[index]).abs()
        expected_loss = distance.mean()
        expected = torch.autograd.grad((data.weight[index] * distance).mean(), list(member.parameters()))
        assert float(loss) == pytest.approx(float(expected_loss.detach()), rel=1e-12)
        assert len(written) == len(expected) == 8
        for mine, reference in zip(written, expected, strict=True):
            torch.testing.assert_close(mine, reference, rtol=1e-9, atol=1e-12)


def test_loss_of_an_epoch_counts_every_sample_once() -> None:
    """With a tiny step size, the loss is the mean over all 23 samples, in minibatches of 10, 10 and 3."""
    ensemble = make()
    x, data = samples(ensemble)
    expected = float((ensemble(x) - data.target).abs().mean().detach())
    member = ensemble.factors[0]
    fit = FitPlan(minibatch=10, learning_rates=(1e-12,))
    one = MemberFit(member, Adam(member, 1e-12, 0.0, False), data, fit, torch.Generator().manual_seed(0))
    one.epoch()
    assert one.left == 0
    assert one.loss == pytest.approx(expected, rel=1e-5)


def test_minibatch_may_be_larger_than_the_number_of_samples() -> None:
    ensemble = make()
    _, data = samples(ensemble)
    member = ensemble.factors[0]
    optimiser = Adam(member, 1e-3, 0.0, True)
    one = MemberFit(member, optimiser, data, FitPlan(1000, 2 * (1e-3,)), torch.Generator().manual_seed(0))
    one.epoch()
    assert one.loss > 0.0


@pytest.mark.slow
def test_fit_reaches_a_quadratic_target() -> None:
    ensemble = make(2, metric=False)
    x = 2.0 * torch.rand(600, 3, generator=torch.Generator().manual_seed(1)) - 1.0
    target = -(4.0 * torch.sin(x[:, 0] / 2) ** 2 + x[:, 1] ** 2 + 0.5 * x[:, 2] ** 2)
    optimisers = [Adam(m, 3e-3, 0.0, False) for m in ensemble.factors]
    before = float((ensemble(x) - target).abs().mean().detach())
    with ThreadPoolExecutor(1) as workers:
        fit_ensemble(ensemble, optimisers, x, target, FitPlan(50, 30 * (3e-3,)), 0, workers)
    after = float((ensemble(x) - target).abs().mean().detach())
    assert after < 0.05 * before


@pytest.mark.slow
def test_scale_of_the_weights_gives_precision_to_small_targets() -> None:
    """Two groups of samples at the same states have targets 100 times apart. L1 fits the weighted median."""
    ensemble, errors = make(), []
    x, _ = samples(ensemble, 40)
    small, large = torch.full((40,), -0.5), torch.full((60,), -50.0)
    start = {name: value.clone() for name, value in ensemble.state_dict().items()}
    for scale in (math.inf, 1.0):
        ensemble.load_state_dict(start)
        optimisers = [Adam(m, 1e-2, 0.0, False) for m in ensemble.factors]
        with ThreadPoolExecutor(1) as workers:
            states, target = torch.cat([x, x, x[:20]]), torch.cat([small, large])
            fit_ensemble(ensemble, optimisers, states, target, FitPlan(100, 200 * (1e-2,), scale), 0, workers)
        errors.append(float((ensemble(x[:20]) + 0.5).abs().median().detach()))
    assert errors[1] < 0.5 < 5.0 < errors[0]


def test_weight_decay_shrinks_the_weights() -> None:
    norms = []
    for decay in (0.0, 1.0):
        ensemble = make()
        _, data = samples(ensemble)
        member = ensemble.factors[0]
        one = MemberFit(member, Adam(member, 1e-2, decay, False), data, FitPlan(23, 20 * (1e-2,)), torch.Generator())
        for _ in range(20):
            one.epoch()
        norms.append(float(member.weights[1].detach().norm()))
    assert norms[1] < 0.9 * norms[0]


def test_epochs_use_their_learning_rates() -> None:
    """Adam's first steps on one minibatch are as long as the learning rate; with a rate of 0 no weight changes."""
    ensemble = make()
    _, data = samples(ensemble)
    member, moved = ensemble.factors[0], []
    fit = FitPlan(23, (1e-3, 0.0, 1e-5))
    one = MemberFit(member, Adam(member, 1.0, 0.0, False), data, fit, torch.Generator().manual_seed(0))
    while one.left:
        before = member.weights[1].detach().clone()
        one.epoch()
        moved.append(float((member.weights[1] - before).abs().max().detach()))
    assert math.isclose(moved[0], 1e-3, rel_tol=1e-3)
    assert moved[1] == 0.0
    assert 1e-6 < moved[2] < 2e-5


def test_fit_does_not_depend_on_the_number_of_threads() -> None:
    results = []
    for threads in (1, 3):
        ensemble = make(3)
        x, data = samples(ensemble, 90)
        optimisers = [Adam(m, 1e-3, 1e-6, False) for m in ensemble.factors]
        with ThreadPoolExecutor(threads) as workers:
            loss = fit_ensemble(ensemble, optimisers, x, data.target, FitPlan(20, 3 * (1e-3,)), 11, workers)
        results.append((loss, [p.detach().clone() for p in ensemble.parameters()]))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(a, b) for a, b in zip(results[0][1], results[1][1], strict=True))


def test_two_workers_are_both_busy_until_three_members_are_fitted() -> None:
    """Every epoch waits for another one at the same time. A worker that kept its member would leave one without."""
    meeting = Barrier(2)

    class Meeting(MemberFit):
        def epoch(self) -> None:
            meeting.wait(timeout=20.0)
            self.left -= 1

    ensemble = make(3)
    _, data = samples(ensemble)
    fits = [
        Meeting(m, Adam(m, 1e-3, 0.0, False), data, FitPlan(23, 4 * (1e-3,)), torch.Generator())
        for m in ensemble.factors
    ]
    with ThreadPoolExecutor(2) as workers:
        run_side_by_side(fits, workers)
    assert [member_fit.left for member_fit in fits] == [0, 0, 0]


def test_members_draw_different_minibatches_that_depend_on_the_seed() -> None:
    """Two members start equal and become different; a second fit with the same seed gives the same weights."""
    fitted = []
    for _ in range(2):
        ensemble = make(2)
        ensemble.factors[1].load_state_dict(ensemble.factors[0].state_dict())
        x, data = samples(ensemble)
        optimisers = [Adam(m, 1e-3, 0.0, False) for m in ensemble.factors]
        with ThreadPoolExecutor(1) as workers:
            fit_ensemble(ensemble, optimisers, x, data.target, FitPlan(5, (1e-3,)), 3, workers)
        fitted.append([m.weights[1].detach() for m in ensemble.factors])
    assert not torch.equal(*fitted[0])
    assert all(torch.equal(a, b) for a, b in zip(*fitted, strict=True))


@pytest.mark.parametrize("amsgrad", [False, True])
def test_adam_steps_agree_with_its_recursion_and_an_l2_penalty(amsgrad: bool) -> None:
    """Recursion of Kingma and Ba, or of Reddi et al., for one weight. The penalty is part of the gradient."""
    member = torch.nn.Linear(1, 1, bias=False).double()
    optimiser = Adam(member, 0.1, 0.5, amsgrad)
    weight, mean, square, largest = member.weight.item(), 0.0, 0.0, 0.0
    for k, slope in enumerate([3.0, -0.2, 0.1, 0.3], 1):
        assert member.weight.grad is not None
        member.weight.grad.fill_(slope)
        optimiser.step()
        gradient = slope + 0.5 * weight
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        largest = max(largest, square) if amsgrad else square
        weight -= 0.1 * mean / (1.0 - 0.9**k) / (math.sqrt(largest / (1.0 - 0.999**k)) + 1e-8)
        assert member.weight.item() == pytest.approx(weight, rel=1e-12)
