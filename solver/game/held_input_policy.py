"""The policy of a controller that acts once a control period, where the closed form is that of continuous time.

Held for h seconds, u = grad g~(B^T dV/dx) overshoots where V is steep, and the robot buzzes between its limits. The
sampled policy reckons with what the input itself does in that time, x + h B u, and maximises -h g(u) + V(x + h B u):

    u = grad g~(w(u)),  w(u) = B(x)^T dV/dx(x + h B(x) u)

the paper's policy as h goes to zero. w is replaced by w(0) - P u, whose chords between u = 0 and the closed form
are exact for a quadratic V.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.closed_form_policy import ClosedFormPolicy
from solver.problem.action_cost import ActionCost
from solver.problem.problem import Problem

BISECTIONS = 24  # all digits of float32
CONTRACTIONS = 50
SMALL = 1e-9
SHORTEST = 0.02  # chord, of the input limit: differences over less are noise


class HeldInputPolicy(ClosedFormPolicy):
    """The policy of an input that acts for `seconds` before the next one can.

    gradient: x (N, n) -> dV/dx (N, n). Every call evaluates it m times.
    """

    def __init__(self, problem: Problem, gradient: Callable[[Tensor], Tensor], seconds: float) -> None:
        super().__init__(problem)
        self.gradient, self.seconds = gradient, seconds

    def _argument(self, x: Tensor, control_matrix: Tensor, w: Tensor) -> Tensor:
        """w(u) (N, m) of the policy u = grad g~(w(u)), from w(0) (N, m)."""
        cost, limits = self.problem.action_cost, self.problem.input_limits
        p = self._slope(cost.policy(w), x, control_matrix, w)
        return _bisected(cost, limits, w, p[:, 0]) if len(limits) == 1 else _contracted(cost, w, p)

    def _slope(self, closed: Tensor, x: Tensor, control_matrix: Tensor, w: Tensor) -> Tensor:
        """P (N, m, m), symmetric and positive semidefinite, as that of a concave V is."""
        limits, columns = self.problem.input_limits, []
        for k in range(len(limits)):
            step = torch.zeros_like(w)
            step[:, k] = torch.copysign(closed[:, k].abs().clamp_min(SHORTEST * limits[k]), closed[:, k])
            beside = torch.add(x, torch.einsum("bnm,bm->bn", control_matrix, step), alpha=self.seconds)
            beside_gain = torch.einsum("bnm,bn->bm", control_matrix, self.gradient(beside))
            columns.append((w - beside_gain) / step[:, k : k + 1])
        return _semidefinite(torch.stack(columns, 2))


def held_seconds(problem: Problem, reaction_periods: float, step_periods: int = 1) -> float:
    """How long an input acts before the next one can: the reaction time, and the rest of a longer value step."""
    return (reaction_periods + (step_periods - 1)) * problem.control_step


def make_policy(
    problem: Problem,
    value: Callable[[Tensor], tuple[Tensor, Tensor]],
    reaction_periods: float = 0.0,
    step_periods: int = 1,
) -> ClosedFormPolicy:
    """The policy of a value function: the held input's, or the closed form where reaction_periods is 0.

    step_periods: control periods that a value step holds the input, 1 outside of training.
    """
    if reaction_periods == 0.0:
        return ClosedFormPolicy(problem)
    seconds = held_seconds(problem, reaction_periods, step_periods)
    return HeldInputPolicy(problem, lambda x: value(x)[1], seconds)


def _semidefinite(p: Tensor) -> Tensor:
    """Cholesky's decomposition of the symmetric part of p (N, m, m), with every entry cut to what it may be, put
    together again."""
    rest, columns = 0.5 * (p + p.mT), []
    for j in range(p.shape[1]):
        root = rest.diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt()
        column = torch.clamp(rest[:, :, j] / root[:, j : j + 1].clamp_min(SMALL), -root, root)
        column[:, :j] = 0.0
        rest = rest - column[:, :, None] * column[:, None, :]
        columns.append(column)
    factor = torch.stack(columns, 2)
    return factor @ factor.mT


def _bisected(cost: ActionCost, limit: Tensor, w: Tensor, p: Tensor) -> Tensor:
    """w - p u (N, 1) with u = grad g~(w - p u), which is between the limits."""
    low, high = (torch.ones_like(w) * end for end in (-limit, limit))
    for _ in range(BISECTIONS):
        u = 0.5 * (low + high)
        more = cost.policy(w - p * u) > u
        low, high = torch.where(more, u, low), torch.where(more, high, u)
    return w - p * (0.5 * (low + high))


def _contracted(cost: ActionCost, w: Tensor, p: Tensor) -> Tensor:
    """The same for several inputs, p (N, m, m): (I + P S) at = w with S = diag(u/at) of the u = grad g~(at) before,
    which contracts because every grad g~ rises ever more slowly."""
    unit, at = torch.eye(w.shape[1], dtype=w.dtype, device=w.device), w
    for _ in range(CONTRACTIONS):
        away = torch.where(at.abs() < SMALL, SMALL, at)
        at = torch.linalg.solve(unit + p * (cost.policy(away) / away)[:, None, :], w)
    return at.contiguous()  # kernels take rows


def require_periods(sampled: float) -> None:
    """SolverError unless a policy can reckon with so many control periods."""
    if not (math.isfinite(sampled) and sampled >= 0.0):
        raise SolverError(
            f"--sampled is {sampled}; give the control periods that an input acts before the next one can: 1, or 2 "
            "with a period of delay; 0 is the closed form"
        )
