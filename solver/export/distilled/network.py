"""Distilled policy u = grad g~(y(x)), where a small tanh network computes y, in Torch and in C99.

y approximates the argument of grad g~ in the run's policy: B^T dV/dx, or the argument of the policy for a held input.
The range of y is large, and a large y hardly matters because the input is at its limit. So the network computes
s = asinh(y / c): proportional to y for |y| < c, and logarithmic beyond. c is the argument of an input
half of the way from its trim to its limit.

Two terms correct s at the target. The network's output there is subtracted, so that the input there is the trim.
tanh(L (z - z_target)) is added, where L gives s the derivative ds/dz of the run's policy at the target. Without it, the
gains near the target are too small for dry friction and delay. tanh limits the term to the states near the target.

The network of a family has the context c as further inputs. Both terms then depend on it: L(c) has a polynomial for the
derivative of the run's policy at the target of c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from solver.export.c_export import UNTOLD, told_fields
from solver.export.c_folder import domain, feature_map, filled, header, listed, names, replay, rotations
from solver.export.c_folder import facts as header_facts
from solver.plants.outcome import Controller
from solver.problem import Problem
from solver.value.family import terms
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


@dataclass(frozen=True)
class GainPolynomial:
    """The derivative ds/dz (m, n_z) of the run's policy at the target, of every context: a polynomial."""

    degrees: Tensor  # (b, k) of the terms, as of `solver.value.family.terms`; (1, 0) without contexts
    coefficients: Tensor  # (b, m, n_z)

    def at(self, c: Tensor) -> Tensor:
        """ds/dz (N, m, n_z) of the contexts c (N, k)."""
        products = terms(c, self.degrees) if c.shape[1] else c.new_ones(len(c), 1)
        return torch.einsum("nb,bmz->nmz", products, self.coefficients)


class SmallNetwork(nn.Module):
    """Network from the features z (N, n_z), followed by the contexts c (N, k) where there are some, to s (N, m)."""

    def __init__(
        self,
        features: Features,
        scale: Tensor,
        width: int,
        generator: torch.Generator,
        gain: GainPolynomial | None = None,
    ) -> None:
        """gain: by default zero, for a policy without contexts."""
        super().__init__()
        self.features, self.scale = features, scale
        nothing = torch.empty(1, 0, dtype=torch.long), scale.new_zeros(1, len(scale), features.size)
        self.gain = GainPolynomial(*nothing) if gain is None else gain
        self.told = self.gain.degrees.shape[1]
        sizes = [features.size + self.told, *[width] * LAYERS, len(scale)]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()  # of the hidden layers
        for fan_in, fan_out in pairwise(sizes):
            deviation = (2.0 / (fan_in + fan_out)) ** 0.5
            self.weights.append(nn.Parameter(deviation * torch.randn(fan_in, fan_out, generator=generator)))
        for fan_out in sizes[1:-1]:
            self.biases.append(nn.Parameter(torch.zeros(fan_out)))

    def forward(self, seen: Tensor) -> Tensor:
        """Output s (N, m) of the rows (N, n_z + k) of `seen_at`, differentiable in the weights."""
        size = self.features.size
        b, slope = self._correction(seen[:, size:] if self.told else seen[:1, size:])
        error = seen[:, :size] - self.features.at_target
        return self._hidden(seen)[-1] + b + torch.tanh((slope @ error[..., None])[..., 0])

    def seen_at(self, problem: Problem, rows: Tensor) -> Tensor:
        """Inputs (N, n_z + k) of the network: the features of the states from their own targets, and the contexts."""
        n, shift = len(problem.target), None if problem.context is None else problem.context.shift
        x = rows[:, :n] if shift is None else rows[:, :n] - rows[:, n:] @ shift
        return torch.cat([self.features(x), rows[:, n:]], 1)

    @torch.no_grad()
    def correction(self) -> tuple[Tensor, Tensor, Tensor]:
        """Arrays b (m,), L (m, n_z) and l (m,) without contexts: s is the sum of the last layer's output, b and
        tanh(L z + l)."""
        b, slope = self._correction(self.features.at_target.new_empty(1, 0))
        return b[0], slope[0], -slope[0] @ self.features.at_target

    def _correction(self, c: Tensor) -> tuple[Tensor, Tensor]:
        """b (N, m) and L (N, m, n_z) of the contexts c (N, k), by a pass back through the layers at the target."""
        size = self.features.size
        *hidden, s = self._hidden(torch.cat([self.features.at_target.expand(len(c), size), c], 1))
        back = self.weights[-1].T.expand(len(c), -1, -1)
        for weight, h in zip(reversed(self.weights[:-1]), reversed(hidden), strict=True):
            back = (back * (1.0 - h[:, None] ** 2)) @ weight.T
        return -s, self.gain.at(c) - back[..., :size]

    def _hidden(self, h: Tensor) -> list[Tensor]:
        """Outputs of all layers; the last one has no tanh."""
        outputs = []
        for weight, bias in zip(self.weights[:-1], self.biases, strict=True):
            h = torch.tanh(torch.addmm(bias, h, weight))
            outputs.append(h)
        return [*outputs, h @ self.weights[-1]]


