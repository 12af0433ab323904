"""Proof that the basin, or the largest part of it that can be proven, is invariant and contracts in every period.

The proven set is a ball |y| <= radius of y = L' e with L L' = P, the quadratic form of the basin, or the solution of
Lyapunov's equation of the linearised loop where the loop shrinks e' P e slowly. One period changes y
by c(y, theta). The ball without a small core is divided into cells {t d: t in an interval, d in a box of directions}.
In every cell, and for every theta of the box, the mean value theorem about the centre of the cell and of the box shows

    |y + c|^2 - (1 - rate)^2 |y|^2 <= 0.

Every trajectory from the ball therefore enters the core, and leaves it by no more than one period's motion.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_discrete_lyapunov

from modelgen.arrays import Array
from modelgen.files import page
from solver.errors import SolverError
from solver.proof.balls import TINY, Balls
from solver.proof.held_loop import HeldLoop
from solver.training.solution import load_solution

Mask = NDArray[np.bool_]

CELLS = 1024  # tested at once
CORE = 0.01  # radius of the core, as a share of the radius
HALVINGS = 12  # of the radius
REFINEMENTS = 3  # bisections between the largest proven radius and twice that radius
RATE = 0.1  # proven rate, as a share of the linearised loop's
FLAT = 1e-14  # smallest eigenvalue of P as a share of the largest
SLOW = 0.25  # of the rate of the slowest motion: e' P e that shrinks less is replaced
NARROWEST = 2.0**-12  # a narrower cell is not halved


@dataclass(frozen=True)
class Ball:
    """Proven set of a closed loop: {e: e' S e <= 1} is invariant, and every trajectory from it enters its core."""

    shape: Array  # (n, n) S; zero rows for states on which nothing depends
    rate: float  # share by which the distance from the target shrinks in one control period, beyond the core
    core: float  # radius of the ball that is reached in the end, as a share of the proven one
    share: float  # volume of the proven ball by that of the basin's
    cells: int  # in the proof
    seconds: float  # processor time

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"shape": self.shape.tolist(), "half_widths": self.half_widths.tolist()}

    @property
    def half_widths(self) -> Array:
        """Largest errors (n,) in the set, in SI units; infinite for states on which nothing depends."""
        seen = np.diag(self.shape) > 0
        widths = np.full(len(seen), np.inf)
        widths[seen] = np.sqrt(np.diag(np.linalg.inv(self.shape[np.ix_(seen, seen)])))
        return widths


@dataclass(frozen=True)
class BasinProof:
    """Results of `solver prove`."""

    label: str
    robot: str
    state_names: tuple[str, ...]
    period: float  # s
    input_error: tuple[float, ...]  # (m,) in SI units, assumed
    nominal: Ball | None
    spread: float  # share by which every parameter may differ from its nominal value
    wrong: Ball | None  # for the parameters of the spread

    @property
    def holds(self) -> bool:
        """Whether a set was proven for the nominal robot and for the spread."""
        return self.nominal is not None and self.wrong is not None

    def to_json(self) -> dict[str, Any]:
        """Content of `solver prove --json`."""
        balls = {
            name: None if (ball := getattr(self, name)) is None else ball.to_json() for name in ("nominal", "wrong")
        }
        return vars(self) | balls | {"holds": self.holds}


def prove_basin(
    run: str | Path,
    spread: float = 0.05,
    seconds: float = 60.0,
    input_error: float = 1e-5,
    generated: str | None = None,
) -> BasinProof:
    """Proof about the basin of a run, or of a shipped policy by its name.

    spread: share by which every parameter may differ from its nominal value. seconds: processor time for one ball, of
    which up to about twenty are tried. input_error: bound of the error of the computed input, as a share of the input's
    range; it stands for the rounding of the exported policy. Raises SolverError for a run without a value function or
    without a basin, and where the linearised loop does not contract.
    """
    solution = load_solution(run, generated)
    turning = solution.problem.geometry.rotations
    if turning:
        raise SolverError(
            f"the joint {turning[0].name} of {solution.problem.robot.name} is a rotation; only robots of angles and "
            "lengths can be proven"
        )
    loop = HeldLoop(solution)
    search = BasinSearch(loop, input_error * loop.limit)
    nominal = search.largest(seconds)
    values = loop.nominal.middle
    search.loop = loop.with_parameters(Balls(values, spread * np.abs(values)))
    wrong = search.largest(seconds) if nominal is not None else None
    robot, error = solution.problem.robot, tuple((input_error * loop.limit).tolist())
    return BasinProof(solution.label, robot.name, robot.state_names, loop.step, error, nominal, spread, wrong)


