"""Backlash of the drives."""

from __future__ import annotations

import torch
from torch import Tensor

CROSSING = 4e-3  # s that the unloaded drive takes across the gap at full input: 0.5 degrees at 1100 rad/s^2


class Backlash:
    """A gap between each drive and its joint. Inside the gap the drive exerts no force on the joint.

    There the input accelerates only the drive's own inertia, from one side of the gap to the other in `crossing`
    seconds at full input. The drive meets either side without bouncing. It starts in the middle.
    """

    def __init__(self, limits: Tensor, crossing: float, idle: Tensor) -> None:
        self.acceleration = 2.0 / (crossing**2 * limits)  # widths of the gap per s^2 and unit of the input
        self.place = idle + 0.5  # (N, m) 0 at the negative side, 1 at the positive
        self.speed = idle  # widths per s

    def transmitted(self, u: Tensor, h: float) -> Tensor:
        """The part of the input u (N, m), held for h seconds, that reaches the joints: the average over h, (N, m)."""
        side = torch.where(u < 0.0, -1.0, 1.0)
        a = (self.acceleration * u).abs()
        left = torch.where(u < 0.0, self.place, 1.0 - self.place)  # to the side that the input pushes to
        speed = side * self.speed
        root = torch.sqrt(speed**2 + 2.0 * a * left)
        arrival = torch.where(speed < 0.0, (root - speed) / a, 2.0 * left / (root + speed))  # left = speed t + a t^2/2
        arrival = torch.where(left == 0.0, torch.where(speed < 0.0, arrival, 0.0), arrival)
        arrives = arrival < h  # not where both are zero: nothing moves, nothing pushes
        left = torch.where(arrives, 0.0, left - (speed + 0.5 * a * h) * h)
        speed = torch.where(arrives | (left >= 1.0) | (left <= 0.0), 0.0, speed + a * h)
        left = left.clamp(0.0, 1.0)
        self.place = torch.where(u < 0.0, left, 1.0 - left)
        self.speed = side * speed
        return torch.where(arrives, u * (1.0 - arrival / h), 0.0)
