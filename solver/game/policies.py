"""Policy of a value function for an input under a zero-order hold.

The closed form u = grad g~(B^T dV/dx) is optimal in continuous time (eq. 10). If it is held for h seconds, it
overshoots where V is steep, and the input chatters between its limits. The policy for a held input accounts for the
distance h B d by which the input moves the state in that time, with d = u - u0: the trim u0 holds the robot at the
target. It maximises -h g(u) + V(x + h B d), a proximal step:

    u = grad g~(w(d)),  w(d) = B(x)^T dV/dx(x + h B(x) d)

It tends to the closed form as h goes to zero. The code replaces w(d) by w(0) - P d. The columns of P are slopes of
chords of w, one for each input, from d = 0 to the closed form. They are exact if V is quadratic.

h is the reaction time of the controller. A `Hold` has it, in control periods.

The robot drifts within the hold, too. With `Hold.drift` the policy is the one above, but at the state
x + h (a(x) + B(x) u0) that the trim reaches, with B and dV/dx there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from solver.errors import SolverError
from solver.game import ClosedFormPolicy, Response
from solver.problem import Problem
from solver.problem.action_cost import TensorActionCost
from solver.value.features import times
from solver.value.frozen import ValueFunction

BISECTIONS = 24  # in the C source: they reduce the range of an input to the digits of float32
NEWTON_STEPS = 10  # most iterations for one input
CONTRACTIONS = 50  # most iterations for several inputs
CHECK_EVERY = 5  # iterations for several inputs between two tests for convergence
CONVERGED = 1e-5  # at which the iterations end: relative change for one input, relative error for several
SMALL = 1e-9  # keeps divisions by an argument or a pivot finite
LARGEST_REACTION = 100.0  # control periods
SHORTEST = 0.02  # of the input limit, length of a chord: differences over a shorter one are rounding noise


class HeldInputPolicy(ClosedFormPolicy):
    """Policy of an input that is held for `seconds`. A call evaluates the gradient of `value` m times.

    drift: whether it counts on the drift within the hold, which takes one evaluation more.
    """

    def __init__(self, problem: Problem, value: ValueFunction, seconds: float, drift: bool = False) -> None:
        super().__init__(problem)
        self.value, self.seconds, self.drift = value, seconds, drift

    def respond(self, x: Tensor, costate: Tensor) -> Response:
        """As in the base class. w is that of the states x also with the drift."""
        if not self.drift:
            return super().respond(x, costate)
        u, cost, _ = super().respond(*self._drifted(x))
        return Response(u, cost, times(costate, self._control_matrix(x)))

    def argument(self, x: Tensor, costate: Tensor) -> Tensor:
        """As in the base class."""
        return super().argument(*(self._drifted(x) if self.drift else (x, costate)))

    def _drifted(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (N, n + k) that the trim reaches within the hold, by Euler's method, and dV/dx (N, n) there."""
        states, theta = self.problem.split(x)
        drift, control_matrix = self.problem.robot.affine_dynamics(states, theta)
        trim = self.problem.cost_at(x).trim.expand(len(x), -1)
        rate = drift + torch.einsum("bnm,bm->bn", control_matrix, trim)
        moved = self.problem.geometry.normalised(torch.add(states, rate, alpha=self.seconds))
        rows = self.problem.join(moved, x)
        return rows, self.value(rows)[1]

    def _argument(self, x: Tensor, control_matrix: Tensor, w: Tensor, cost: TensorActionCost) -> Tensor:
        """w(d) (N, m) with u = u0 + d = grad g~(w(d)), from w = w(0) (N, m)."""
        closed = cost.policy(w) - cost.trim
        return solved_argument(cost, closed, w, self._slope(closed, x, control_matrix, w))

    def equation(self, x: Tensor, costate: Tensor) -> tuple[Tensor, Tensor | None]:
        """w (N, m) and P (N, m, m)."""
        if self.drift:
            x, costate = self._drifted(x)
        control_matrix = self._control_matrix(x)
        w = times(costate, control_matrix)
        cost = self.problem.cost_at(x)
        return w, self._slope(cost.policy(w) - cost.trim, x, control_matrix, w)

    def _slope(self, closed: Tensor, x: Tensor, control_matrix: Tensor, w: Tensor) -> Tensor:
        """P = -dw/dd (N, m, m), made symmetric and positive semidefinite, as it is for a concave V."""
        columns, (states, _) = [], self.problem.split(x)
        steps = torch.copysign(torch.maximum(closed.abs(), SHORTEST * self.problem.input_limits), closed)
        for k in range(w.shape[1]):
            step = steps[:, k : k + 1]
            moved = torch.add(states, control_matrix[:, :, k] * step, alpha=self.seconds)
            w_moved = times(self.value(self.problem.join(moved, x))[1], control_matrix)
            columns.append((w - w_moved) / step)
        return _semidefinite(torch.stack(columns, 2))


@dataclass(frozen=True)
class Hold:
    """The hold of an input that a policy counts on."""

    periods: float = 0.0  # control periods until the next input acts: 1, or 2 with a period of delay; 0: closed form
    drift: bool = False  # whether it counts on the drift within the hold

    def seconds(self, problem: Problem, step_periods: int = 1) -> float:
        """Hold h in seconds; 0 of the closed form.

        step_periods: control periods for which a value step holds the input, 1 outside of training. Those beyond the
        first add to the hold.
        """
        return (self.periods + (step_periods - 1)) * problem.control_step if self.periods else 0.0

    def policy(self, problem: Problem, value: ValueFunction, step_periods: int = 1) -> ClosedFormPolicy:
        """Policy of a value function. step_periods: as in `seconds`."""
        seconds = self.seconds(problem, step_periods)
        return HeldInputPolicy(problem, value, seconds, self.drift) if seconds else ClosedFormPolicy(problem)


