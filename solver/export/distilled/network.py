"""Distilled policy u = grad g~(y(x)), where a small tanh network computes y, in Torch and in C99.

y approximates the argument of grad g~ in the run's policy: B^T dV/dx, or the argument of the policy for a held input.
The range of y is large, and a large y hardly matters because the input is at its limit. So the network computes
s = asinh(y / c): proportional to y for |y| < c, and logarithmic beyond. c is the argument of an input
half of the way from its trim to its limit.

Two terms correct s at the target. The network's output there is subtracted, so that the input there is the trim.
tanh(L (z - z_target)) is added, where L gives s the derivative ds/dz of the run's policy at the target. Without it, the
gains near the target are too small for dry friction and delay. tanh limits the term to the states near the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from solver.export.c_export import UNTOLD
from solver.export.c_folder import replay
from solver.export.c_templates import domain, feature_map, filled, header, listed, names, rotations
from solver.export.c_templates import facts as header_facts
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


CLOSE = 1e-3  # largest difference between board and Torch, as a share of an input's limit


def emit(problem: Problem, network: SmallNetwork, label: str, facts: Sequence[str]) -> dict[str, str]:
    """Texts of NAME_policy.h, NAME_policy.c, a driver and the replay, by file name. facts: lines of the header."""
    robot = problem.robot
    sizes = [len(network.weights[0]), *(weight.shape[1] for weight in network.weights)]
    rows = _rows(network)
    _, slope, level = network.correction()
    fields = (
        names(robot, f"{label}, distilled")
        | feature_map(network.features)
        | header_facts(robot, *facts)
        | domain(problem)
        | rotations(problem, slopes=False)
        | {
            "layers": len(sizes) - 2,
            "widest": max(sizes),
            "sizes": ", ".join(map(str, sizes)),
            "weights": sum(map(len, rows)),
            "slope": ",\n".join(f"    {{{_floats(row)}}}" for row in slope.numpy()),
            "level": _floats(level.numpy()),
            "network": ",\n".join(f"    {_floats(row)}" for row in rows),
            "input_scale": listed(network.scale.tolist()),
            "largest": repr(LARGEST),
        }
        | UNTOLD
        | {"context_struct": ""}
        | header(robot, "`solver export --budget`", " in one small network", "")
        | replay(problem, controller(problem, network), CLOSE)
    )
    ends = (".h", ".c", "_driver.c", "_replay.c")
    own = (".c", "_driver.c")  # the others are those of every policy
    return {
        f"{robot.name}_policy{end}": filled(f"{'distilled_' if end in own else ''}policy{end}", fields) for end in ends
    }


def _rows(network: SmallNetwork) -> list[NDArray[np.float32]]:
    """Rows of all outputs of all layers: the bias, then the weights, in float32."""
    biases = [*(bias.detach() for bias in network.biases), network.correction()[0]]
    layers = zip(network.weights, biases, strict=True)
    return [row for weight, bias in layers for row in torch.cat([bias[:, None], weight.detach().T], 1).numpy()]


def _floats(row: NDArray[np.float32]) -> str:
    return ", ".join(f"{value!s}f" for value in row)
