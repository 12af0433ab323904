"""Distilled policy u = grad g~(y(x)), where a small tanh network computes y.

y approximates the argument of grad g~ in the run's policy: B^T dV/dx, or the argument of the policy for a held input.
The range of y is large, and a large y hardly matters because the input is at its limit. So the network computes
s = asinh(y / c): proportional to y for |y| < c, and logarithmic beyond. c is the argument of an input
half of the way from its trim to its limit.

Two terms correct s at the target. The network's output there is subtracted, so that the input there is the trim.
tanh(L (z - z_target)) is added, where L gives s the derivative ds/dz of the run's policy at the target. Without it, the
gains near the target are too small for dry friction and delay. tanh limits the term to the states near the target.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from solver.plants.outcome import Controller
from solver.problem.problem import Problem
from solver.value.features import Features

LAYERS = 2  # hidden
LARGEST = 20.0  # largest |s|, whose sinh is finite in float32
LEAST, MOST = -12.0, 12.0  # powers of ten of the search for c
HALVINGS = 60


def argument_scale(problem: Problem) -> Tensor:
    """Scale c (m,), by bisection of its logarithm."""
    far = torch.where(problem.input_middle >= problem.trim, 1.0, -1.0)  # towards the limit farther from the trim
    half = 0.5 * (problem.input_limits + (problem.input_middle - problem.trim).abs())
    low, high = torch.full_like(half, LEAST), torch.full_like(half, MOST)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = far * (problem.action_cost.policy((far * torch.pow(10.0, middle))[None])[0] - problem.trim) > half
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return torch.pow(10.0, high)


class SmallNetwork(nn.Module):
    """Network from the features z (N, n_z) to s (N, m)."""

    def __init__(
        self, features: Features, scale: Tensor, width: int, generator: torch.Generator, gain: Tensor | None = None
    ) -> None:
        """gain: ds/dz at the target (m, n_z), by default zero."""
        super().__init__()
        self.features, self.scale = features, scale
        self.gain = scale.new_zeros(len(scale), features.size) if gain is None else gain
        sizes = [features.size, *[width] * LAYERS, len(scale)]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()  # of the hidden layers
        for fan_in, fan_out in pairwise(sizes):
            deviation = (2.0 / (fan_in + fan_out)) ** 0.5
            self.weights.append(nn.Parameter(deviation * torch.randn(fan_in, fan_out, generator=generator)))
        for fan_out in sizes[1:-1]:
            self.biases.append(nn.Parameter(torch.zeros(fan_out)))

    def forward(self, z: Tensor) -> Tensor:
        """Output s (N, m), differentiable in the weights."""
        at_target = self.features.at_target[None]
        error = z - at_target
        s, along = self._uncorrected(torch.cat([z, at_target]), error)
        return s[:-1] - s[-1] + torch.tanh(error @ self.gain.T - along)

    @torch.no_grad()
    def correction(self) -> tuple[Tensor, Tensor, Tensor]:
        """Arrays b (m,), L (m, n_z) and l (m,): s is the sum of the last layer's output, b and tanh(L z + l)."""
        at_target = self.features.at_target
        s, along = self._uncorrected(at_target[None], torch.eye(len(at_target)))
        slope = self.gain - along.T
        return -s[0], slope, -slope @ at_target

    def _uncorrected(self, h: Tensor, along: Tensor) -> tuple[Tensor, Tensor]:
        """Output of the last layer, and its derivatives along directions at the last row of h."""
        for weight, bias in zip(self.weights[:-1], self.biases, strict=True):
            h = torch.tanh(torch.addmm(bias, h, weight))
            along = (along @ weight) * (1.0 - h[-1] ** 2)
        return h @ self.weights[-1], along @ self.weights[-1]


def controller(problem: Problem, network: SmallNetwork) -> Controller:
    """Distilled policy for rollouts."""
    cost = problem.action_cost

    @torch.no_grad()
    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        s = network(network.features(x)).clamp(-LARGEST, LARGEST)
        y = network.scale * torch.sinh(s)
        return cost.policy(y), cost.cost_of_policy(y)

    return act
