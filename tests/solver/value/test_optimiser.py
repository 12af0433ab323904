"""SOAP, compared with its algorithm in NumPy for one matrix, and with Adam on a loss for which Adam is slow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from solver.value.fitting import DECAY, PERIOD, Adam, Optimiser, Soap

RATE, PENALTY = 0.03, 0.2


class OneMatrix(torch.nn.Module):
    """A weight matrix and a bias."""

    def __init__(self, weight: Any, bias: Any) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(weight))
        self.bias = torch.nn.Parameter(torch.tensor(bias))


def test_soap_steps_agree_with_algorithm_3_of_its_paper() -> None:
    """Vyas et al., algorithm 3, in NumPy. The running mean is kept in the directions of the weights and expressed in
    the basis in every step. The first covariance of a square matrix has full rank, so that no direction depends on
    rounding."""
    rng = np.random.default_rng(0)
    member = OneMatrix(rng.normal(size=(4, 4)), rng.normal(size=4))
    soap = Soap(member, RATE, PENALTY)
    weight, bias = (parameter.detach().numpy().copy() for parameter in (member.weight, member.bias))
    mean, square, left, right = (np.zeros((4, 4)) for _ in range(4))
    q_left, q_right, bias_mean, bias_square = np.eye(4), np.eye(4), np.zeros(4), np.zeros(4)
    for k in range(2 * PERIOD + 5):
        gradient, of_bias = rng.normal(size=(4, 4)), rng.normal(size=4)
        for parameter, value in ((member.weight, gradient), (member.bias, of_bias)):
            assert parameter.grad is not None
            parameter.grad.copy_(torch.from_numpy(value))
        soap.step()

        gradient, of_bias = gradient + PENALTY * weight, of_bias + PENALTY * bias
        share = DECAY if k else 0.0
        left = share * left + (1.0 - share) * gradient @ gradient.T
        right = share * right + (1.0 - share) * gradient.T @ gradient
        if k % PERIOD == 0:
            q_left, q_right = np.linalg.qr(left @ q_left)[0], np.linalg.qr(right @ q_right)[0]
        mean = DECAY * mean + (1.0 - DECAY) * gradient
        turned = q_left.T @ gradient @ q_right
        square = DECAY * square + (1.0 - DECAY) * turned**2
        correction = 1.0 - DECAY ** (k + 1)
        step = (q_left.T @ mean @ q_right / correction) / (np.sqrt(square / correction) + 1e-8)
        weight = weight - RATE * q_left @ step @ q_right.T
        bias_mean = DECAY * bias_mean + (1.0 - DECAY) * of_bias
        bias_square = DECAY * bias_square + (1.0 - DECAY) * of_bias**2
        bias = bias - RATE * bias_mean / correction / (np.sqrt(bias_square / correction) + 1e-8)
        np.testing.assert_allclose(member.weight.detach().numpy(), weight, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(member.bias.detach().numpy(), bias, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_soap_is_faster_than_adam_on_a_loss_with_slanted_steep_directions() -> None:
    """|A W B - T|^2 with A and B of condition 10: after equally many steps, SOAP is five times nearer."""
    rng = np.random.default_rng(1)

    def slanted(size: int) -> torch.Tensor:
        turns = (np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in range(2))
        first, second = turns
        return torch.tensor(first * np.geomspace(1.0, 0.1, size) @ second)

    a, b, target = slanted(12), slanted(8), torch.tensor(rng.normal(size=(12, 8)))
    best = torch.linalg.solve(a, torch.linalg.solve(b.T, target.T).T)

    def distance(make: Any) -> float:
        member = OneMatrix(np.zeros((12, 8)), np.zeros(1))
        optimiser: Optimiser = make(member)
        for k in range(600):
            optimiser.learning_rate = 1.0 * (1.0 - k / 600)
            assert member.weight.grad is not None
            with torch.no_grad():
                member.weight.grad.copy_(a.T @ (a @ member.weight @ b - target) @ b.T)
            optimiser.step()
        return float((a @ (member.weight.detach() - best) @ b).norm())

    assert distance(lambda m: Soap(m, 1.0, 0.0)) < 0.2 * distance(lambda m: Adam(m, 1.0, 0.0, False))


@pytest.mark.parametrize("done", [PERIOD - 1, PERIOD, PERIOD + 3])
@pytest.mark.slow
def test_soap_resumes_from_its_state(done: int) -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(3 * 5 + 4, generator=generator) for _ in range(3 * PERIOD)]
    start = np.float32(np.random.default_rng(0).normal(size=(3, 5))), np.zeros(4, np.float32)

    def played(soap: Soap, some: list[torch.Tensor]) -> Soap:
        for gradient in some:
            soap.gradient.copy_(gradient)
            soap.step()
        return soap

    first = played(Soap(OneMatrix(*start), RATE, 0.0), gradients[:done])
    second = Soap(OneMatrix(*start), RATE, 0.0)
    second.weights.copy_(first.weights)
    second.restore({name: values.clone() for name, values in first.state.items()})
    for soap in (first, second):
        played(soap, gradients[done:])
    assert torch.equal(first.weights, second.weights)