class BasinSearch:
    """Search for the largest provable ball of one loop at its nominal parameters; `prove` then takes other boxes.

    input_error: largest error (m,) of the input that the robot's controller computes.
    """

    def __init__(self, loop: HeldLoop, input_error: Array) -> None:
        self.loop = self.at_centre = loop
        self.input_error = input_error
        n = len(loop.target)
        self.seen = np.flatnonzero(np.abs(loop.cost).max(0) > 0)
        if loop.level == 0.0:
            raise SolverError(f"V of this run has no basin ({page('concepts/basin.md')}); only a basin can be proven")
        at_target = loop.period(Balls.exact(np.zeros((1, n))))
        step = np.eye(n) + at_target.by_error.middle[0]
        if not at_target.known.all():
            raise SolverError(
                "the basin of this run is so small that its policy looks up V outside it, even at the target; train it "
                "with --reaction-periods 0, or with a task whose inputs are stronger"
            )
        linear = step[np.ix_(self.seen, self.seen)]
        P = loop.cost[np.ix_(self.seen, self.seen)]
        if not np.linalg.eigvalsh(P).min() > FLAT * np.linalg.norm(P):
            raise SolverError("the state cost does not see every motion, so that V has no strict maximum at the target")
        eigenvalue = float(np.abs(np.linalg.eigvals(linear)).max())
        if not eigenvalue < 1.0:
            raise SolverError(
                f"the linearised closed loop has an eigenvalue of size {eigenvalue:.6g} at the target, so that errors "
                "do not shrink there; a longer training, or another state cost, may change that"
            )
        growth = 1.0
        for S in (P, _lyapunov(linear, P)):
            if 1.0 - growth < SLOW * (1.0 - eigenvalue):
                self.root = cholesky(S, lower=True)  # L of S = L L'
                self.back = np.linalg.inv(self.root).T  # e = L^-T y
                growth = float(np.linalg.norm(self.root.T @ linear @ self.back, 2))
        self.rate = RATE * (1.0 - growth)
        self.widest = float(np.sqrt(loop.level / np.linalg.eigvalsh(self.back.T @ P @ self.back).max()))
        self.volume = 0.5 * np.linalg.slogdet(P)[1] - len(P) / 2 * np.log(loop.level)

    def largest(self, seconds: float) -> Ball | None:
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

    def prove(self, radius: float, seconds: float) -> Ball | None:
        """Proof of one ball within `seconds` of processor time, or None."""
        start, count = time.process_time(), 0
        if not self._core_stays(radius):
            return None
        waiting = _cells(len(self.seen), CORE * radius, radius)
        while len(waiting[0]):
            if time.process_time() - start > seconds:
                return None
            rest = [part[:-CELLS] for part in waiting]
            lower, upper = _within(waiting[0][-CELLS:], waiting[1][-CELLS:], radius)
            holds, grows, doubt = self._shrinks(lower, upper)
            if grows.any():
                return None
            count += int(holds.sum())
            lower, upper = lower[~holds], upper[~holds]
            if ((upper - lower)[:, 1:].max(1, initial=0.0) < NARROWEST).any():
                return None
            pair = _halved(lower, upper, _sides(lower, upper, doubt[~holds]))
            waiting = [np.concatenate([rest[k], pair[0][k], pair[1][k]]) for k in (0, 1)]
        return self._proof(radius, count, time.process_time() - start)

    def _proof(self, radius: float, cells: int, seconds: float) -> Ball:
        n, S = len(self.loop.target), self.root @ self.root.T / radius**2
        shape = np.zeros((n, n))
        shape[np.ix_(self.seen, self.seen)] = S
        volume = float(np.exp(self.volume - np.linalg.slogdet(S)[1] / 2))
        return Ball(shape, self.rate, CORE, volume, cells, seconds)

    def _shrinks(self, lower: Array, upper: Array) -> tuple[Mask, Mask, Array]:
        """Whether the motion shrinks in cells (N, 1 + d) of t and d, whether it does not at their centres, and the
        doubt (N, 1 + d) by their sides.
        """
        cell = Balls.between(lower, upper)
        t, direction = cell[:, :1], cell[:, 1:]
        y = _times(t, direction)
        change, F, by_theta, by_input, known = self._period(self.loop, y)
        centre = Balls.exact(y.middle)
        moved, *_ = self._period(self.at_centre, centre)
        slack = 2 * self.rate
        value = _dot(moved, moved + centre.times(2.0)) + _dot(centre, centre).times(slack)
        after = y + change
        gradient = (change + (F.mT @ after[..., None])[..., 0] + y.times(slack)).times(2.0).largest
        slopes = (after[:, None] @ by_theta).largest[:, 0] @ self.loop.parameters.radius
        slopes += (after[:, None] @ by_input).largest[:, 0] @ self.input_error
        along = (gradient * direction.largest).sum(1) * t.radius[:, 0]
        sides = np.hstack([along[:, None], gradient * t.middle * direction.radius])
        bound = value.upper + (sides.sum(1) + 2 * slopes) * (1 + 1e-12)
        return known & (bound <= 0.0), value.lower > 0.0, sides

    def _core_stays(self, radius: float) -> bool:
        """Whether no period leads from the core out of the ball."""
        core = np.full((1, len(self.seen)), CORE * radius)
        change, _, _, by_input, known = self._period(self.loop, Balls(np.zeros_like(core), core))
        moved = change.largest + (by_input.largest @ self.input_error[:, None])[..., 0]
        return bool(known.all() and np.linalg.norm(core + moved) < radius)

    def _period(self, loop: HeldLoop, y: Balls) -> tuple[Balls, Balls, Balls, Balls, Mask]:
        """Change (N, d) of y in one period, its derivatives by y, theta and u, and whether they are known."""
        count, n = len(y.middle), len(loop.target)
        e = Balls(np.zeros((count, n)), np.zeros((count, n)) + self._unseen())
        found = (Balls.exact(self.back) @ y[..., None])[..., 0]
        e.middle[:, self.seen], e.radius[:, self.seen] = found.middle, found.radius
        period = loop.period(e)
        root = Balls.exact(self.root.T)
        rows = period.by_error[:, self.seen]
        unseen = np.setdiff1d(np.arange(n), self.seen)
        known = period.known & (rows[:, :, unseen].largest == 0.0).all((1, 2))
        F = root @ rows[:, :, self.seen] @ Balls.exact(self.back)
        by_theta, by_input = root @ period.by_parameters[:, self.seen], root @ period.by_input[:, self.seen]
        return (root @ period.change[:, self.seen, None])[..., 0], F, by_theta, by_input, known

    def _unseen(self) -> Array:
        """Half widths (n,) of the errors: zero, and the limits of states on which nothing depends."""
        bound = np.where(np.isfinite(self.loop.bound), self.loop.bound, np.pi) - np.abs(self.loop.target)
        bound[self.seen] = 0.0
        return np.asarray(bound)


