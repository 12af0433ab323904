"""Independent check that every trajectory from a level set of the networks' V enters a proven ellipsoid.

A cell of the set is fine if V grows in one control period from all of its states. The difference of V is a polynomial
in the symbols of the cell, of the parameters and of the input's error (`noise`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof import HELD, Equations, leaves
from solver.proof.balls import ROUNDING, SMALLEST, Array, Mask
from solver.proof.closed_loop import ClosedLoop, combined, inverse_of
from solver.proof.noise import Value
from solver.proof.sampled_loop import SHORTEST, domain_of, stored_networks
from solver.proof.taylor import Dual, Model, influences, inverse, most, summed

BATCH = 192  # cells at once
DEEPEST = 12  # halvings of a cell of the file


@dataclass(frozen=True)
class LevelChecked:
    """Result for the level set of a claim."""

    cells: int
    checked: int
    wrong: int  # cells that could not be shown
    seconds: float


def level_check(
    proof: dict[str, Any], equations: Equations, checkpoint: Path, claim: dict[str, Any], one_in: int, seed: int
) -> LevelChecked:
    """Result for a random one of `one_in` cells of the level set of a claim, or for all with 1.

    Raises SolverError for an ill-formed set, and for robots or networks that the check does not know.
    """
    start, found = time.process_time(), LevelSet(proof, equations, checkpoint, claim)
    n, half = len(found.half), found.half
    low, high, marks = leaves(claim["level_set"]["tree"], -half, half, n, n)
    chosen = np.random.default_rng(seed).integers(one_in, size=len(marks)) == 0
    chosen[0] |= not chosen.any()
    wrong, rows = 0, np.flatnonzero(chosen)
    for at in np.array_split(rows, math.ceil(len(rows) / BATCH)):
        wrong += int((~found.holds(low[at], high[at], marks[at] == HELD)).sum())
        if wrong:
            break
    return LevelChecked(len(marks), len(rows), wrong, time.process_time() - start)


class LevelSet:
    """A set of states whose V is not below a level, and one control period of the policy from them."""

    def __init__(self, proof: dict[str, Any], equations: Equations, checkpoint: Path, claim: dict[str, Any]) -> None:
        self.loop, self.about = ClosedLoop(proof, equations, claim), claim["level_set"]
        n, self.target, self.bound = self.loop.n, self.loop.target, self.loop.bound
        self.half, self.level = np.array(self.about["half"], float), float(self.about["level"])
        self.back, self.shape = np.array(self.about["back"], float), np.array(claim["shape"], float)
        self.spread = np.array(claim["spread"], float)
        self._require(n)
        self.forth = inverse_of(self.back)
        self.hold, self.cost, self.basin = float(proof["hold"]), np.array(proof["cost"]), float(proof["level"])
        numbers = ("trim", "middle", "limit", "input_error")
        self.trim, self.middle, self.limit, self.error = (float(proof[name][0]) for name in numbers)
        target, bound = tuple(self.target), tuple(self.bound)
        self.value = Value(stored_networks(checkpoint, proof["checkpoint"], target, bound))
        self.around = domain_of(self.target, self.bound)[2]
        self.turned = 2 * np.pi - np.sqrt(self.basin * np.diag(np.linalg.inv(self.cost))) * (1 + 1e-4)
        self.wide = np.flatnonzero(self.spread > 0)
        self.symbols = n + len(self.wide) + 1  # of the sides, of parameters, and of the input

    def _require(self, n: int) -> None:
        """Raises SolverError for an ill-formed set."""
        if self.loop.m != 1 or len(self.loop.seen) < n or not self.loop.policy.hold or not self.loop.policy.level > 0:
            raise SolverError("the check of level sets knows robots of one input that is held, with a full basin")
        known = self.half.shape == (n,) and self.back.shape == (n, n) and self.shape.shape == (n, n)
        if not known or not np.isfinite(self.back).all() or not (np.isfinite(self.half) & (self.half > 0)).all():
            raise SolverError("the proof is wrong: the cells of its level set have no size")
        if not 0 < self.level < np.inf or self.spread.shape != self.loop.nominal.shape or not (self.spread >= 0).all():
            raise SolverError("the proof is wrong: its level set has no level, or is of no robots")

    def holds(self, low: Array, high: Array, held: Mask) -> Mask:
        """Whether (N,) the claim is shown in cells (N, n), until one is not, by halving each `DEEPEST` times at most.

        held: cells in which V may grow; the others have to be outside the set, or in the ellipsoid.
        """
        at, left, fine = np.arange(len(low)), np.full(len(low), DEEPEST), np.ones(len(low), bool)
        while len(low) and fine.all():
            first = max(len(low) - BATCH, 0)
            shown, side = self.shown(low[first:], high[first:], held[at[first:]])
            rows = first + np.flatnonzero(~shown)
            side = side[~shown]
            fine[at[rows[left[rows] == 0]]] = False
            middle, below, above = 0.5 * (low[rows, side] + high[rows, side]), high[rows], low[rows]
            below[np.arange(len(rows)), side] = above[np.arange(len(rows)), side] = middle
            low, high = (
                np.concatenate(p) for p in ((low[:first], low[rows], above), (high[:first], below, high[rows]))
            )
            at, left = (np.concatenate([p[:first], p[rows] - k, p[rows] - k]) for k, p in enumerate((at, left)))
        return fine

    @np.errstate(all="ignore")  # nothing is known of a wide cell, and what is not finite is not shown
    def shown(self, low: Array, high: Array, held: Mask) -> tuple[Mask, NDArray[np.int64]]:
        """Whether the claim holds in cells (N, n), and the side to halve where it does not."""
        e = self.errors(low, high)
        shown, side = self._outside(e) | self._in_ellipsoid(low, high), (high - low).argmax(1)
        rows = np.flatnonzero(~shown)
        if not len(rows):
            return shown, side
        x = self.states([number.rows(rows) for number in e])
        b = self.control(x)
        value, w = self.value(x, b, self.symbols)
        shown[rows] = most(value) < -self.level
        side[rows] = self._worst(value, side[rows])
        left = np.flatnonzero(~shown[rows] & held[rows])
        if len(left):
            rows, x, b = rows[left], [number.rows(left) for number in x], [number.rows(left) for number in b]
            shown[rows], side[rows] = self.grows(x, b, value.rows(left), w.rows(left))
        return shown, side

    def _worst(self, number: Model, other: NDArray[np.int64]) -> NDArray[np.int64]:
        """The side that moves a number most, or another one where nothing is known of it."""
        sides = influences(number)[: len(self.half)].argmax(0)
        return np.where(np.isfinite(number.bend), sides, other)

    def errors(self, low: Array, high: Array) -> list[Model]:
        """Errors (n,) of cells (N, n)."""
        middle, half, n = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-12), len(self.half)
        none = np.zeros(len(low))
        y = [
            Model.linear(
                middle[:, i],
                [half[:, i] if k == i else none for k in range(self.symbols)],
                1e-15 * np.abs(middle[:, i]),
            )
            for i in range(n)
        ]
        return [summed([y[j].times(self.back[i, j]) for j in range(n)]) for i in range(n)]

    def states(self, e: list[Model]) -> list[Model]:
        """States (n,) of these errors."""
        return [number + Model.of(np.full(len(number.rest), self.target[i])) for i, number in enumerate(e)]

    def _outside(self, e: list[Model]) -> Mask:
        """Whether (N,) all states are outside of the domain."""
        ranges = [number.range for number in e]
        beyond = [(r.low > b) | (r.high < -b) for r, b in zip(ranges, self.bound, strict=True)]
        return np.asarray(np.any(beyond, 0))

    def _in_ellipsoid(self, low: Array, high: Array) -> Mask:
        """Whether (N,) all corners are in the ellipsoid, which is convex."""
        sides = [np.where(np.array(side), high, low) for side in product((False, True), repeat=low.shape[1])]
        e = np.stack(sides, 1) @ self.back.T
        return np.asarray((((e @ self.shape) * e).sum(-1) <= 1 - 1e-9).all(1))

    # -- the policy --------------------------------------------------------------------------------------------------

    def control(self, x: list[Model]) -> list[Model]:
        """B (n,) at the nominal parameters."""
        count = len(x[0].rest)
        known = {
            "x": [Dual.of(number, []) for number in x],
            "theta": [Dual.exact(value, count, 0) for value in self.loop.nominal],
        }
        entries = self.loop.equations("affine_dynamics", known, lambda value: Dual.exact(value, count, 0))[1]
        return [entry.value.first for entry in entries]

    def _near(self, x: list[Model], b: list[Model]) -> tuple[Mask, Mask, Model]:
        """Whether (N,) V may be that of the networks, or the quadratic form, and the slope of this one along b."""
        e = [number - Model.of(np.full(len(number.rest), self.target[i])) for i, number in enumerate(x)]
        pe = [summed([number.times(entry) for entry, number in zip(row, e, strict=True)]) for row in self.cost]
        q = summed([number * slope for number, slope in zip(e, pe, strict=True)]).range
        w = summed([number * slope for number, slope in zip(b, pe, strict=True)]).times(-2.0)
        once = [~a | (n.range.size < t) for a, n, t in zip(self.around, e, self.turned, strict=True)]
        narrow, spare = np.all(once, 0), 1e-5 * self.basin
        w = Model(w.terms, np.where(narrow, w.rest, np.inf))  # else it may be near the target after a turn
        return ~(q.high < self.basin - spare) | ~narrow, ~(q.low > self.basin + spare) | ~narrow, w

    def _slopes(
        self, x: list[Model], b: list[Model], far: Callable[[NDArray[np.int64]], Model]
    ) -> list[tuple[NDArray[np.int64], Model]]:
        """w = b' dV/dx of the networks and of the form, each in the sets (by number) in which it may be V.

        far: that of the networks, in some of the sets.
        """
        net, form, near = self._near(x, b)
        rows, close = np.flatnonzero(net), np.flatnonzero(form)
        return [(rows, far(rows)), (close, near.rows(close))]

    def inputs(self, x: list[Model], b: list[Model], net: Model) -> Iterator[tuple[NDArray[np.int64], Model]]:
        """Inputs of some of the sets by number: for each formula of V at the state, side of the trim, and formula after
        the step. At the basin's edge V is steeper on one side, so that one input for all of them would be too wide.

        net: slope of the networks along B.
        """
        for at, w in self._slopes(x, b, net.rows):
            closed = self.loop.policy.conjugates([w])[0][0] - Model.of(np.full(len(w.rest), self.trim))
            for sign in (1.0, -1.0):
                some = np.flatnonzero(~(sign * closed.terms[0] + closed.bend < 0))
                rows = at[some]
                states, way = ([number.rows(rows) for number in part] for part in (x, b))
                for here, u in self._answers(w.rows(some), closed.rows(some).times(sign), states, way, sign):
                    limited = bounded(u, np.full(len(here), self.middle), np.full(len(here), self.limit))
                    yield rows[here], self._with_error(limited)

    def _with_error(self, u: Model) -> Model:
        """An input whose rest and error are the last symbol."""
        terms = np.zeros((1 + self.symbols + self.symbols * (self.symbols + 1) // 2, len(u.rest)))
        terms[: len(u.terms)] = u.terms
        terms[self.symbols] = (u.rest + self.error) * (1 + ROUNDING) + ROUNDING * np.abs(terms[0])
        return Model(terms, np.zeros_like(u.rest))

    def _answers(
        self, w: Model, closed: Model, x: list[Model], b: list[Model], sign: float
    ) -> Iterator[tuple[NDArray[np.int64], Model]]:
        """Inputs of some sets where the closed form, less the trim and times the sign, is not below 0."""
        size = larger(closed, SHORTEST * self.limit)
        moved = [number + (way * size).times(sign * self.hold) for number, way in zip(x, b, strict=True)]
        share = size.through(lambda a, order: inverse(a.within(0.99 * SHORTEST * self.limit, np.inf), order))
        half = 0.5 * np.maximum(closed.range.high, 0.0)  # d is between 0 and the closed form, as P >= 0

        def far(rows: NDArray[np.int64]) -> Model:
            return self.value([e.rows(rows) for e in moved], [e.rows(rows) for e in b], self.symbols)[1]

        for rows, beyond in self._slopes(moved, b, far):
            drop = (w.rows(rows) - beyond).times(sign)
            (d,) = self.loop.policy.answer([w.rows(rows)], [[larger(drop * share.rows(rows), 0.0)]])
            d = bounded(d, sign * half[rows], half[rows] * (1 + ROUNDING))
            yield rows, d + Model.of(np.full(len(rows), self.trim))

    # -- one period --------------------------------------------------------------------------------------------------

    def grows(self, x: list[Model], b: list[Model], value: Model, net: Model) -> tuple[Mask, NDArray[np.int64]]:
        """Whether (N,) V grows in a period, and the motion stays in the domain and ends in the root cell.

        Also the side of the cell that counts most. net: slope of the networks along B.
        """
        shown, seen = np.ones(len(value.rest), bool), np.zeros(len(value.rest), bool)
        side, worst = np.zeros(len(shown), np.int64), np.full(len(shown), -np.inf)
        for rows, u in self.inputs(x, b, net):
            if not len(rows):
                continue
            fallen, known = self.fallen([number.rows(rows) for number in x], u, value.rows(rows))
            highest = np.where(np.isfinite(fallen.bend), most(fallen), np.inf)
            shown[rows] &= known & (highest < 0)
            seen[rows] = True
            worse = rows[highest > worst[rows]]
            side[worse] = influences(fallen)[: len(self.half)].argmax(0)[highest > worst[rows]]
            worst[rows] = np.maximum(worst[rows], highest)
        return shown & seen, side

    def fallen(self, x: list[Model], u: Model, value: Model) -> tuple[Model, Mask]:
        """How much V falls in a period with an input, and whether (N,) the motion stays where it has to."""
        count, n = len(value.rest), len(x)
        end, during, known = self.loop.moved(
            [Dual.of(number, []) for number in x], [Dual.of(u, [])], self.parameters(count)
        )
        ends = [entry.value.first for entry in end]
        e = [number - Model.of(np.full(count, self.target[i])) for i, number in enumerate(ends)]
        for i in range(n):
            known = known & (e[i].range.size <= self.bound[i])
            known &= combined(self.forth, i, e).range.size <= self.half[i]
            known &= self.around[i] | ((during[i].value.first.range - self.target[i]).size <= self.bound[i])
        later, _ = self.value(ends, None, self.symbols)
        fallen = value - later
        return fallen, known & np.isfinite(fallen.bend)

    def parameters(self, count: int) -> list[Dual]:
        """Parameters (p,) of the claim's robots."""
        found = []
        for i, (value, share) in enumerate(zip(self.loop.nominal, self.spread, strict=True)):
            sides = len(self.half) + np.flatnonzero(self.wide == i)
            slopes = [np.full(count, abs(value) * share * (1 + 1e-12) * (k in sides)) for k in range(self.symbols)]
            found.append(Dual.of(Model.linear(np.full(count, value), slopes), []))
        return found


def bounded(number: Model, middle: Array, radius: Array) -> Model:
    """Numbers, or only the interval (N,) that holds them where their rest is wider."""
    loose = ~(number.rest <= radius)
    terms = np.where(loose, 0.0, number.terms)
    terms[0] = np.where(loose, middle, number.terms[0])
    return Model(terms, np.where(loose, radius * (1 + ROUNDING) + ROUNDING * np.abs(middle), number.rest))


def larger(number: Model, least: float) -> Model:
    """The larger one of numbers and `least`; where it is not known which, all between a chord and its parallel."""
    above, below = number.range.high - least, np.maximum(least - number.range.low, 0.0)
    share = np.clip(above / np.maximum(above + below, SMALLEST), 0.0, 1.0)
    half = 0.5 * share * below
    moved = (number - Model.of(np.full_like(below, least))).times(share)
    return moved + Model.of(half + least, half * (1 + ROUNDING))
