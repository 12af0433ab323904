"""Drives of the harsh plant: backlash, and dry friction of the driven joints."""

from __future__ import annotations

import torch
from torch import Tensor

from solver.problem.problem import Problem

CROSSING = 4e-3  # s, time of the unloaded drive across its gap at full input: 0.5 degrees at 1100 rad/s^2
BREAKAWAY = 0.05  # of the input limit: input below which a joint stays at rest
COULOMB = 0.7  # of the breakaway input: friction of a joint in motion
RESTING = 1e-4  # of a rate's limit: a joint below it counts as at rest, because float32 does not reach zero
SWEEPS = 10  # of Gauss-Seidel if there are several drives


class Backlash:
    """Gap between each drive and its joint. Inside the gap the drive exerts no force on the joint.

    There the input accelerates only the drive's own inertia. At full input the drive crosses the gap in `crossing`
    seconds. It does not bounce. It starts in the middle.

    limits: (m,) of the inputs. idle: zeros (N, m).
    """

    def __init__(self, limits: Tensor, crossing: float, idle: Tensor) -> None:
        self.acceleration = 2.0 / (crossing**2 * limits)  # widths of the gap per s^2 and unit of the input
        self.place = idle + 0.5  # (N, m) position in the gap: 0 at the negative side, 1 at the positive
        self.speed = idle  # widths per s

    def transmitted(self, u: Tensor, h: float) -> Tensor:
        """Input (N, m) that reaches the joints, averaged over h seconds in which the drive's input u (N, m) is held."""
        side = torch.where(u < 0.0, -1.0, 1.0)
        a = (self.acceleration * u).abs()
        left = torch.where(u < 0.0, self.place, 1.0 - self.place)  # distance to the side to which the input pushes
        speed = side * self.speed
        root = torch.sqrt(speed**2 + 2.0 * a * left)
        arrival = torch.where(speed < 0.0, (root - speed) / a, 2.0 * left / (root + speed))  # left = speed t + a t^2/2
        arrival = torch.where(left == 0.0, torch.where(speed < 0.0, arrival, 0.0), arrival)
        arrives = arrival < h  # False if speed and input are zero within the gap
        left = torch.where(arrives, 0.0, left - (speed + 0.5 * a * h) * h)
        speed = torch.where(arrives | (left >= 1.0) | (left <= 0.0), 0.0, speed + a * h)
        left = left.clamp(0.0, 1.0)
        self.place = torch.where(u < 0.0, left, 1.0 - left)
        self.speed = side * speed
        return torch.where(arrives, u * (1.0 - arrival / h), 0.0)


def dry_friction(
    problem: Problem, rows: list[int], level: float, x: Tensor, u: Tensor, theta: Tensor | None, seconds: float
) -> Tensor:
    """Friction (N, m), in units of the input, at the states x (N, n) and the inputs u (N, m).

    rows: index of the rate of each driven joint in the state. level: factor of the usual magnitude.
    theta: parameters (p,) or (N, p). seconds: length of the integration step.

    The friction brings each joint to rest within the integration step. It is limited to the breakaway input for a joint
    at rest, and to the Coulomb input for a joint in motion. Gauss-Seidel iterations solve for coupled joints.
    """
    a, control_matrix = problem.robot.affine_dynamics(x, theta)
    rate, gain = x[:, rows], control_matrix[:, rows]  # (N, m), (N, m, m)
    unbraked = rate / seconds + a[:, rows] + torch.einsum("nij,nj->ni", gain, u)
    breakaway = problem.input_limits * BREAKAWAY * level
    resting = rate.abs() < RESTING * problem.state_limits[rows]
    friction = torch.zeros_like(u)
    for _ in range(SWEEPS if len(rows) > 1 else 1):
        for k in range(len(rows)):
            own = gain[:, k, k]
            rest = unbraked[:, k] + (gain[:, k] * friction).sum(1) - own * friction[:, k]
            needed = torch.where(own == 0.0, 0.0, -rest / own)
            sticks = resting[:, k] & (needed.abs() <= breakaway[k])
            friction[:, k] = torch.where(sticks, needed, needed.clamp(-COULOMB * breakaway[k], COULOMB * breakaway[k]))
    return friction
