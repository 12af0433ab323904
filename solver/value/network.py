"""The value function: an ensemble of locally quadratic networks V = -y^T L L^T y (paper, appendix; cFVI, eq. 13).

z(x) and y(z) are the features and the error of `solver.value.features`; in the paper y is z(x) - z(target). L(z) is
lower triangular with a positive diagonal, the output of a tanh network. V <= 0, with equality only at the target. The
value is the mean over the members. In the basin, near the target, a quadratic form replaces them.

`Ensemble.forward` is the specification of this formula. Its other forms are tested against it: `solver.value.frozen` (V
and dV/dx without autograd), `solver.value.fitting` (gradient of the loss), and the C, ONNX and JavaScript exports.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from modelgen.metadata import Rotation
from solver.problem.geometry import ENTRIES
from solver.value.family import REACH, Basin, BasinFamily, ContextFrame, exponents
from solver.value.features import Features

DIAGONAL_FLOOR = 1e-3  # smallest diagonal entry of L
LESS = 16.0  # the scale of a fast state is smaller by this factor
HIDDEN_GAIN, OUTPUT_GAIN = 1.41, 1.0  # of the Glorot initialisation of the weights
HIDDEN_BIAS, OUTPUT_BIAS = 0.1, -0.1  # initial values
ONE = math.log(math.expm1(1.0 - DIAGONAL_FLOOR))  # output at which a diagonal entry of L is 1


def activation(y: Tensor) -> Tensor:
    """tanh(y), computed from the logistic function, which Torch evaluates five times faster on CPUs."""
    return torch.sigmoid(2.0 * y).mul(2.0).sub(1.0)


class Factor(nn.Module):
    """One member: a tanh network from z (N, n_z + k) to the K = n_z (n_z + 1)/2 entries of L, row by row.

    size: n_z. layers: number of hidden layers. width: their size. generator: source of the initial weights. told: k,
    the number of told parameters, whose context is the end of z.
    """

    rows: Tensor  # (K,) row of every entry
    columns: Tensor  # (K,) column of every entry
    diagonal: Tensor  # (K,) bool
    column_sum: Tensor  # (K, n_z), sums entries into their column
    held: Tensor | None = None  # mask of the weights, in the order of `parameters`, that no optimiser changes

    def __init__(self, size: int, layers: int, width: int, generator: torch.Generator, told: int = 0) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(size, size)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("diagonal", rows == columns, persistent=False)
        self.register_buffer("column_sum", torch.eye(size)[columns], persistent=False)  # (K, n_z)
        sizes = [size + told, *[width] * layers, len(rows)]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            last = i == layers
            deviation = (OUTPUT_GAIN if last else HIDDEN_GAIN) * (2.0 / (fan_in + fan_out)) ** 0.5
            self.weights.append(nn.Parameter(deviation * torch.randn(fan_in, fan_out, generator=generator)))
            self.biases.append(nn.Parameter(torch.full((fan_out,), OUTPUT_BIAS if last else HIDDEN_BIAS)))

    @torch.no_grad()
    def become_identity(self) -> None:
        """Make L the identity at every state."""
        self.weights[-1].zero_()
        self.biases[-1].copy_(ONE * self.diagonal)

    @torch.no_grad()
    def hold(self, unseen: Tensor) -> None:
        """Let L not depend on the features of a mask (n_z,), and hold its rows and columns of these features."""
        still = unseen[self.rows] | unseen[self.columns]
        inputs = torch.zeros_like(self.weights[0][:, 0], dtype=torch.bool)
        inputs[: len(unseen)] = unseen
        self.weights[0][inputs] = 0.0
        masks = [torch.zeros_like(parameter, dtype=torch.bool) for parameter in self.parameters()]
        masks[0][inputs], masks[len(self.weights) - 1][:, still], masks[-1][still] = True, True, True
        self.held = torch.cat([mask.flatten() for mask in masks])

    def forward(self, z: Tensor, error: Tensor) -> Tensor:
        """V (N,) of this member from its inputs z (N, n_z + k) and the error y (N, n_z)."""
        h = z
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = activation(torch.addmm(bias, h, weight))
        entries = torch.addmm(self.biases[-1], h, self.weights[-1])
        entries = torch.where(self.diagonal, softplus(entries) + DIAGONAL_FLOOR, entries)
        y = (entries * error[:, self.rows]) @ self.column_sum
        return -(y * y).sum(-1)


class Ensemble(nn.Module):
    """Ensemble of independent networks, and the basin. The value is the mean of the networks.

    continuous: for every state, whether it is an angle that wraps. target: (n,) in SI units. rotations: of the robot.
    scale: (n,) factors of the states that do not wrap. members: number of networks.
    layers, width, generator, told: of every `Factor`. The basin is empty at first, and the metric the identity.
    shift: (k, n) what the entries of a context add to the target; None where it stands still.
    """

    angles: Tensor  # (k,) indices of the continuous angles
    others: Tensor  # (n - k,) indices of the other states
    scale: Tensor  # (n - k,)
    target: Tensor  # (n,)
    continuous: Tensor  # (n,) bool
    shift: Tensor | None  # (k, n)
    basin_cost: Tensor  # (nt, nt)
    basin_level: Tensor  # ()
    metric: Tensor  # (n_z, n_z)
    bend: Tensor  # ()
    degrees: Tensor  # (b, k) and
    polynomial: Tensor  # (b, nt (nt + 1)/2 + 1) of `BasinFamily`, only with told parameters

    def __init__(
        self,
        continuous: list[bool],
        target: list[float],
        scale: list[float],
        members: int,
        layers: int,
        width: int,
        generator: torch.Generator,
        told: int = 0,
        rotations: tuple[Rotation, ...] = (),
        shift: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.rotations = rotations
        self.register_buffer("shift", shift, persistent=False)
        turning = {i for rotation in rotations for i in range(rotation.coordinate, rotation.coordinate + 4)}
        angles = [i for i, wraps in enumerate(continuous) if wraps]
        others = [i for i, wraps in enumerate(continuous) if not wraps and i not in turning]
        self.register_buffer("angles", torch.tensor(angles, dtype=torch.long))
        self.register_buffer("others", torch.tensor(others, dtype=torch.long))
        self.register_buffer("scale", torch.tensor([scale[i] for i in others]))
        self.register_buffer("target", torch.tensor(target))
        self.register_buffer("continuous", torch.tensor(continuous), persistent=False)
        errors = len(target) - len(rotations)
        self.register_buffer("basin_cost", torch.zeros(errors, errors))
        self.register_buffer("basin_level", torch.tensor(0.0))
        size = 2 * len(angles) + len(others) + ENTRIES * len(rotations)
        self.register_buffer("metric", torch.eye(size))
        self.register_buffer("bend", torch.tensor(0.0))
        self.register_load_state_dict_pre_hook(_without_metric)  # type: ignore[no-untyped-call]
        self.members = nn.ModuleList(Factor(size, layers, width, generator, told) for _ in range(members))
        self.told = told
        if told:
            degrees = exponents(told, shift)
            self.register_buffer("degrees", degrees, persistent=False)
            errors = len(self.basin_cost)
            polynomial = (degrees.sum(1, keepdim=True) == 0).float()  # of numbers that are 1 in every context
            self.register_buffer("polynomial", polynomial.repeat(1, errors * (errors + 1) // 2 + 1))

    @property
    def factors(self) -> list[Factor]:
        """The members."""
        return list(self.members)  # type: ignore[arg-type]

    @property
    def features(self) -> Features:
        """Features and error, on the device of this module."""
        fixed = self.angles, self.others, self.scale
        at_target = Features(*fixed, self.target, self.metric, self.bend, self.rotations)(self.target[None])[0]
        return Features(*fixed, at_target, self.metric, self.bend, self.rotations)

    def see_less_of(self, fast: Tensor) -> None:
        """Divide the scale of the states in a mask (n,) by LESS. The metric's least cost would exceed theirs."""
        self.scale.div_(torch.where(fast[self.others], LESS, 1.0))

    def become_form(self) -> None:
        """Make V = -|y|^2, of which `hold` keeps a part. Its policy is near the target's regulator."""
        for member in self.factors:
            member.become_identity()

    def hold(self, fast: Tensor) -> None:
        """Keep V the quadratic form in the states of a mask (n,), if there are any.

        States that follow the inputs cost so little that an error of L would hide their slope, which the policy
        follows. The data say almost nothing on L there, and an optimiser that scales every gradient takes its noise for
        a slope.
        """
        if bool(fast.any()):
            unseen = torch.zeros_like(self.bend, dtype=torch.bool).repeat(self.features.size)
            unseen[2 * len(self.angles) :][: len(self.others)] = fast[self.others]
            for member in self.factors:
                member.hold(unseen)

    def set_metric(self, cost: Tensor, reach: float) -> None:
        """Set the metric of the error from P (nt, nt) and c = reach. It is part of the state_dict."""
        self.metric.copy_(self.features.metric_of(cost, self.target, reach))
        self.bend.fill_(1.0 / reach)

    @property
    def basin(self) -> Basin:
        """Copy of the basin, where the value is a quadratic form."""
        unit = 1.0 / (REACH * float(self.bend)) if self.bend else 0.0
        level = float(self.basin_level)
        return Basin(self.target, self.continuous, self.basin_cost.clone(), level, self.rotations, unit)

    def set_basin(self, basin: Basin) -> None:
        """Replace the basin. It is part of the state_dict."""
        self.basin_cost.copy_(basin.cost)
        self.basin_level.fill_(basin.level)

    @property
    def frame(self) -> ContextFrame:
        """Features and basin, of every context where there are told parameters."""
        alike = self.basin
        family = BasinFamily(alike, self.degrees, self.polynomial.clone(), self.shift) if self.told else alike
        return ContextFrame(self.features, family, len(self.target), self.shift)

    def place(self, basin: Basin | BasinFamily) -> None:
        """Set the basin, or the basins of all contexts, and the metric that they give to the errors."""
        if isinstance(basin, BasinFamily):
            self.polynomial.copy_(basin.coefficients)
            self.basin_level.fill_(basin.level)
        else:
            self.set_basin(basin)
            self.set_metric(basin.cost, REACH * float(basin.scale))

    @torch.no_grad()
    def told_that(self, c: Tensor) -> Ensemble:
        """The same value function for one context c (k,), without told parameters."""
        like = self.factors[0]
        rows = torch.cat([self.target, c])[None]
        _, features, basin = self.frame.at(rows)
        target = self.target if self.shift is None else self.target + c @ self.shift
        turn, moved = self.features.unshifted(target - self.target)
        scale = torch.zeros(len(self.target))
        scale[self.others] = self.scale
        single = Ensemble(
            self.continuous.tolist(),
            target.tolist(),
            scale.tolist(),
            len(self.members),
            len(like.weights) - 1,
            len(like.biases[0]),
            torch.Generator(),
            rotations=self.rotations,
        )
        if not basin.empty:
            single.set_basin(Basin(target, self.continuous, basin.cost[0], float(basin.level), self.rotations))
            single.metric.copy_(turn.T @ features.metric[0])
            single.bend.copy_(features.bend[0, 0])
        for mine, its in zip(self.factors, single.factors, strict=True):
            size = self.features.size
            first, told = mine.weights[0][:size], mine.weights[0][size:]
            its.weights[0].copy_(turn.T @ first)
            its.biases[0].copy_(mine.biases[0] + c @ told - moved @ first)
            for parameters, copies in ((mine.weights, its.weights), (mine.biases, its.biases)):
                for parameter, copy in zip(parameters[1:], copies[1:], strict=True):
                    copy.copy_(parameter)
        return single

    def forward(self, x: Tensor) -> Tensor:
        """Value V (N,) at the rows x (N, n + k), differentiable by autograd."""
        frame = self.frame
        states, features, basin = frame.at(x)
        z = features(states)
        error, inputs = features.error(z), frame.inputs(z, x)
        value = torch.stack([member(inputs, error) for member in self.members]).mean(0)
        if basin.empty:
            return value
        distance = basin.distance(states)
        return torch.where(distance < basin.level, -distance, value)


def _without_metric(_: nn.Module, state: dict[str, Any], prefix: str, *__: object) -> None:
    """Add the identity as metric to the weights of runs that were stored without one."""
    for name, value in state.copy().items():
        if name.startswith(f"{prefix}members.0.weights.0"):
            state.setdefault(f"{prefix}metric", torch.eye(len(value)).to(value))
            state.setdefault(f"{prefix}bend", torch.zeros(()).to(value))
