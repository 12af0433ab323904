"""Proof that the basin, or the largest part of it that can be proven, is invariant and contracts in every period.

The proven set is a ball |y| <= radius of y = L' e with L L' = P, the quadratic form of the basin. One period changes y
by c(y), with the derivative F(y). The ball is divided into cells {t d: t in an interval, d in a box of directions}. In
every cell |y + c(y)| <= (1 - rate) |y|:

- next to the target c(y) = F y for the mean F of the derivative along the ray, so that the condition is
  d' (F + F' + F' F + 2 rate - rate^2) d <= 0;
- elsewhere by the mean value theorem about the centre of the cell.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_discrete_lyapunov, solve_triangular

from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.errors import SolverError
from solver.proof.balls import TINY, Balls, norm
from solver.proof.held_loop import HeldLoop

CELLS = 1024  # tested at once
SHORTEST = 2.0**-8  # of the radius: cells at the target are halved along their rays down to this length
HALVINGS = 12  # of the radius
REFINEMENTS = 3  # bisections between the largest proven radius and twice that radius
RATE = 0.1  # proven rate, as a share of the linearised loop's
NARROWEST = 2.0**-12  # a narrower cell is not halved


@dataclass(frozen=True)
class BasinProof:
    """Proven ball of a closed loop: {e: e' S e <= 1} is invariant, and every trajectory in it enters `core`."""

    shape: Array  # (n, n) S; zero rows for states on which nothing depends
    rate: float  # share by which the distance from the target shrinks in one control period, beyond the core
    core: float  # radius of the ball that is reached in the end, as a share of the proven one
    share: float  # volume of the proven ball by that of the basin's
    cells: int  # in the proof
    seconds: float  # processor time


class BasinSearch:
    """Search for the largest provable ball of one loop at its nominal parameters; `prove` then takes other boxes.

    input_error: largest error (m,) of the input that the robot's controller computes. Raises SolverError where the
    linearised closed loop does not contract.
    """

    def __init__(self, loop: HeldLoop, input_error: Array) -> None:
        self.loop, self.input_error = loop, input_error
        n = len(loop.target)
        at_target = loop.period(Balls.exact(np.zeros((1, n))))
        step = np.eye(n) + at_target.matrix.middle[0]
        self.seen = np.flatnonzero(np.abs(loop.cost).max(0) > 0)
        if not at_target.known.all() or not len(self.seen):
            raise SolverError("the run has no basin about an equilibrium, so that there is nothing to prove about it")
        linear = step[np.ix_(self.seen, self.seen)]
        P = loop.cost[np.ix_(self.seen, self.seen)]
        for S in (P, *_lyapunov(linear, P)):
            self.root = cholesky(S, lower=True)  # L of S = L L'
            self.back = np.linalg.inv(self.root).T  # e = L^-T y
            growth = float(np.linalg.norm(self.root.T @ linear @ self.back, 2))
            if growth < 1.0:
                break
        else:
            raise SolverError("the linearised closed loop does not contract at the target")
        self.rate = RATE * (1.0 - growth)
        self.widest = float(np.sqrt(loop.level / np.linalg.eigvalsh(self.back.T @ P @ self.back).max()))
        self.volume = 0.5 * np.linalg.slogdet(P)[1] - len(P) / 2 * np.log(loop.level)

    def largest(self, seconds: float) -> BasinProof | None:
        """The largest ball that is proven within `seconds` of processor time for a radius; None if there is none."""
        good, radius = None, self.widest
        for _ in range(HALVINGS):
            if good := self.prove(radius, seconds):
                break
            radius /= 2
        if good is None:
            return None
        low, high = radius, min(2 * radius, self.widest)
        for _ in range(REFINEMENTS if high > low else 0):
            middle = 0.5 * (low + high)
            if proof := self.prove(middle, seconds):
                good, low = proof, middle
            else:
                high = middle
        return good

    def prove(self, radius: float, seconds: float) -> BasinProof | None:
        """Proof of one ball within `seconds` of processor time, or None."""
        start = time.process_time()
        drift = self._drift()
        if not drift < self.rate * radius:
            return None
        count, waiting = 0, _cells(len(self.seen), radius)
        while len(waiting[0]):
            if time.process_time() - start > seconds:
                return None
            tested, rest = (part[-CELLS:] for part in waiting), [part[:-CELLS] for part in waiting]
            lower, upper = _within(*tested, radius)
            holds, doubt = self._shrinks(lower, upper)
            count += int(holds.sum())
            lower, upper = lower[~holds], upper[~holds]
            if ((upper - lower)[:, 1:].max(1, initial=0.0) < NARROWEST).any():
                return None
            pair = _halved(lower, upper, _sides(lower, upper, doubt[~holds], radius))
            waiting = [np.concatenate([rest[k], pair[0][k], pair[1][k]]) for k in (0, 1)]
        return self._proof(radius, drift, count, time.process_time() - start)

    def _proof(self, radius: float, drift: float, cells: int, seconds: float) -> BasinProof:
        n, S = len(self.loop.target), self.root @ self.root.T / radius**2
        shape = np.zeros((n, n))
        shape[np.ix_(self.seen, self.seen)] = S
        volume = float(np.exp(self.volume - np.linalg.slogdet(S)[1] / 2))
        return BasinProof(shape, self.rate, drift / (self.rate * radius), volume, cells, seconds)

    def _drift(self) -> float:
        """Bound of |y| after one period from the target, with the input error."""
        drift, effect = self.loop.drift()
        error = effect @ Balls(np.zeros_like(self.input_error), self.input_error)
        return float(norm(self._in_y(drift + error)))

    def _in_y(self, error: Balls) -> Balls:
        return Balls.exact(self.root.T) @ error[self.seen]

    def _shrinks(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Whether the motion shrinks in cells (N, 1 + d) of t and d, and the doubt (N, 1 + d) by their sides."""
        cell = Balls.between(lower, upper)
        t, direction = cell[:, :1], cell[:, 1:]
        y = _times(t, direction)
        change, F, known = self._period(y)
        one = Balls.exact(np.eye(len(self.seen)))
        slack = 2 * self.rate
        worst, doubt = _form(F + F.mT + F.mT @ F + one.times(slack), direction)
        doubt = np.hstack([np.zeros_like(worst)[:, None], doubt])
        away = lower[:, 0] > 0
        centre = Balls.exact(y.middle)
        moved, _, _ = self._period(centre)
        value = _dot(moved, moved + centre.times(2.0)) + _dot(centre, centre).times(slack)
        gradient = (change + ((F.mT @ (y + change)[..., None])[..., 0]) + y.times(slack)).times(2.0).largest
        along = (gradient * direction.largest).sum(1) * t.radius[:, 0]
        sides = np.hstack([along[:, None], gradient * t.middle * direction.radius])
        bound = value.upper + sides.sum(1) * (1 + 1e-12)
        holds = known & (np.where(away, bound, worst) <= 0.0)
        doubt[away] = sides[away]
        return holds, doubt

    def _period(self, y: Balls) -> tuple[Balls, Balls, Array]:
        """Change (N, d) of y in one period, its derivative (N, d, d), and whether both are known."""
        count, n = len(y.middle), len(self.loop.target)
        e = Balls(np.zeros((count, n)), np.zeros((count, n)) + self._unseen())
        found = (Balls.exact(self.back) @ y[..., None])[..., 0]
        e.middle[:, self.seen], e.radius[:, self.seen] = found.middle, found.radius
        period = self.loop.period(e)
        rows = period.matrix[:, self.seen]
        unseen = np.setdiff1d(np.arange(n), self.seen)
        known = period.known & (rows[:, :, unseen].largest == 0.0).all((1, 2))
        F = Balls.exact(self.root.T) @ rows[:, :, self.seen] @ Balls.exact(self.back)
        return (Balls.exact(self.root.T) @ period.change[:, self.seen, None])[..., 0], F, known

    def _unseen(self) -> Array:
        """Half widths (n,) of the errors: zero, and the limits of states on which nothing depends."""
        bound = np.where(np.isfinite(self.loop.bound), self.loop.bound, np.pi) - np.abs(self.loop.target)
        bound[self.seen] = 0.0
        return bound


def _form(G: Balls, directions: Balls) -> tuple[Array, Array]:
    """Upper bounds (N,) of d' G d over boxes of directions (N, d), and the share (N, d) of each side in it.

    A bound is negative if all eigenvalues of G are, too.
    """
    centre, radius, size = directions.middle, directions.radius, np.abs(G.middle)
    pulled = np.einsum("nij,nj->ni", G.middle, centre)
    curved = np.einsum("nij,nj->ni", size, radius)
    wide = np.einsum("nij,nj->ni", G.radius, directions.largest)
    sides = (2 * np.abs(pulled) + curved) * radius
    rounding = 1e-13 * size.sum((1, 2))
    value = (pulled * centre).sum(1) + sides.sum(1) + (wide * directions.largest).sum(1) + rounding
    eigenvalue = np.linalg.eigvalsh(G.middle)[:, -1] + G.radius.sum(2).max(1) + rounding
    return np.fmin(value, eigenvalue), sides + wide * radius


def _times(t: Balls, direction: Balls) -> Balls:
    """The products t d (N, d) of t (N, 1) and directions (N, d)."""
    radius = np.abs(t.middle) * direction.radius + t.radius * direction.largest
    middle = t.middle * direction.middle
    return Balls(middle, radius * (1 + 1e-14) + 1e-15 * np.abs(middle) + TINY)


def _dot(a: Balls, b: Balls) -> Balls:
    """The inner products (N,) of vectors (N, d)."""
    return (a[:, None] @ b[..., None])[:, 0, 0]


def _lyapunov(linear: Array, P: Array) -> list[Array]:
    """Quadratic forms that the linearised loop shrinks, for tasks whose discount lets e' P e grow."""
    if not np.abs(np.linalg.eigvals(linear)).max() < 1.0:
        return []
    S = solve_discrete_lyapunov(linear.T, P)
    return [0.5 * (S + S.T)]


def _cells(size: int, radius: float) -> list[Array]:
    """Corners (2 size, 1 + size) of the cells of a ball: t up to the radius, and d on a face of the cube [-1, 1]^size."""
    lower, upper = -np.ones((2 * size, 1 + size)), np.ones((2 * size, 1 + size))
    lower[:, 0], upper[:, 0] = 0.0, radius
    for i in range(size):
        upper[2 * i, 1 + i], lower[2 * i + 1, 1 + i] = -1.0, 1.0
    return [lower, upper]


def _within(lower: Array, upper: Array, radius: float) -> tuple[Array, Array]:
    """The cells, with rays cut off where they leave the ball; without cells outside it."""
    size = np.maximum(np.maximum(lower[:, 1:], -upper[:, 1:]), 0.0)
    upper[:, 0] = np.minimum(upper[:, 0], radius / np.sqrt((size**2).sum(1)) * (1 + 1e-12))
    inside = lower[:, 0] < upper[:, 0]
    return lower[inside], upper[inside]


def _sides(lower: Array, upper: Array, doubt: Array, radius: float) -> NDArray[np.int64]:
    """The side (N,) at which each cell is halved: t while the cell touches the target and is long."""
    width = (upper - lower) * np.hstack([np.ones_like(upper[:, :1]), np.repeat(upper[:, :1], upper.shape[1] - 1, 1)])
    doubt = np.where(np.isfinite(doubt).all(1, keepdims=True), doubt, width)  # nothing is known of a wide cell
    doubt = np.where(upper > lower, doubt + 1e-300, -1.0)
    touches = (lower[:, 0] == 0.0) & (upper[:, 0] > SHORTEST * radius)
    doubt[lower[:, 0] == 0.0, 0] = -1.0
    return np.where(touches, 0, doubt.argmax(1))


def _halved(lower: Array, upper: Array, side: NDArray[np.int64]) -> tuple[list[Array], list[Array]]:
    rows = np.arange(len(side))
    middle = (lower[rows, side] + upper[rows, side]) / 2
    below, above = upper.copy(), lower.copy()
    below[rows, side] = middle
    above[rows, side] = middle
    return [lower, below], [above, upper]
