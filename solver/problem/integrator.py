"""The integrator of the equations of motion: explicit Euler under a held input (zero-order hold).

Targets, rollouts, plants and the Gymnasium environment all integrate here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from solver.problem.problem import Problem


def integrate_step(
    problem: Problem, x: Tensor, u: Tensor, theta: Tensor | None = None, offset: Tensor | None = None
) -> Tensor:
    """The states (N, n) one integration step after x (N, n), confined to the state domain.

    u (N, m) is the input and theta (p,) or (N, p) the parameters, nominal by default. The dynamics are evaluated at
    x + offset, offset (N, n).
    """
    at = x if offset is None else x + offset
    x = torch.add(x, problem.robot.dynamics(at, u, theta), alpha=problem.integration_step)
    problem.confine_in_place(x)
    return x


def integrate_period(
    problem: Problem, x: Tensor, u: Tensor, theta: Tensor | None = None, offset: Tensor | None = None
) -> Tensor:
    """The states (N, n) one control period after x (N, n), u (N, m) held; arguments as in `integrate_step`."""
    for _ in range(problem.substeps):
        x = integrate_step(problem, x, u, theta, offset)
    return x
