"""Inputs of the value networks: the features z of a state, and its error y in the metric of the target.

z(x) replaces every continuous angle by its sine and cosine, and a quaternion by its rotation matrix, and scales the
other states. With e = z - z(target),

    y = W^T e / sqrt(1 + |W^T e|^2/c).

In a run with the setting `basin`, |W^T e|^2 is the quadratic form e^T P e of the Riccati equation near the target.
There |y|^2 is close to the cost to go, for any scales of the states, and the network learns the ratio of both. Far
away, |y|^2 tends to c. In other runs W is the identity and 1/c is 0, so that y = e.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from modelgen.metadata import Rotation
from solver.problem.geometry import ENTRIES, by_quaternion, by_turns, matrix

UNSEEN = 1e-3  # of c: smallest cost of an error of 1 in any direction, also where P is 0


@dataclass(frozen=True)
class Features:
    """The functions z(x) and y(z). With k continuous angles and r rotations, n_z = 2 k + (n - k - 4 r) + 9 r.

    The features of N contexts have N metrics, one for each of the N states that their methods take. Where targets move,
    they are the features of x - shift: a robot that is alike everywhere then needs no other network for another target.
    """

    angles: Tensor  # (k,) indices of the continuous angles
    others: Tensor  # (n - k - 4 r,) indices of the other states
    scale: Tensor  # (n - k - 4 r,) factors of the other states
    at_target: Tensor  # (n_z,) z(target)
    metric: Tensor  # (n_z, n_z) or (N, n_z, n_z) W
    bend: Tensor  # () or (N, 1) 1/c
    rotations: tuple[Rotation, ...] = ()
    shift: Tensor | None = None  # (N, n) of the N targets from the one of `at_target`; zero in quaternions

    @property
    def size(self) -> int:
        """Number of features n_z."""
        return 2 * len(self.angles) + len(self.others) + ENTRIES * len(self.rotations)

    def __call__(self, x: Tensor) -> Tensor:
        """Features z (N, n_z) of x (N, n): sines, cosines, other states, rotation matrices."""
        x = x if self.shift is None else x - self.shift
        angle, turned = x[:, self.angles], [matrix(x[:, rotation.quaternion]) for rotation in self.rotations]
        return torch.cat([torch.sin(angle), torch.cos(angle), x[:, self.others] * self.scale, *turned], dim=1)

    def error(self, z: Tensor) -> Tensor:
        """Error y (N, n_z) of the features z (N, n_z)."""
        y, shrinking = self.straight(z)
        return y * shrinking

    def straight(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """W^T e (N, n_z) and the factor 1/sqrt(1 + |W^T e|^2/c) (N, 1)."""
        y = times(z - self.at_target, self.metric)
        return y, (1.0 + self.bend * (y * y).sum(1, keepdim=True)).rsqrt()

    def pull_back(self, x: Tensor, z: Tensor, y: Tensor, shrinking: Tensor, dz: Tensor, dy: Tensor) -> Tensor:
        """dV/dx (N, n) at x from z(x), y = error(z), and the derivatives dz and dy of V(z, y) in them, all (N, n_z).

        shrinking: the factor (N, 1) of `straight`.
        """
        along = (dy * y).sum(1, keepdim=True) * self.bend
        dz = dz + times((dy - along * y) * shrinking, self.metric.mT)
        c, plain = len(self.angles), 2 * len(self.angles) + len(self.others)
        slopes = torch.cat([z[:, c : 2 * c], -z[:, :c], self.scale.expand(len(x), -1)], 1)
        dx = (dz[:, :plain] * slopes) @ self._places
        for rotation, entries in self._matrices:
            q = x[:, rotation.quaternion]
            dx[:, rotation.quaternion] = by_quaternion(q, by_turns(q, dz[:, entries]))
        return dx

    def of(self, rows: Tensor) -> Features:
        """The features of these of the N contexts; the same features where there is one metric and one target."""
        shift = None if self.shift is None else self.shift[rows]
        if self.metric.ndim == 2:
            return self if shift is None else replace(self, shift=shift)
        return replace(self, metric=self.metric[rows], bend=self.bend[rows], shift=shift)

    @cached_property
    def _places(self) -> Tensor:
        """Matrix (2 k + n - k - 4 r, n) of ones where a sine, a cosine or another state is a feature of a state."""
        states = len(self.angles) + len(self.others) + 4 * len(self.rotations)
        ones = torch.eye(states, device=self.scale.device, dtype=self.scale.dtype)
        return ones[torch.cat([self.angles, self.angles, self.others])]

    def measured_by(self, cost: Tensor, target: Tensor, reach: Tensor) -> Features:
        """The same features with the metrics of N forms P (N, n, n), and with N values c = reach (N,)."""
        metric = self.metric_of(cost, target, reach[:, None, None]).to(self.metric)
        return replace(self, metric=metric, bend=1.0 / reach[:, None])

    def unshifted(self, shift: Tensor) -> tuple[Tensor, Tensor]:
        """R (n_z, n_z) and r (n_z,) with z(x - shift) = R z(x) - r, for one shift (n,)."""
        c, angle = len(self.angles), shift[self.angles]
        turn = torch.eye(self.size).to(shift)
        sines, cosines = torch.arange(c), torch.arange(c, 2 * c)
        turn[sines, sines] = turn[cosines, cosines] = torch.cos(angle)
        turn[sines, cosines], turn[cosines, sines] = -torch.sin(angle), torch.sin(angle)
        moved = shift.new_zeros(self.size)
        moved[2 * c : 2 * c + len(self.others)] = shift[self.others] * self.scale
        return turn, moved

    @property
    def _matrices(self) -> list[tuple[Rotation, slice]]:
        """Every rotation with the entries of z that hold its matrix."""
        first = 2 * len(self.angles) + len(self.others)
        places = [first + ENTRIES * k for k in range(len(self.rotations))]
        return [(each, slice(at, at + ENTRIES)) for each, at in zip(self.rotations, places, strict=True)]

    def _in_tangent(self, states: Tensor) -> Tensor:
        """Indices in the error of states that are no entry of a quaternion."""
        before = [states > rotation.coordinate for rotation in self.rotations]
        return states - torch.stack(before).sum(0) if before else states

    def metric_of(self, cost: Tensor, target: Tensor, reach: float | Tensor) -> Tensor:
        """Metric W (..., n_z, n_z) from P (..., nt, nt) at the target (n,), and from c = reach."""
        root: Tensor = torch.linalg.cholesky_ex(self.form_of(cost, target, reach)).L
        return root

    def form_of(self, cost: Tensor, target: Tensor, reach: float | Tensor) -> Tensor:
        """Form W W^T (..., n_z, n_z) of the metric W, linear in P (..., nt, nt) and c = reach, at the target (n,).

        Sine and cosine are two features of one angle. A change along the unit circle costs what P gives it. A change
        across the circle costs P_ii, so that half a turn (a distance of 2) costs four times as much as one radian.
        A rotation matrix has nine entries; changes that are no turn cost half the mean of the turns, with which half a
        turn about any axis costs four times as much as one radian likewise.
        """
        cost, at = cost.double(), target.double()[self.angles]
        c, first = len(self.angles), 2 * len(self.angles)
        angles, plain = self._in_tangent(self.angles), self._in_tangent(self.others)
        rows, others = torch.arange(c).to(at.device), torch.arange(first, first + len(plain)).to(at.device)
        along = cost.new_zeros(cost.shape[-1], self.size)  # (nt, n_z)
        along[angles, rows], along[angles, c + rows] = torch.cos(at), -torch.sin(at)
        along[plain, others] = 1.0 / self.scale.double()
        across = cost.new_zeros(c, self.size)
        across[rows, rows], across[rows, c + rows] = torch.sin(at), torch.cos(at)
        turning = torch.diag_embed(cost.diagonal(dim1=-2, dim2=-1)[..., angles])
        form = along.T @ cost @ along + across.T @ turning @ across + UNSEEN * reach * torch.eye(self.size).to(cost)
        if self.rotations:
            form = self._with_rotations(form, along, cost, target.double())
        return form

    def _with_rotations(self, form: Tensor, along: Tensor, cost: Tensor, target: Tensor) -> Tensor:
        """The form (..., n_z, n_z) of `form_of`, with the terms of rotation matrices."""
        plain = along.clone()
        for k, (rotation, entries) in enumerate(self._matrices):
            q, turn = target[rotation.quaternion], slice(rotation.coordinate - k, rotation.coordinate - k + 3)
            columns = [by_turns(q, entry) for entry in torch.eye(ENTRIES).to(cost)]
            tangent = torch.stack(columns, 1)  # (3, 9), orthogonal rows of squared length 2
            along[turn, entries] = tangent / 2.0
            rest = torch.eye(ENTRIES).to(cost) - tangent.T @ tangent / 2.0
            mean = cost.diagonal(dim1=-2, dim2=-1)[..., turn].mean(-1)[..., None, None]
            form[..., entries, entries] += rest * mean / 2.0
        return form + along.T @ cost @ along - plain.T @ cost @ plain


def times(e: Tensor, matrix: Tensor) -> Tensor:
    """Rows e_i^T M (N, m) of e (N, n), with one matrix M (n, m) or with N of them (N, n, m)."""
    return e @ matrix if matrix.ndim == 2 else (e[:, :, None] * matrix).sum(1)
