"""The policy of a controller that acts once a control period, where the closed form is that of continuous time.

Held for a period of h seconds, u = grad g~(B^T dV/dx) overshoots where V is steep, and the robot buzzes between its
limits. The sampled policy maximises -h g(u) + V(x+(u)), where x+(u) is the state that the model has reached at the end
of the period. Since dx+/du = h B to first order in h, its stationary point is the closed form with the gradient there:

    u = grad g~(w(u)),  w(u) = B(x)^T dV/dx(x+(u))

It is found by linearising w around the last u a few times, w + M (u' - u), with M = dw/du by differences, confined to
M <= 0 as that of a concave V. Each is solved by repeating u' = S w' with S = diag(u'/w'), which contracts because
every grad g~ rises ever more slowly.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from solver.evaluation import Controller
from solver.game import Game

LINEARISATIONS, CONTRACTIONS = 5, 30
STEP = 0.02  # of the input limits, for differences
SMALL = 1e-9


def sampled_controller(game: Game, value: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Controller:
    """The sampled policy of a value function on the nominal model: x (N, n) -> u (N, m), g_c(u) (N,).

    Takes LINEARISATIONS (m + 1) evaluations of V, where the closed form takes one.
    """
    limits, policy = game.input_limits, game.action_cost.policy

    def act(x: Tensor) -> tuple[Tensor, Tensor]:
        _, control_matrix = game.robot.affine_dynamics(x)

        def gain(u: Tensor) -> Tensor:
            return torch.einsum("bnm,bn->bm", control_matrix, value(game.hold(x, u, None))[1])

        u = torch.zeros(len(x), len(limits), dtype=x.dtype, device=x.device)
        for _ in range(LINEARISATIONS):
            w = gain(u)
            columns = [(gain(u + step) - w) / step.sum() for step in torch.diag(STEP * limits)]
            u = _solve(policy, w, _concave(torch.stack(columns, 2)), u)
        return u, game.action_cost.cost(u)

    return act


def _concave(m: Tensor) -> Tensor:
    """The nearest symmetric negative semidefinite matrices (N, m, m)."""
    finite = torch.nan_to_num(m, 0.0, 0.0, 0.0)  # eigh takes nothing else; w makes such a row NaN all the same
    values, vectors = torch.linalg.eigh(0.5 * (finite + finite.mT))
    nearest: Tensor = (vectors * values.clamp(max=0.0)[:, None, :]) @ vectors.mT
    return nearest


def _solve(policy: Callable[[Tensor], Tensor], w: Tensor, m: Tensor, u: Tensor) -> Tensor:
    """u' (N, m) with u' = grad g~(w + m (u' - u))."""
    constant = w - torch.einsum("bij,bj->bi", m, u)
    unit = torch.eye(w.shape[1], dtype=w.dtype, device=w.device)
    at = constant
    for _ in range(CONTRACTIONS):
        away = torch.where(at.abs() < SMALL, SMALL, at)
        slope = policy(away) / away
        at = torch.linalg.solve(unit - m * slope[:, None, :], constant)
    return policy(at).contiguous()
