"""The policy under a zero-order hold, and the factory that makes the policy of a value function.

The closed form u = grad g~(B^T dV/dx) is optimal in continuous time. Held for h seconds it overshoots where V is steep,
and the input chatters between its limits. The policy for a held input takes into account how far the input itself moves
the state in that time, x + h B u. It maximises -h g(u) + V(x + h B u), a proximal step:

    u = grad g~(w(u)),  w(u) = B(x)^T dV/dx(x + h B(x) u)

which is the closed form as h goes to zero. The code replaces w(u) by w(0) - P u. The columns of P are the slopes of
chords, from u = 0 to the closed form of one input at a time: exact for a quadratic V.

The length of the hold, h, is the reaction time of the controller: the setting `reaction_periods`, in control periods.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game.closed_form_policy import ClosedFormPolicy
from solver.problem.action_cost import TensorActionCost
from solver.problem.problem import Problem
from solver.value.protocol import ValueFunction

BISECTIONS = 24  # of the C source: halve the range of an input to the digits of float32
NEWTON_STEPS = 10
CONTRACTIONS = 50  # iterations for several inputs
LOOK = 5  # iterations for several inputs between two questions whether they may end
CONVERGED = 1e-5  # largest relative change of the last iteration; what is left is less
SMALL = 1e-9  # keeps divisions by an argument or a pivot finite
LONGEST = 100.0  # control periods; no controller reacts later
SHORTEST = 0.02  # of the input limit, length of a chord: differences over a shorter one are rounding noise


class HeldInputPolicy(ClosedFormPolicy):
    """The policy of an input that acts for `seconds` before the next one can. Each call evaluates the value m times."""

    def __init__(self, problem: Problem, value: ValueFunction, seconds: float) -> None:
        super().__init__(problem)
        self.value, self.seconds = value, seconds

    def _argument(self, x: Tensor, control_matrix: Tensor, w: Tensor) -> Tensor:
        """w(u) (N, m) of the policy u = grad g~(w(u)), from w(0) (N, m)."""
        cost = self.problem.action_cost
        closed = cost.policy(w)
        p = self._slope(closed, x, control_matrix, w)
        return _one_input(cost, closed, w, p[:, 0]) if w.shape[1] == 1 else _contracted(cost, w, p)

    def _slope(self, closed: Tensor, x: Tensor, control_matrix: Tensor, w: Tensor) -> Tensor:
        """P (N, m, m) = -dw/du, symmetric and positive semidefinite as it is for a concave V."""
        limits, columns = self.problem.input_limits, []
        for k in range(len(limits)):
            step = torch.zeros_like(w)
            step[:, k] = torch.copysign(closed[:, k].abs().clamp_min(SHORTEST * limits[k]), closed[:, k])
            beside = torch.add(x, torch.einsum("bnm,bm->bn", control_matrix, step), alpha=self.seconds)
            beside_gain = torch.einsum("bnm,bn->bm", control_matrix, self.value(beside)[1])
            columns.append((w - beside_gain) / step[:, k : k + 1])
        return _semidefinite(torch.stack(columns, 2))


def held_seconds(problem: Problem, reaction_periods: float, step_periods: int = 1) -> float:
    """Seconds that an input acts before the next one can: the reaction time, longer by all but one period of a value
    step of several control periods."""
    return (reaction_periods + (step_periods - 1)) * problem.control_step


def make_policy(
    problem: Problem,
    value: ValueFunction,
    reaction_periods: float = 0.0,
    step_periods: int = 1,
) -> ClosedFormPolicy:
    """The policy of a value function: that of a held input, or the closed form where reaction_periods is 0.

    reaction_periods: control periods that an input acts before the next one can: 1, or 2 with a period of delay.
    step_periods: control periods for which a value step holds the input; 1 outside of training.
    """
    if reaction_periods == 0.0:
        return ClosedFormPolicy(problem)
    return HeldInputPolicy(problem, value, held_seconds(problem, reaction_periods, step_periods))


def _semidefinite(p: Tensor) -> Tensor:
    """A positive semidefinite matrix near the symmetric part of p (N, m, m), which is unchanged where it is one.

    It is L L^T of Cholesky's decomposition, in which negative pivots become 0 and every entry l_ij is clipped to
    |l_ij| <= sqrt(p_ii), the bound that holds in a semidefinite matrix.
    """
    rest, columns = 0.5 * (p + p.mT), []
    for j in range(p.shape[1]):
        root = rest.diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt()
        column = torch.clamp(rest[:, :, j] / root[:, j : j + 1].clamp_min(SMALL), -root, root)
        column[:, :j] = 0.0
        rest = rest - column[:, :, None] * column[:, None, :]
        columns.append(column)
    factor = torch.stack(columns, 2)
    return factor @ factor.mT


def _one_input(cost: TensorActionCost, closed: Tensor, w: Tensor, p: Tensor) -> Tensor:
    """For one input: w - p u (N, 1) with u = grad g~(w - p u), from the closed form grad g~(w) (N, 1).

    The left side of g'(u) + p u = w rises with u, from below w at 0 to above it at the closed form. Newton's method
    finds the root, or bisection where a step leaves what is left of this range, as it may where g' is not convex.
    """
    size, high = w.abs(), closed.abs()
    low, u = torch.zeros_like(high), high
    for _ in range(NEWTON_STEPS):
        first, second = cost.slopes(u)
        excess = first + p * u - size
        above = excess > 0.0
        low, high = torch.where(above, low, u), torch.where(above, u, high)
        step = u - excess / (second + p)
        last, u = u, torch.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        if _converged(u, last):
            break
    return w - p * torch.copysign(u, w)


def _contracted(cost: TensorActionCost, w: Tensor, p: Tensor) -> Tensor:
    """For several inputs: y = w - P u (N, m) with u = grad g~(y), P (N, m, m).

    Every iteration solves (I + P S) y = w with S = diag(u_i/y_i) of the y before. It contracts because every grad g~ is
    concave for positive and convex for negative arguments.
    """
    inputs, right = range(w.shape[1]), list(w.T.contiguous())
    p = p.permute(1, 2, 0).contiguous()
    at = w
    for k in range(1, CONTRACTIONS + 1):
        away = torch.where(at.abs() < SMALL, SMALL, at)
        share = (cost.policy(away) / away).T.contiguous()
        rows = [[p[i, j] * share[j] + 1.0 if i == j else p[i, j] * share[j] for j in inputs] for i in inputs]
        last, at = at, torch.stack(solved(rows, right), 1)
        if k % LOOK == 0 and _converged(at, last):
            break
    return at


def solved(a: list[list[Any]], b: list[Any]) -> list[Any]:
    """x of A x = b by elimination. The entries are tensors (N,), or whatever else has the four operations.

    With a call of LAPACK for each matrix, iterations take twice as long. A is the product of a definite and a
    diagonal matrix, so that no pivots have to be searched.
    """
    a, b, size = [list(row) for row in a], list(b), range(len(b))
    for j in size:
        for i in size[j + 1 :]:
            factor = a[i][j] / a[j][j]
            for k in size[j + 1 :]:
                a[i][k] = a[i][k] - factor * a[j][k]
            b[i] = b[i] - factor * b[j]
    for i in reversed(size):
        for k in size[i + 1 :]:
            b[i] = b[i] - a[i][k] * b[k]
        b[i] = b[i] / a[i][i]
    return b


def _converged(now: Tensor, last: Tensor) -> bool:
    """Whether iterations may end. Only asked of the CPU: another device would have to be waited for."""
    return now.device.type == "cpu" and torch.allclose(now, last, rtol=CONVERGED, atol=0.0)


def require_reaction_periods(periods: float) -> None:
    """SolverError unless the number is within 0 and LONGEST."""
    if not 0.0 <= periods <= LONGEST:
        raise SolverError(
            f"--reaction-periods is {periods}; give the control periods that an input acts before the next one can: 1, "
            f"or 2 with a period of delay; 0 is the closed form, and {LONGEST:g} the most"
        )
