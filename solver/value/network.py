"""The value function: an ensemble of locally quadratic networks V = -y^T L L^T y (paper, appendix; cFVI, eq. 13).

`solver.value.features` has the features z(x) and the error y(z), which in the paper is z(x) - z(target). L(z) is lower
triangular with a positive diagonal, the output of a tanh network. V <= 0, with equality only at the target, for any
number of continuous joints. The value is the mean over the members. In the basin, around the target, a quadratic form
that `solver.local.basin` found takes their place.

`Ensemble.forward` is the specification of this formula. Four other forms of it are tested against it:
`solver.value.frozen` (V and dV/dx without autograd), `solver.value.fitting` (the gradient of the loss), the C source of
`solver.export.c_export` and the graph of `solver.export.onnx_export`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from solver.value.basin import Basin
from solver.value.features import Features

DIAGONAL_FLOOR = 1e-3
HIDDEN_GAIN, OUTPUT_GAIN = 1.41, 1.0
HIDDEN_BIAS, OUTPUT_BIAS = 0.1, -0.1


def activation(y: Tensor) -> Tensor:
    """tanh, written with the logistic function, which Torch evaluates five times faster on CPUs."""
    return torch.sigmoid(2.0 * y).mul(2.0).sub(1.0)


class Factor(nn.Module):
    """One member: a tanh network z -> the K = n_z (n_z + 1)/2 entries of L, rows first."""

    rows: Tensor  # (K,) the row of every entry
    columns: Tensor  # (K,)
    diagonal: Tensor  # (K,) bool
    column_sum: Tensor  # (K, n_z), sums entries into their column

    def __init__(self, size: int, layers: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(size, size)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("diagonal", rows == columns, persistent=False)
        self.register_buffer("column_sum", torch.eye(size)[columns], persistent=False)  # (K, n_z)
        sizes = [size, *[width] * layers, len(rows)]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            last = i == layers
            deviation = (OUTPUT_GAIN if last else HIDDEN_GAIN) * (2.0 / (fan_in + fan_out)) ** 0.5
            self.weights.append(nn.Parameter(deviation * torch.randn(fan_in, fan_out, generator=generator)))
            self.biases.append(nn.Parameter(torch.full((fan_out,), OUTPUT_BIAS if last else HIDDEN_BIAS)))

    def forward(self, z: Tensor, error: Tensor) -> Tensor:
        """V (N,) of this member from the features z and the error y, both (N, n_z)."""
        h = z
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = activation(torch.addmm(bias, h, weight))
        entries = torch.addmm(self.biases[-1], h, self.weights[-1])
        entries = torch.where(self.diagonal, softplus(entries) + DIAGONAL_FLOOR, entries)
        y = (entries * error[:, self.rows]) @ self.column_sum
        return -(y * y).sum(-1)


class Ensemble(nn.Module):
    """E members, independent but for their input; the value is their mean."""

    angles: Tensor
    others: Tensor
    scale: Tensor
    target: Tensor
    continuous: Tensor
    basin_cost: Tensor
    basin_level: Tensor
    metric: Tensor
    bend: Tensor

    def __init__(
        self,
        continuous: list[bool],
        target: list[float],
        scale: list[float],
        members: int,
        layers: int,
        width: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        angles = [i for i, wraps in enumerate(continuous) if wraps]
        others = [i for i, wraps in enumerate(continuous) if not wraps]
        self.register_buffer("angles", torch.tensor(angles, dtype=torch.long))
        self.register_buffer("others", torch.tensor(others, dtype=torch.long))
        self.register_buffer("scale", torch.tensor([scale[i] for i in others]))
        self.register_buffer("target", torch.tensor(target))
        self.register_buffer("continuous", torch.tensor(continuous), persistent=False)
        self.register_buffer("basin_cost", torch.zeros(len(target), len(target)))
        self.register_buffer("basin_level", torch.tensor(0.0))
        size = 2 * len(angles) + len(others)
        self.register_buffer("metric", torch.eye(size))
        self.register_buffer("bend", torch.tensor(0.0))
        self.register_load_state_dict_pre_hook(_without_metric)  # type: ignore[no-untyped-call]
        self.members = nn.ModuleList(Factor(size, layers, width, generator) for _ in range(members))

    @property
    def factors(self) -> list[Factor]:
        """The members."""
        return list(self.members)  # type: ignore[arg-type]

    @property
    def features(self) -> Features:
        """Features and error, on the device of this module."""
        given = self.angles, self.others, self.scale
        at_target = Features(*given, self.target, self.metric, self.bend)(self.target[None])[0]
        return Features(*given, at_target, self.metric, self.bend)

    def set_metric(self, cost: Tensor, reach: float) -> None:
        """Measure the error by P (n, n), up to c = reach. It belongs to the state_dict."""
        self.metric.copy_(self.features.metric_of(cost, self.target, reach))
        self.bend.fill_(1.0 / reach)

    @property
    def basin(self) -> Basin:
        """A copy of the basin, where the value is a quadratic form instead of the network's; at first it is empty."""
        return Basin(self.target, self.continuous, self.basin_cost.clone(), float(self.basin_level))

    def set_basin(self, basin: Basin) -> None:
        """Replace the basin. It belongs to the state_dict."""
        self.basin_cost.copy_(basin.cost)
        self.basin_level.fill_(basin.level)

    def forward(self, x: Tensor) -> Tensor:
        """The ensemble's value, differentiable: (N, n) -> (N,)."""
        features, basin = self.features, self.basin
        z = features(x)
        value = torch.stack([member(z, features.error(z)) for member in self.members]).mean(0)
        if basin.level == 0.0:
            return value
        distance = basin.distance(x)
        return torch.where(distance < basin.level, -distance, value)


def _without_metric(_: nn.Module, state: dict[str, Any], prefix: str, *__: object) -> None:
    """Give the weights of runs from before the metric the one that changes nothing."""
    for name, value in state.copy().items():
        if name.startswith(f"{prefix}members.0.weights.0"):
            state.setdefault(f"{prefix}metric", torch.eye(len(value)).to(value))
            state.setdefault(f"{prefix}bend", torch.zeros(()).to(value))
