"""Dry friction of the driven joints."""

from __future__ import annotations

import torch
from torch import Tensor

from solver.problem.problem import Problem

BREAKAWAY = 0.05  # of the input limit that a joint at rest withstands
COULOMB = 0.7  # of the breakaway input that rubs against a joint in motion
RESTING = 1e-4  # of a rate's limit, below which a joint counts as at rest: float32 does not stop it to zero
SWEEPS = 10  # of Gauss-Seidel, where several drives stick at once


def dry_friction(
    problem: Problem, rows: list[int], level: float, x: Tensor, u: Tensor, theta: Tensor | None, seconds: float
) -> Tensor:
    """The friction (N, m), in units of the input, at the states x (N, n) under the inputs u (N, m).

    rows: the rate of each driven joint, as an index of the state. level: a multiple of the usual magnitude.
    seconds: of the integration step.

    The friction is what brings each joint to rest within the integration step, limited to the breakaway input at rest,
    and to the Coulomb input in motion or once the joint has broken away. Joints that rub on one another are solved for
    by Gauss-Seidel.
    """
    a, control_matrix = problem.robot.affine_dynamics(x, theta)
    rate, gain = x[:, rows], control_matrix[:, rows]  # (N, m), (N, m, m)
    wanted = rate / seconds + a[:, rows] + torch.einsum("nij,nj->ni", gain, u)
    breakaway = problem.input_limits * BREAKAWAY * level
    resting = rate.abs() < RESTING * problem.state_limits[rows]
    friction = torch.zeros_like(u)
    for _ in range(SWEEPS if len(rows) > 1 else 1):
        for k in range(len(rows)):
            own = gain[:, k, k]
            rest = wanted[:, k] + (gain[:, k] * friction).sum(1) - own * friction[:, k]
            needed = torch.where(own == 0.0, 0.0, -rest / own)
            sticks = resting[:, k] & (needed.abs() <= breakaway[k])
            friction[:, k] = torch.where(sticks, needed, needed.clamp(-COULOMB * breakaway[k], COULOMB * breakaway[k]))
    return friction
