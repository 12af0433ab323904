"""What the value function sees of a state: its features z, and its error y in the metric of the target.

z(x) replaces every continuous angle by its sine and cosine and scales the other states. With e = z - z(target),

    y = W^T e / sqrt(1 + |W^T e|^2/c).

In a run with the setting `metric`, |W^T e|^2 is the Riccati equation's e^T P e beside the target, so that |y|^2 is
close to the cost to go there, whatever the scales of the states are: the network learns by what factor the cost to go
differs. Far away |y|^2 tends to c. In other runs W is the identity and 1/c is 0: y = e.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

UNSEEN = 1e-3  # of c, that an error of 1 costs at least, also in a direction that P does not see


@dataclass(frozen=True)
class Features:
    """z(x) and y(z)."""

    angles: Tensor  # (c,) indices of the continuous joints
    others: Tensor  # (n - c,)
    scale: Tensor  # (n - c,)
    at_target: Tensor  # (n_z,) z(target)
    metric: Tensor  # (n_z, n_z) W
    bend: Tensor  # () 1/c

    @property
    def size(self) -> int:
        """n_z = 2 c + (n - c), with c continuous joints."""
        return 2 * len(self.angles) + len(self.others)

    def __call__(self, x: Tensor) -> Tensor:
        """z (N, n_z) of x (N, n)."""
        angle = x[:, self.angles]
        return torch.cat([torch.sin(angle), torch.cos(angle), x[:, self.others] * self.scale], dim=1)

    def error(self, z: Tensor) -> Tensor:
        """y (N, n_z) of z (N, n_z)."""
        y, shrunk = self._straight(z)
        return y * shrunk

    def _straight(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """W^T e (N, n_z), and by what it is multiplied (N, 1)."""
        y = (z - self.at_target) @ self.metric
        return y, (1.0 + self.bend * (y * y).sum(1, keepdim=True)).rsqrt()

    def pull_back(self, z: Tensor, y: Tensor, dz: Tensor, dy: Tensor) -> Tensor:
        """dV/dx (N, n) from z and y = error(z), and the derivatives of V(z, y) by both, all (N, n_z)."""
        along = (dy * y).sum(1, keepdim=True) * self.bend
        dz = dz + ((dy - along * y) * self._straight(z)[1]) @ self.metric.T
        c = len(self.angles)
        dx = torch.empty(len(z), c + len(self.others), dtype=z.dtype, device=z.device)
        dx[:, self.angles] = dz[:, :c] * z[:, c : 2 * c] - dz[:, c : 2 * c] * z[:, :c]
        dx[:, self.others] = dz[:, 2 * c :] * self.scale
        return dx

    def metric_of(self, cost: Tensor, target: Tensor, reach: float) -> Tensor:
        """W (n_z, n_z) for P (n, n) at the target (n,), and c = reach.

        Sine and cosine of an angle are two features of one state. Along the circle they count as P says; across it, as
        the angle itself does, so that half a turn costs four times P's cost of a radian.
        """
        cost, at = cost.double(), target.double()[self.angles]
        c = len(self.angles)
        rows, others = torch.arange(c).to(at.device), torch.arange(2 * c, self.size).to(at.device)
        along = cost.new_zeros(len(target), self.size)  # states by features
        along[self.angles, rows], along[self.angles, c + rows] = torch.cos(at), -torch.sin(at)
        along[self.others, others] = 1.0 / self.scale.double()
        across = cost.new_zeros(c, self.size)
        across[rows, rows], across[rows, c + rows] = torch.sin(at), torch.cos(at)
        turning = torch.diag(cost.diagonal()[self.angles])
        form = along.T @ cost @ along + across.T @ turning @ across + UNSEEN * reach * torch.eye(self.size).to(cost)
        root: Tensor = torch.linalg.cholesky(form)
        return root
