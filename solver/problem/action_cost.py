"""Action costs g_c(u) and their convex conjugates, for any number of inputs.

Each cost is separable, strictly convex and zero at u = 0. The optimal input of the Hamiltonian
dV/dx . (a + B u) - g_c(u) is u = grad g~(w) with w = B^T dV/dx (paper, eq. 10). The cost of that input is
evaluated from w and not from u: the barriers lose all digits in float32 as soon as u saturates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from modelgen.metadata import ActionCost as ActionCostMetadata
from solver.errors import SolverError


@dataclass(frozen=True)
class ActionCost:
    """g_c and grad g~ as functions of w = B^T dV/dx or of u; every argument is (..., m)."""

    policy: Callable[[Tensor], Tensor]  # w -> u = grad g~(w), |u| <= limit
    cost_of_policy: Callable[[Tensor], Tensor]  # w -> sum_i g_i(u_i(w)), shape (...)
    cost: Callable[[Tensor], Tensor]  # u -> sum_i g_i(u_i), shape (...)


def log_cos(weights: Tensor, limits: Tensor) -> ActionCost:
    """The log-cos barrier: g(u) = -2 beta a/pi log cos(pi u/(2a)), grad g~(w) = 2a/pi atan(w/beta).

    a = limit + 1e-3 and beta = 4 limit^2 R/pi as in the authors' code, so that returns compare with theirs; a
    curvature of 2R at u = 0 would need beta = 4 limit R/pi.
    """
    reach = limits + 1e-3
    beta = 4.0 * limits**2 * weights / math.pi

    def cost(u: Tensor) -> Tensor:
        share = u.double() / (limits.double() + 1e-3)  # beside the limit the cosine has no digits in float32
        return (-2.0 * beta * reach / math.pi * torch.log(torch.cos(math.pi / 2.0 * share))).sum(-1).to(u.dtype)

    return ActionCost(
        policy=lambda w: torch.clamp(2.0 * reach / math.pi * torch.atan(w / beta), -limits, limits),
        cost_of_policy=lambda w: (beta * reach / math.pi * torch.log1p((w / beta) ** 2)).sum(-1),
        cost=cost,
    )


def quadratic(weights: Tensor, limits: Tensor) -> ActionCost:
    """g(u) = R u^2 on |u| <= limit, so grad g~(w) = w/(2R) clipped to the limits."""

    def policy(w: Tensor) -> Tensor:
        return torch.clamp(w / (2.0 * weights), -limits, limits)

    def cost(u: Tensor) -> Tensor:
        return (weights * u**2).sum(-1)

    return ActionCost(policy=policy, cost_of_policy=lambda w: cost(policy(w)), cost=cost)


def tanh(weights: Tensor, limits: Tensor) -> ActionCost:
    """g(u) = 2 R a^2 [s atanh(s) + log(1 - s^2)/2] with s = u/a, so grad g~(w) = a tanh(w/(2 R a)).

    a = limit; the curvature at u = 0 is 2R.
    """
    scale = 2.0 * weights * limits

    def cost_of_policy(w: Tensor) -> Tensor:
        y = (w / scale).abs()  # y tanh(y) - log cosh(y), without the two terms that both grow as y
        return (
            scale * limits * (math.log(2.0) - 2.0 * y * torch.sigmoid(-2.0 * y) - torch.log1p(torch.exp(-2.0 * y)))
        ).sum(-1)

    def cost(u: Tensor) -> Tensor:
        share = u.double() / limits.double()  # the same with both logarithms taken apart: finite at the limit
        each = torch.special.xlog1py(1.0 + share, share) + torch.special.xlog1py(1.0 - share, -share)
        total: Tensor = (weights * limits**2 * each).sum(-1)
        return total.to(u.dtype)

    return ActionCost(policy=lambda w: limits * torch.tanh(w / scale), cost_of_policy=cost_of_policy, cost=cost)


ACTION_COSTS: dict[str, Callable[[Tensor, Tensor], ActionCost]] = {
    "log_cos": log_cos,
    "quadratic": quadratic,
    "tanh": tanh,
}


def make_action_cost(metadata: ActionCostMetadata, limits: Tensor) -> ActionCost:
    """The cost an artifact names, for input limits (m,); SolverError for a name that is not in the table."""
    if metadata.name not in ACTION_COSTS:
        raise SolverError(f"unknown action cost '{metadata.name}'; known are {', '.join(sorted(ACTION_COSTS))}")
    weights = torch.tensor(metadata.weights, dtype=limits.dtype, device=limits.device)
    return ACTION_COSTS[metadata.name](weights, limits)