def controller(problem: Problem, network: SmallNetwork) -> Controller:
    """Distilled policy for rollouts."""

    @torch.no_grad()
    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        y = network.scale * torch.sinh(network(network.seen_at(problem, x)).clamp(-LARGEST, LARGEST))
        cost = problem.cost_at(x)
        return cost.policy(y), cost.cost_of_policy(y)

    return act


CLOSE = 1e-3  # largest difference between board and Torch, as a share of an input's limit


def emit(problem: Problem, network: SmallNetwork, label: str, facts: Sequence[str]) -> dict[str, str]:
    """Texts of NAME_policy.h, NAME_policy.c, a driver and the replay, by file name. facts: lines of the header."""
    robot = problem.robot
    sizes = [len(network.weights[0]), *(weight.shape[1] for weight in network.weights)]
    rows = _rows(network)
    fields: dict[str, Any] = (
        names(robot, f"{label}, distilled")
        | feature_map(network.features)
        | header_facts(robot, *facts)
        | domain(problem)
        | rotations(problem, "policies")
        | {
            "layers": len(sizes) - 2,
            "widest": max(sizes),
            "sizes": ", ".join(map(str, sizes)),
            "weights": sum(map(len, rows)),
            "network": ",\n".join(f"    {_floats(row)}" for row in rows),
            "input_scale": listed(network.scale.tolist()),
            "largest": repr(LARGEST),
        }
        | (_fixed(problem, network) if problem.context is None else _told(problem, network))
        | header(robot, "`solver export --budget`", " in one small network", "")
        | replay(problem, controller(problem, network), CLOSE)
    )
    fields["trim"] = "\n".join(filled(template, fields) for template in fields["trim"])
    fields["context_struct"] = "" if problem.context is None else filled("told.h", fields)
    ends = (".h", ".c", "_driver.c", "_replay.c")
    own = (".c", "_driver.c")  # the others are those of every policy
    return {
        f"{robot.name}_policy{end}": filled(f"{'distilled_' if end in own else ''}policy{end}", fields) for end in ends
    }


def _fixed(problem: Problem, network: SmallNetwork) -> dict[str, Any]:
    """Fields of a policy that is told nothing. `trim` names templates."""
    _, gain, level = network.correction()
    rows = ",\n".join(f"    {{{_floats(row)}}}" for row in gain.numpy())
    fields = UNTOLD | {"seen": "FEATURES", "biased": "", "trim": [], "optimal": f"{problem.robot.name}_optimal_input("}
    if problem.action_cost.slope is not None:
        slope = f"((const real[]){{{listed(problem.action_cost.slope.tolist())}}})"
        fields |= {"trim": ["about_trim.c"], "slope": slope, "optimal": "optimal("}
    return fields | {"constants": filled("distilled_fixed.c", {"gain": rows, "level": _floats(level.numpy())})}


def _told(problem: Problem, network: SmallNetwork) -> dict[str, Any]:
    """Fields of a policy that is told a context. `trim` names templates."""
    assert problem.context is not None
    m, features = len(problem.input_limits), network.features.size
    fields = told_fields(
        problem, problem.context, problem.robot.name, network.gain.degrees, network.gain.coefficients.flatten(1)
    )
    constants = f"static const real at_target[FEATURES] = {{{listed(network.features.at_target.tolist())}}};\n"
    if problem.moving_trim:
        constants += f"static const real target[STATES] = {{{listed(problem.context.target.tolist())}}};\n"
    return fields | {
        "constants": f"{fields['constants']}{constants}\n",
        "biased": "told->bias[k] + ",
        "members_of_form": f"bias[{m}], gain[{m}][{features}], level[{m}]",
        "of_product": "the gain at the target",
        "unpacked": filled("distilled_told.c", {}),
        "limits": listed(problem.input_limits.tolist()),
    }


def _rows(network: SmallNetwork) -> list[NDArray[np.float32]]:
    """Rows of all outputs of all layers: the bias, then the weights, in float32. The last bias of a family is told."""
    last = torch.zeros(len(network.scale)) if network.told else network.correction()[0]
    biases = [*(bias.detach() for bias in network.biases), last]
    layers = zip(network.weights, biases, strict=True)
    return [row for weight, bias in layers for row in torch.cat([bias[:, None], weight.detach().T], 1).numpy()]


def _floats(row: NDArray[np.float32]) -> str:
    return ", ".join(f"{value!s}f" for value in row)
