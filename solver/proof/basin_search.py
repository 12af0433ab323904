"""Search for the largest ball of errors that is proven to be invariant and to contract in every period.

The ball is |y| <= radius of the errors e = back y. `period` writes one period as y -> (1 + C) y. The matrix C depends
on few quantities: the states by which the robot is not linear, the sizes of w, and the parameters. The set of these is
cut into cells, which `judgement` decides or halves. So |y| shrinks by the rate from everywhere, but for a disturbance:
the moved target of a wrong robot, and the error of the input. Its norm by the rate is the radius of the core that is
reached in the end.

Which ball can be proven in a given time is estimated first, by random cells of each level of the tree (Knuth,
Mathematics of Computation 29, 1975; P. Chen, SIAM J. Comput. 21, 1992).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_discrete_lyapunov
from scipy.optimize import minimize
from scipy.special import logsumexp

from modelgen.arrays import Array
from modelgen.files import page
from solver.errors import SolverError
from solver.proof import EMPTY, HELD, Tree
from solver.proof.held_loop import Frame, HeldLoop
from solver.proof.judgement import judge
from solver.proof.period import Cells, one_period

CELLS = 512  # tested at once
SHARES = 0.0, 0.1, 0.3, 1.0, 3.0, 10.0  # of the second form in the metrics that are tried
TRIALS = 4  # balls to prove; one that takes too long is offered again, with SHRINKING times its radius
SHRINKING = 0.85
SAMPLED = 256  # cells of each level of the tree, which tell how many it has
AIM = 0.7  # of the time that the cells of an offered ball take, by what they tell
REFINEMENTS = 5  # bisections of its radius
RATE = 0.1  # proven rate, as a share of the linearised loop's
CORNERS = 64  # of the parameters' box, that show the linearised loops and the disturbance
SHARPNESS = 300.0  # of the largest growth among them, as a smooth function of the metric
SAMPLES = 128  # states that show whether a ball is worth a proof
NEAR = 0.01  # factor of the radius of a quarter of them: there the loop is linear
SCREENINGS = 8  # of radii by samples
SMALL = 1e-4  # half width of their cells, as a share of the ball
PUSHED = 1.3  # proven rate by the disturbance at the target, at least
FLAT = 1e-14  # smallest eigenvalue of P as a share of the largest
LEAST = 1e-9  # rate of the slowest motion that counts as none
NARROWEST = 2.0**-16  # a narrower side is not halved


@dataclass(frozen=True)
class Ball:
    """Proven set of a closed loop: {e: e' S e <= 1} is invariant, and every trajectory from it enters its core."""

    shape: Array  # (n, n) S; zero rows for states on which nothing depends
    rate: float  # share by which the distance from the target shrinks in one control period, beyond the core
    core: float  # radius of the ball that is reached in the end, as a share of the proven one
    share: float  # volume of the proven ball by that of the basin's
    cells: int  # in the proof
    seconds: float  # processor time
    back: Array  # (n, d): e = back y, and the set is |y| <= 1
    basis: Array  # (d, r) of the cells
    tree: list[int]  # of the cells, as in `solver.proof`

    def to_json(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("rate", "core", "share", "cells", "seconds")}
        widths = [width if np.isfinite(width) else None for width in self.half_widths.tolist()]  # JSON has no infinity
        return {"shape": self.shape.tolist()} | kept | {"half_widths": widths}

    def claim(self, spread: Sequence[float]) -> dict[str, Any]:
        """The ball as a claim of a file, for parameters within the spread (p,), shares of their nominal values."""
        arrays = {name: getattr(self, name).tolist() for name in ("shape", "back", "basis")}
        return {"spread": list(spread)} | arrays | {"rate": self.rate, "core": self.core, "tree": self.tree}

    @classmethod
    def of_claim(cls, claim: dict[str, Any], loop: HeldLoop) -> Ball:
        """The ball of a claim, which took no time."""
        shape, back, basis = (np.array(claim[name]) for name in ("shape", "back", "basis"))
        P, S = (form[np.ix_(loop.seen, loop.seen)] for form in (loop.cost / loop.level, shape))
        share, cells = float(np.sqrt(np.linalg.det(P) / np.linalg.det(S))), claim["tree"].count(HELD)
        return cls(shape, claim["rate"], claim["core"], share, cells, 0.0, back, basis, claim["tree"])

    @property
    def half_widths(self) -> Array:
        """Largest errors (n,) in the set, in SI units; infinite for states on which nothing depends."""
        seen = np.diag(self.shape) > 0
        widths = np.full(len(seen), np.inf)
        widths[seen] = np.sqrt(np.diag(np.linalg.inv(self.shape[np.ix_(seen, seen)])))
        return widths


class BasinSearch:
    """Search for the largest provable ball of one loop, for parameters within `spread` (p,) of the nominal ones.

    input_error: largest error (m,) of the input that the robot's controller computes.
    """

    def __init__(self, loop: HeldLoop, input_error: Array) -> None:
        self.loop, self.input_error = loop, input_error
        n, seen = len(loop.target), loop.seen
        if loop.level == 0.0:
            raise SolverError(f"V of this run has no basin ({page('concepts/basin.md')}); only a basin can be proven")
        P = loop.cost[np.ix_(seen, seen)]
        if not np.linalg.eigvalsh(P).min() > FLAT * np.linalg.norm(P):
            raise SolverError("the state cost does not see every motion, so that V has no strict maximum at the target")
        if not loop.closed:
            raise SolverError("the motion depends on a state that V does not see, so that no ball of it shrinks")
        one = np.zeros((n, len(seen)))
        one[seen, np.arange(len(seen))] = 1.0
        small = 1e-9 * float(np.sqrt(loop.level / np.linalg.norm(P)))
        frame = loop.frame(one)
        at_target = one_period(loop, self.box(np.zeros(len(loop.nominal)), small, frame), frame, small, 0 * input_error)
        if not at_target.known.all():
            raise SolverError(
                "the basin of this run is so small that its policy looks up V outside it, even at the target; train it "
                "with --reaction-periods 0, or with a task whose inputs are stronger"
            )
        linear = np.eye(len(seen)) + at_target.change.middle[0]
        eigenvalue = float(np.abs(np.linalg.eigvals(linear)).max())
        if not eigenvalue < 1.0 - LEAST:
            raise SolverError(
                f"the linearised closed loop has an eigenvalue of size {eigenvalue:.6g} at the target, so that errors "
                "do not shrink there; a longer training, or another state cost, may change that"
            )
        self.linear, self.P, self.one = linear, P, one
        self.aim(np.zeros(len(loop.nominal)))

    def corners(self, spread: Array) -> Array:
        """Parameters (CORNERS, p): the nominal ones, and random corners of their box."""
        signs = np.random.default_rng(1).choice([-1.0, 1.0], (CORNERS, len(spread)))
        signs[0] = 0.0
        return np.asarray(self.loop.nominal + spread * signs)

    def aim(self, spread: Array) -> None:
        """Choose the second form (d, d) of the metrics for parameters within `spread` (p,) of the nominal ones.

        It is a form that the linearised loops of all corners shrink, as P need not do: its discount lets e' P e shrink
        slowly, and it knows the nominal robot only. Raises SolverError if one of these loops is unstable.
        """
        self.loops, d = self.linear[None], len(self.P)
        if spread.any():
            frame, theta = self.loop.frame(self.one), self.corners(spread)
            cells, still = np.hstack([np.zeros((CORNERS, frame.basis.shape[1])), theta]), 0.0 * self.input_error
            small = 1e-9 * float(np.sqrt(self.loop.level / np.linalg.norm(self.P)))
            self.loops = np.eye(d) + one_period(self.loop, Cells(cells, cells), frame, small, still).change.middle
        largest = float(np.abs(np.linalg.eigvals(self.loops)).max())
        if not largest < 1.0 - LEAST:
            raise SolverError(
                f"the linearised closed loop of a robot within the spread has an eigenvalue of size {largest:.6g}: it "
                "is unstable, so that nothing can be proven. Give a smaller --spread"
            )
        form = solve_discrete_lyapunov(self.linear.T, self.P)  # shrinks by e' P e in every period
        self.second = 0.5 * (form + form.T)
        if spread.any():
            self.second = _common(self.loops, self.second)
        self.second *= np.trace(np.linalg.solve(self.second, self.P)) / d
        self.shape(0.0)

    def growth(self, S: Array) -> float:
        """Largest norm of the linearised periods in the metric S (d, d)."""
        root = cholesky(S, lower=True).T
        return float(np.linalg.norm(root @ self.loops @ np.linalg.inv(root), 2, (1, 2)).max())

    def shape(self, share: float) -> None:
        """Let balls be those of the metric P + share second: y' y = e' S e with e = back y."""
        S = self.P + share * self.second
        self.back = self.one @ np.linalg.inv(cholesky(S, lower=True)).T
        self.frame = self.loop.frame(self.back)
        seen = self.back[self.loop.seen]
        self.rate = RATE * (1.0 - self.growth(S))
        self.widest = float(np.sqrt(self.loop.level / np.linalg.eigvalsh(seen.T @ self.P @ seen).max()))
        # volume of the ball of radius 1 by that of the basin
        self.volume = float(np.linalg.slogdet(seen)[1] + 0.5 * np.linalg.slogdet(self.P)[1])
        self.volume -= 0.5 * len(seen) * float(np.log(self.loop.level))

    def box(self, spread: Array, radius: float, frame: Frame) -> Cells:
        """One cell that holds the whole ball."""
        reach = np.full(frame.basis.shape[1], radius * (1 + 1e-12))
        nominal = self.loop.nominal
        ends = np.concatenate([-reach, nominal - spread]), np.concatenate([reach, nominal + spread])
        return Cells(ends[0][None], ends[1][None])

    def largest(self, spread: Array, seconds: float) -> Ball | None:
        """The largest ball that is proven within `seconds` of processor time; None if there is none.

        Samples of further metrics end after `seconds`, and estimates of their balls after twice as many.

        spread: (p,) by which parameters may differ.
        """
        self.aim(spread)
        start = time.process_time()
        most: list[tuple[float, float, float]] = []  # volumes, shares of the second form, and radii of samples
        for share in SHARES:
            if most and time.process_time() - start > seconds:
                break
            self.shape(share)
            if self.rate > 0 and (radius := self.sampled(spread)):
                most.append((self.volume + len(self.P) * np.log(radius), share, radius))
        offers: list[tuple[float, float, float]] = []  # logarithms of volumes, which grow, shares and radii
        for volume, share, radius in sorted(most, reverse=True):
            if offers and time.process_time() - start > 2 * seconds:
                break
            self.shape(share)
            least = offers[-1][0] if offers else -np.inf
            if volume > least and (offered := self._offered(radius, least, spread, AIM * seconds)):
                offers.append((self.volume + len(self.P) * np.log(offered), share, offered))
        for _ in range(TRIALS if offers else 0):
            volume, share, radius = offers.pop(offers.index(max(offers)))
            self.shape(share)
            if proof := self.prove(radius, spread, seconds):
                return proof
            offers.append((volume + len(self.P) * np.log(SHRINKING), share, SHRINKING * radius))
        return None

    def _offered(self, most: float, volume: float, spread: Array, seconds: float) -> float:
        """The largest radius in this metric, up to `most`, whose cells should take `seconds` of processor time.

        0 if none has more than a volume, given by its logarithm.
        """
        if np.isfinite(self.estimated(most, spread, seconds)):
            return most
        low, high = float(np.exp((volume - self.volume) / len(self.P))), most
        if low > 0 and np.isinf(self.estimated(low, spread, seconds)):
            return 0.0
        for _ in range(REFINEMENTS):
            middle = float(np.sqrt(low * high)) if low > 0 else 0.5 * high
            if np.isfinite(self.estimated(middle, spread, seconds)):
                low = middle
            else:
                high = middle
        return low

    def estimated(self, radius: float, spread: Array, seconds: float) -> float:
        """Number of cells in the tree of a proof; infinite if one gets too narrow, or if they take more than `seconds`.

        A level of the tree with more than SAMPLED cells is known by as many random ones.
        """
        generator, start, judged, cells_known = np.random.default_rng(0), time.process_time(), 0, 0.0
        rate, whole = self.needed(radius, spread), self.box(spread, radius, self.frame)
        cells, weight = whole, 1.0
        while len(cells):
            found = judge(self.loop, self.frame, cells, radius, rate, self.input_error)
            judged, cells_known = judged + len(cells), cells_known + weight * len(cells)
            left = ~(found.holds | found.empty)
            least = cells_known + 2 * weight * float(left.sum())
            late = least * (time.process_time() - start) / judged > seconds
            if late or self._narrow(cells[left], found.side[left], whole):
                return np.inf
            cells = _halved(cells[left], found.side[left])
            if len(cells) > SAMPLED:
                weight *= len(cells) / SAMPLED
                cells = cells[generator.choice(len(cells), SAMPLED, replace=False)]
        return cells_known

    def _narrow(self, cells: Cells, side: NDArray[np.int64], whole: Cells) -> bool:
        """Whether a side (N,) of a cell is too narrow to be halved."""
        width = (cells.upper - cells.lower)[np.arange(len(side)), side]
        return bool((width < NARROWEST * (whole.upper - whole.lower)[0, side]).any())

    def prove(self, radius: float, spread: Array, seconds: float) -> Ball | None:
        """Proof of one ball within `seconds` of processor time, or None."""
        start, count, pushed = time.process_time(), 0, 0.0
        rate, whole = self.needed(radius, spread), self.box(spread, radius, self.frame)
        waiting, ids, tree = whole, np.zeros(1, np.int64), Tree()
        while len(waiting):
            if time.process_time() - start > seconds:
                return None
            now, rest = waiting[-CELLS:], waiting[:-CELLS]
            at, ids = ids[-CELLS:], ids[:-CELLS]
            judged = judge(self.loop, self.frame, now, radius, rate, self.input_error)
            pushed = max(pushed, float(judged.disturbance[judged.holds].max(initial=0.0)))
            count += int(judged.holds.sum())
            left = ~(judged.holds | judged.empty)
            if self._narrow(now[left], judged.side[left], whole) or pushed > rate * radius:
                return None
            waiting = _joined(rest, _halved(now[left], judged.side[left]))
            decided = np.where(judged.empty, EMPTY, HELD)
            ids = np.concatenate([ids, tree.decide(at, np.where(left, judged.side, decided))])
        core = pushed / rate / radius
        return self._proof(radius, rate, core, count, time.process_time() - start, tree.walk())

    def needed(self, radius: float, spread: Array) -> float:
        """The rate to prove: RATE of the linearised loop's, or what keeps the disturbances from leaving the ball.

        Those are of random corners of the parameters' box.
        """
        middle = np.hstack([np.zeros((CORNERS, self.frame.basis.shape[1])), self.corners(spread)])
        period = one_period(self.loop, Cells(middle, middle), self.frame, radius, self.input_error)
        return max(self.rate, PUSHED * float(period.disturbance.max()) / radius)

    def sampled(self, spread: Array) -> float:
        """The largest radius at which small cells about random states and parameters hold: more cannot be proven."""
        generator, d = np.random.default_rng(0), self.back.shape[1]
        r = self.frame.basis.shape[1]
        y = generator.normal(size=(SAMPLES, d))
        y *= generator.uniform(0.3, 1.0, (SAMPLES, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
        y[: SAMPLES // 4] *= NEAR
        theta = self.loop.nominal + spread * generator.choice([-1.0, 1.0], (SAMPLES, len(spread)))
        low, high, radius = 0.0, self.widest, self.widest * (1 - 1e-4)
        for _ in range(SCREENINGS):
            width = SMALL * self._reach(radius)
            width[r:] = 0.0
            middle = np.hstack([radius * y @ self.frame.basis, theta])
            cells = Cells(middle - width, middle + width)
            if judge(self.loop, self.frame, cells, radius, self.needed(radius, spread), self.input_error).holds.all():
                low = radius
                if high == self.widest:
                    break
            else:
                high = radius
            radius = 0.5 * (low + high)
        return low

    def _reach(self, radius: float) -> Array:
        reach = np.concatenate([np.full(self.frame.basis.shape[1], radius), np.abs(self.loop.nominal)])
        return np.where(reach > 0, reach, 1.0)

    def _proof(self, radius: float, rate: float, core: float, cells: int, seconds: float, tree: list[int]) -> Ball:
        n, seen = len(self.loop.target), self.loop.seen
        forth = np.linalg.inv(self.back[seen]) / radius
        shape = np.zeros((n, n))
        shape[np.ix_(seen, seen)] = forth.T @ forth
        volume = float(np.exp(self.volume + len(seen) * np.log(radius)))
        return Ball(shape, rate, core, volume, cells, seconds, radius * self.back, self.frame.basis, tree)


def _common(loops: Array, start: Array) -> Array:
    """A form (d, d) that all of the linear maps (N, d, d) shrink as fast as possible; `start` has their size."""
    root, d = cholesky(start, lower=True).T, len(start)
    maps, places = root @ loops @ np.linalg.inv(root), np.tril_indices(d)

    def factor(entries: Array) -> Array:
        found = np.zeros((d, d))
        found[places] = entries
        np.fill_diagonal(found, np.exp(np.diag(found)))
        return found

    def growth(entries: Array) -> float:
        turn = factor(entries)
        norms = np.linalg.norm(turn @ maps @ np.linalg.inv(turn), 2, (1, 2)) ** 2
        return float(logsumexp(SHARPNESS * norms)) / SHARPNESS

    best = factor(minimize(growth, np.zeros(len(places[0])), method="BFGS", options={"maxiter": 100}).x)
    return np.asarray(root.T @ best.T @ best @ root)


def _halved(cells: Cells, side: NDArray[np.int64]) -> Cells:
    rows = np.arange(len(side))
    middle = (cells.lower[rows, side] + cells.upper[rows, side]) / 2
    below, above = cells.upper.copy(), cells.lower.copy()
    below[rows, side] = middle
    above[rows, side] = middle
    return _joined(Cells(cells.lower, below), Cells(above, cells.upper))


def _joined(a: Cells, b: Cells) -> Cells:
    return Cells(np.concatenate([a.lower, b.lower]), np.concatenate([a.upper, b.upper]))
