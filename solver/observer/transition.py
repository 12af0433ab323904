"""One control period of the robot with its derivatives: the Runge-Kutta step of the integrator, differentiated.

The derivatives follow the stages of the step, so they are those of the numerical solution and not only of the true one.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from solver.problem.problem import Problem


class Transition(NamedTuple):
    """The states at the end of a control period, and how they change with what they depend on."""

    x: Tensor  # (N, n)
    by_state: Tensor  # (N, n, n)
    by_input: Tensor  # (N, n, m)
    by_parameter: Tensor  # (N, n, p)


def transition(problem: Problem, x: Tensor, u: Tensor) -> Transition:
    """The period from x (N, n) under the input u (N, m), held, at the nominal parameters.

    The derivatives do not see that states are confined to the domain.
    """
    size, n, m = len(x), x.shape[1], u.shape[1]
    seconds = problem.control_step / problem.substeps
    # D = d(x)/d(x_0, u, theta) satisfies dD/dt = (da_dx + dB_dx u) D + (0, B, da_dtheta + dB_dtheta u).
    derivatives = x.new_zeros(size, n, n + m + len(problem.theta))
    derivatives[:, :, :n] = torch.eye(n, dtype=x.dtype, device=x.device)

    def rates(x: Tensor, derivatives: Tensor) -> tuple[Tensor, Tensor]:
        a, control_matrix, *slopes = problem.robot.jacobians(x)
        a_by_x, B_by_x, a_by_theta, B_by_theta = slopes
        found = (a_by_x + torch.einsum("bnmk,bm->bnk", B_by_x, u)) @ derivatives
        found[:, :, n : n + m] += control_matrix
        found[:, :, n + m :] += a_by_theta + torch.einsum("bnmp,bm->bnp", B_by_theta, u)
        return a + torch.einsum("bnm,bm->bn", control_matrix, u), found

    for _ in range(problem.substeps):
        stages = [rates(x, derivatives)]
        for share in (0.5, 0.5, 1.0):
            slope, slopes = stages[-1]
            stages.append(rates(x + share * seconds * slope, derivatives + share * seconds * slopes))
        x, derivatives = (
            start + seconds / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
            for start, (first, second, third, fourth) in zip((x, derivatives), zip(*stages, strict=True), strict=True)
        )
        problem.confine_in_place(x)
    return Transition(x, *torch.split(derivatives, [n, m, len(problem.theta)], 2))