CLOSED_FORM = Hold()


def _semidefinite(p: Tensor) -> Tensor:
    """Positive semidefinite matrix near the symmetric part of p (N, m, m); the symmetric part if it is semidefinite.

    It is L L^T of a Cholesky decomposition in which negative pivots become 0, and every entry l_ij is clipped to
    |l_ij| <= sqrt(p_ii), the bound that holds in a semidefinite matrix.
    """
    if p.shape[1] == 1:
        return p.clamp_min(0.0)
    rest, columns = 0.5 * (p + p.mT), []
    for j in range(p.shape[1]):
        pivots = rest.diagonal(dim1=1, dim2=2)
        root = pivots.clamp_min(0.0).sqrt() if not pivots.requires_grad else _root(pivots)
        column = torch.clamp(rest[:, :, j] / root[:, j : j + 1].clamp_min(SMALL), -root, root)
        column[:, :j] = 0.0
        rest = rest - column[:, :, None] * column[:, None, :]
        columns.append(column)
    factor = torch.stack(columns, 2)
    return factor @ factor.mT


def _root(pivots: Tensor) -> Tensor:
    """Square roots, and 0 with the slope 0 for numbers that are not positive."""
    positive = pivots > 0.0
    return torch.where(positive, torch.where(positive, pivots, 1.0).sqrt(), 0.0)


def solved_argument(cost: TensorActionCost, closed: Tensor, w: Tensor, p: Tensor) -> Tensor:
    """Argument y (N, m) with y = w - P (grad g~(y) - u0), with P (N, m, m). closed: grad g~(w) - u0 (N, m)."""
    return _one_input(cost, closed, w, p[:, 0]) if w.shape[1] == 1 else _contracted(cost, w, p)


def _one_input(cost: TensorActionCost, closed: Tensor, w: Tensor, p: Tensor) -> Tensor:
    """Argument w - p d (N, 1) of one input u0 + d = grad g~(w - p d). closed: grad g~(w) - u0 (N, 1).

    The left side of g'(u0 + d) + p d = w increases with d. For a positive w, it is below w at d = 0 and above w at the
    closed form. Newton's method finds the size of d, which has the sign of w. A step that leaves the
    remaining range, possible where g' is not convex, becomes a bisection.
    """
    size, high = w.abs(), closed.abs()
    low, d, side = torch.zeros_like(high), high, torch.copysign(torch.ones_like(w), w)
    for _ in range(NEWTON_STEPS):
        first, second = cost.slopes(cost.trim + side * d)
        excess = side * first + p * d - size
        above = excess > 0.0
        low, high = torch.where(above, low, d), torch.where(above, d, high)
        step = d - excess / (second + p)
        last, d = d, torch.where((step >= low) & (step <= high), step, 0.5 * (low + high))
        if _negligible(d - last, last):
            break
    return w - p * (side * d)


def _contracted(cost: TensorActionCost, w: Tensor, p: Tensor) -> Tensor:
    """Argument y = w - P d (N, m) of several inputs u0 + d = grad g~(y), with P (N, m, m).

    Every iteration solves (I + P S) y = w with S = diag(d_i/y_i) at the previous y. Without a trim it is a contraction,
    because grad g~ is concave for positive arguments and convex for negative ones. With one, it is a contraction where
    the slope of grad g~ is less than twice that of the chord from the trim.
    """
    inputs, right = range(w.shape[1]), list(w.T.contiguous())
    p, at = p.permute(1, 2, 0).contiguous(), w
    for k in range(CONTRACTIONS):
        away = torch.where(at.abs() < SMALL, SMALL, at)
        u = cost.policy(away)
        d = (u - cost.trim).T
        if k and k % CHECK_EVERY == 0:  # of the equation, because an input at its limit stands still before y does
            terms = w.T.abs() + (p.abs() * (u.abs() + cost.trim.abs()).T).sum(1)
            if _negligible(at.T + (p * d).sum(1) - w.T, terms):
                break
        share = (d / away.T).contiguous()
        rows = [[p[i, j] * share[j] + 1.0 if i == j else p[i, j] * share[j] for j in inputs] for i in inputs]
        at = torch.stack(solved(rows, right), 1)
    return at


def solved(a: list[list[Any]], b: list[Any]) -> list[Any]:
    """Solution x of A x = b by Gaussian elimination. The entries are tensors (N,), or other objects with + - * /.

    The iterations take half as long as with a batched call of LAPACK. A is the product of a definite and a diagonal
    matrix, so elimination needs no pivoting.
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


def _negligible(error: Tensor, size: Tensor) -> bool:
    """Whether an error is CONVERGED of a size or less in all entries.

    Always False on a GPU: to read the answer would wait for the device.
    """
    return error.device.type == "cpu" and bool((error.abs() <= CONVERGED * size.abs()).all())


def require_reaction_periods(periods: float) -> None:
    """Raises SolverError unless 0 <= periods <= LARGEST_REACTION."""
    if not 0.0 <= periods <= LARGEST_REACTION:
        raise SolverError(
            f"--reaction-periods is {periods}; give the control periods until the next input acts, from 0 to "
            f"{LARGEST_REACTION:g}: 1, or 2 with a period of delay; 0 is the closed form"
        )