def _times(t: Balls, direction: Balls) -> Balls:
    """The products t d (N, d) of t (N, 1) and directions (N, d)."""
    radius = np.abs(t.middle) * direction.radius + t.radius * direction.largest
    middle = t.middle * direction.middle
    return Balls(middle, radius * (1 + 1e-14) + 1e-15 * np.abs(middle) + TINY)


def _dot(a: Balls, b: Balls) -> Balls:
    """The inner products (N,) of vectors (N, d)."""
    return (a[:, None] @ b[..., None])[:, 0, 0]


def _lyapunov(linear: Array, P: Array) -> Array:
    """A quadratic form that the linearised loop shrinks, for tasks whose discount lets e' P e shrink slowly or grow."""
    S = solve_discrete_lyapunov(linear.T, P)
    return np.asarray(0.5 * (S + S.T))


def _cells(size: int, core: float, radius: float) -> list[Array]:
    """Corners (N, 1 + size) of cells of a ball without its core.

    t is in [radius/2, radius], [radius/4, radius/2], ..., and d is on a face of the cube [-1, 1]^size.
    """
    lower, upper = -np.ones((2 * size, 1 + size)), np.ones((2 * size, 1 + size))
    for i in range(size):
        upper[2 * i, 1 + i], lower[2 * i + 1, 1 + i] = -1.0, 1.0
    ends = [radius]
    while ends[-1] * np.sqrt(size) > core:
        ends.append(ends[-1] / 2)
    shells = []
    for outer, inner in pairwise(ends):
        lower[:, 0], upper[:, 0] = inner, outer
        shells.append((lower.copy(), upper.copy()))
    return [np.concatenate([shell[k] for shell in reversed(shells)]) for k in (0, 1)]


def _within(lower: Array, upper: Array, radius: float) -> tuple[Array, Array]:
    """The cells, with rays cut off where they leave the ball; without cells outside it."""
    size = np.maximum(np.maximum(lower[:, 1:], -upper[:, 1:]), 0.0)
    upper[:, 0] = np.minimum(upper[:, 0], radius / np.sqrt((size**2).sum(1)) * (1 + 1e-12))
    inside = lower[:, 0] < upper[:, 0]
    return lower[inside], upper[inside]


def _sides(lower: Array, upper: Array, doubt: Array) -> NDArray[np.int64]:
    """The side (N,) at which each cell is halved."""
    width = (upper - lower) * np.hstack([np.ones_like(upper[:, :1]), np.repeat(upper[:, :1], upper.shape[1] - 1, 1)])
    doubt = np.where(np.isfinite(doubt).all(1, keepdims=True), doubt, width)  # nothing is known of a wide cell
    sides: NDArray[np.int64] = np.where(upper > lower, doubt + 1e-300, -1.0).argmax(1)
    return sides


def _halved(lower: Array, upper: Array, side: NDArray[np.int64]) -> tuple[list[Array], list[Array]]:
    rows = np.arange(len(side))
    middle = (lower[rows, side] + upper[rows, side]) / 2
    below, above = upper.copy(), lower.copy()
    below[rows, side] = middle
    above[rows, side] = middle
    return [lower, below], [above, upper]
