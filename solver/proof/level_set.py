"""Level sets {V >= -c} from which every trajectory of the sampled closed loop enters the proven basin.

V is that of the networks everywhere. The set is cut to the limits of the states and to a box of y, where e = back y is
the error. If V rises in a period from every state of the set outside the ellipsoid, and the state stays within both, no
trajectory leaves the set. V rises by a least amount, that of the cell where it is least, so that every trajectory is in
the ellipsoid after a finite number of periods.

The open cell with the highest V is decided or halved first. All cells that are left have a lower V, so that the search
has a level at any time.
"""

from __future__ import annotations

import copy
import itertools
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from modelgen.arrays import Array, runge_kutta_step
from solver.errors import SolverError
from solver.jobs import Announce
from solver.jobs.engines import Here, results
from solver.proof import EMPTY, HELD, Tree, leaves
from solver.proof.affine import TINY, Linear, Mask, Numbers, rounding
from solver.proof.held_loop import HeldLoop
from solver.proof.motion import Step, hashes, policy_of
from solver.proof.quadratic import Quadratic, least
from solver.training.solution import Solution

BATCH, PART = 512, 256  # cells at once, and in a process
SAMPLES = 1 << 14  # states that show where V falls,
CELL, SIDE = 8e-3, 0.15  # s for a cell of that side, which tell how large a set may be proven
WIDER = 1.5  # in boxes that grow by this factor
SUBSTEPS = 4  # of Runge and Kutta in their period
REACHED = 0.8  # of a box, which holds the set if no sample of it is farther out
MARGIN = 1.1  # of the box by the samples
VOLUMES = 1 << 17  # samples of the volume
REPORTS = 60.0  # s between lines
LOOSE = 0.02  # of V, beyond which its rest hides the rise in a period
NARROWEST = 1e-4  # half width of y below which a cell stays open
UNKNOWN, TIGHT = -2, -1  # cells whose V is not enclosed yet, and cells to decide
SAME = 0.01  # of the level, by which an open cell may exceed a state from which V falls when the search ends


@dataclass(frozen=True)
class LevelSet:
    """Result: {V >= -level} within the limits and |y| <= half."""

    level: float
    share: float  # volume of the set and the ellipsoid, by that of the basin; sampled
    half_widths: Array  # (n,) largest errors of these samples, in SI units
    half: Array  # (n,)
    back: Array  # (n, n): e = back y
    cells: int  # in which V rises
    seconds: float  # processor time
    tree: list[int]  # of the cells, as in `solver.proof`

    def to_json(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("level", "share", "cells", "seconds")}
        return kept | {name: getattr(self, name).tolist() for name in ("half", "back", "half_widths")}

    def claim(self) -> dict[str, Any]:
        """The set as a part of a file (`solver.proof`)."""
        arrays = {name: getattr(self, name).tolist() for name in ("half", "back")}
        return {"level": self.level} | arrays | {"tree": self.tree, "seconds": self.seconds}


def proven_level(
    run: str | Path,
    solution: Solution,
    loop: HeldLoop,
    shape: Array,
    spread: Sequence[float],
    input_error: float,
    seconds: float,
    before: dict[str, Any] | None = None,
    generated: str | None = None,
    executor: Executor | None = None,
    announce: Announce = lambda _: None,
    keep: Callable[[LevelSet], None] = lambda _: None,
) -> LevelSet | None:
    """The largest level set that is proven within `seconds` of processor time to enter {e: e' shape e <= 1}, or None.

    spread: (p,) share by which parameters may differ, in every period. before: the claim of a search that goes on.
    executor: encloses the cells, see `solver.jobs.engines.workers`; by default this process. announce: receives a line
    from time to time. keep: receives the set then.

    Raises SolverError for robots of more than one input, where V does not see every motion, and for a run that has
    changed.
    """
    if len(loop.seen) < len(loop.target):
        raise SolverError(f"V of {solution.label} does not see every state, so that its level sets have no bounds")
    back: Array = np.linalg.cholesky(np.linalg.inv(loop.cost / loop.level))
    samples = Samples(solution, loop, shape, back)
    half = samples.box(seconds) if before is None else np.array(before["half"])
    arrays = tuple(tuple(array.ravel().tolist()) for array in (shape, back, half))
    cells = Cells(executor or Here(), (run, generated, *hashes(run, loop), tuple(spread), input_error, arrays))
    search, spent = LevelSearch(cells), 0.0
    if before is not None:
        search, spent = LevelSearch(cells, before["tree"], before["level"]), float(before["seconds"])

    def found() -> LevelSet | None:
        if search.level <= 0:
            return None
        level = samples.level_set(search.level, half)
        return LevelSet(*level, half, back, search.held, spent + cells.seconds, search.tree.walk())

    more = True
    while more and (left := seconds - cells.seconds) > 0:
        more = search.run(min(left, REPORTS))
        if (known := found()) is not None:
            announce(f"V above {-known.level:.4g}: {known.share:.3g} of the basin's volume, {known.cells} cells")
            keep(known)
    return found()


#: Run, its artifacts and hashes, spread and error of the input, and `Rise`'s shape, back and half as rows.
About = tuple[str | Path, str | None, str, str, tuple[float, ...], float, tuple[tuple[float, ...], ...]]


@lru_cache(1)
def _rise(about: About) -> Rise:
    """The rise of a process."""
    *which, spread, input_error, arrays = about
    step = Step(policy_of(*which, patched=False), [(1.0, share) for share in spread], input_error)
    shape, back, half = (np.array(array) for array in arrays)
    n = len(half)
    return Rise(step, shape.reshape(n, n), back.reshape(n, n), half)


def _of_cells(about: About, what: str, y: Array, half: Array) -> tuple[tuple[Any, ...], float]:
    """What `Rise` says of cells, and the time."""
    rise = _rise(about)
    start = rise.seconds
    return getattr(rise, what)(y, half), rise.seconds - start


class Cells:
    """`Rise` by the processes of an executor."""

    def __init__(self, place: Executor, about: About) -> None:
        self.place, self.about, self.half, self.seconds = place, about, np.array(about[-1][-1]), 0.0

    def enclosed(self, y: Array, half: Array) -> tuple[Any, ...]:
        """As `Rise.enclosed`."""
        return self._of("enclosed", y, half)

    def rises(self, y: Array, half: Array) -> tuple[Any, ...]:
        """As `Rise.rises`."""
        return self._of("rises", y, half)

    def _of(self, what: str, y: Array, half: Array) -> tuple[Any, ...]:
        cuts = [slice(k, k + PART) for k in range(0, len(y), PART)]
        jobs = [self.place.submit(_of_cells, self.about, what, y[cut], half[cut]) for cut in cuts]
        parts, seconds = zip(*results(jobs), strict=True)
        self.seconds += sum(seconds)
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


class Samples:
    """States of the loop, as floats: how V of the networks changes in a period, and volumes of its level sets."""

    def __init__(self, solution: Solution, loop: HeldLoop, shape: Array, back: Array) -> None:
        self.loop, self.shape, self.back = loop, shape, back
        self.networks, self.act = copy.deepcopy(solution.ensemble), solution.controller()
        self.networks.basin_level.zero_()
        self.robot = loop.robot.with_kernels()

    def box(self, seconds: float) -> Array:
        """Half widths (n,) of y of a box that holds the level set above all samples outside the ellipsoid that fall.

        A set that is too large for a search of some time is cut to a higher level: all of the box is searched.
        """
        random, n, scale, highest = np.random.default_rng(0), len(self.back), 1.0, -np.inf
        limits = (np.abs(np.linalg.inv(self.back)) @ self.loop.bound).max()  # of y within the limits
        while True:
            y = scale * (2 * random.random((SAMPLES, n)) - 1)
            V, inside = self.values(y)
            y, V, inside = y[-np.inf < V], V[-np.inf < V], inside[-np.inf < V]
            falls = ~inside & ~(self.values(self.after(y))[0] > V)
            most = int(seconds / CELL * SIDE**n / (2 * scale) ** n * SAMPLES)
            best = np.sort(V)[::-1][most : most + 1]
            highest = max(highest, float(V[falls].max(initial=-np.inf)), float(best.max(initial=-np.inf)))
            far = np.abs(y[highest < V]).max(0, initial=1.0)
            if far.max() < REACHED * scale or scale > limits:
                return np.asarray(np.minimum(MARGIN * far, limits))
            scale *= WIDER

    def level_set(self, level: float, half: Array) -> tuple[float, float, Array]:
        """The level, or the lowest sample's; the volume with the ellipsoid, by the basin's; largest errors (n,)."""
        y = half * (2 * np.random.default_rng(0).random((VOLUMES, len(half))) - 1)
        V, inside = self.values(y)
        found: Mask = inside | (-level <= V)
        basin = math.pi ** (len(half) / 2) / math.gamma(len(half) / 2 + 1)
        share = float(found.mean() * np.prod(2 * half)) / basin
        widest = np.abs((y @ self.back.T)[found]).max(0, initial=0.0)
        return min(level, -float(V[-np.inf < V].min())), share, widest

    @torch.no_grad()
    def values(self, y: Array) -> tuple[Array, Mask]:
        """V (N,), -inf beyond the limits, and which states are in the ellipsoid."""
        e = y @ self.back.T
        V = self.networks(torch.as_tensor(self.loop.target + e, dtype=torch.float32)).numpy()
        within = (np.abs(e) <= self.loop.bound) | self.loop.around
        return np.where(within.all(1), V, -np.inf), np.einsum("ni,ij,nj->n", e, self.shape, e) < 1

    @torch.no_grad()
    def after(self, y: Array) -> Array:
        """y (N, n) after a period."""
        x = self.loop.target + y @ self.back.T
        u, h = self.act(torch.as_tensor(x, dtype=torch.float32))[0].double().numpy(), self.loop.step / SUBSTEPS
        for _ in range(SUBSTEPS):
            x = runge_kutta_step(lambda x, _: self.robot.dynamics(x, u), x, 0.0, h)
        return np.asarray(np.linalg.solve(self.back, (x - self.loop.target).T).T)


def opened(u: Linear) -> Linear:
    """Numbers (N, 1) whose rest is a symbol."""
    return Linear(u.middle, np.concatenate([u.slopes, u.rest[None, ...]]), np.zeros_like(u.rest))


class Rise:
    """How much V rises in a period, over cells of y.

    shape: (n, n) of the ellipsoid in which it need not. back: e = back y. half: (n,) of the box that no image leaves.
    """

    def __init__(self, step: Step, shape: Array, back: Array, half: Array) -> None:
        self.step, self.back, self.half, self.loop = step, back, half, step.loop
        self.slope, self.shape = step.policy.slope, shape
        self.forward = np.asarray(np.linalg.inv(back), np.float64)
        self.corners = np.array(list(itertools.product((-1.0, 1.0), repeat=len(back))))
        self.symbols = 1 + int(np.count_nonzero(step.spread))  # of the input and the parameters

    def states(self, y: Array, half: Array, symbols: int = 0) -> Linear:
        """Cells (N, n) of y, with a number of further symbols, as sets of states."""
        slopes = np.concatenate([np.moveaxis(half[:, :, None] * self.back.T, 1, 0), np.zeros((symbols, *y.shape))])
        e = y @ self.back.T
        size = (np.abs(y) + half) @ np.abs(self.back.T) + np.abs(self.loop.target)
        return Linear(self.loop.target + e, slopes, rounding(size, 2 * len(self.back) + 8))

    def value(self, y: Array, half: Array) -> Quadratic:
        """V (N, 1)."""
        return self.slope.value(self.states(y, half))

    def idle(self, y: Array, half: Array) -> Mask:
        """Cells that are beyond the limits, or in the ellipsoid."""
        x = self.states(y, half)
        beyond = (np.abs(x.middle - self.loop.target) - x.bend > self.loop.bound).any(1)
        e = (y[:, None] + half[:, None] * self.corners) @ self.back.T
        inside = (np.einsum("nci,ij,ncj->nc", e, self.shape, e) < 1 - 1e-9).all(1)
        return np.asarray(beyond | inside)

    @property
    def seconds(self) -> float:
        """Processor time of this process."""
        return time.process_time()

    @np.errstate(all="ignore")  # nothing is known of a wide cell
    def enclosed(self, y: Array, half: Array) -> tuple[Any, ...]:
        """Upper bounds (N,) of V, which cells are idle, which are too wide to be shown, and how much each side counts.

        Bounds are at most 0, as V is.
        """
        value, idle = self.value(y, half), self.idle(y, half)
        most = -least(value.times(-1.0))[:, 0]
        loose = ~(value.rest[:, 0] < LOOSE * np.abs(value.middle[:, 0]))
        return np.where(most < 0, most, 0.0), idle, loose & ~idle, _influences(value, len(self.back))

    @np.errstate(all="ignore")  # nothing is known of a wide cell, and what is not finite is not shown
    def rises(self, y: Array, half: Array) -> tuple[Any, ...]:
        """Lower and upper bounds (N,) of the rise, lower ones of V, and how much (N, n) each side counts.

        Those of the rise are not a number where a state may leave the limits or the box, or where nothing is known.
        """
        x, n = self.states(y, half, self.symbols), len(self.back)
        before, low, high = self.slope.value(x), np.full(len(y), np.inf), np.full(len(y), -np.inf)
        counts, seen = np.zeros(y.shape), np.zeros(len(y), bool)
        for at, u in self.step.policy.ways(self.states(y, half)):
            input_of = opened(Linear(u.middle, u.slopes, u.rest + self.step.input_error))
            end, known = self.step.moved(self.states(y[at], half[at], 1), input_of)
            error = end.plus(-self.loop.target)
            for number, most in ((error, self.loop.bound), (error.to(self.forward.T), self.half)):
                known &= (np.abs(number.middle) + number.bend <= most * (1 - 1e-9)).all(1)
            rise = self.slope.value(end) - Quadratic(before.terms[:, at], before.rest[at])
            bound = np.where(known, least(rise)[:, 0], np.nan)
            low[at], high[at] = np.minimum(low[at], bound), np.maximum(high[at], -least(rise.times(-1.0))[:, 0])
            counts[at], seen[at] = np.fmax(counts[at], _influences(rise, n)), True
        return np.where(seen, low, np.nan), high, least(before)[:, 0], counts


def _influences(rise: Quadratic, n: int) -> Array:
    """How much (N, n) each of the first symbols moves a number; the rest grows with the terms of second order."""
    d, (first, second) = rise.symbols, np.triu_indices(rise.symbols)
    terms, bent = np.abs(rise.terms[..., 0]), np.abs(rise.terms[1 + rise.symbols :, :, 0])
    parts = np.stack([bent[(first == k) | (second == k)].sum(0) for k in range(d)])
    share = parts / np.maximum(parts.sum(0), TINY)
    return np.asarray(np.nan_to_num((terms[1 : 1 + n] + parts[:n] + share[:n] * rise.rest[:, 0]).T))


class LevelSearch:
    """Search for the highest level."""

    def __init__(self, rise: Rise | Cells, sides: Sequence[int] = (EMPTY,), level: float = 0.0) -> None:
        """sides, level: of an earlier search, whose held cells are kept, and the others enclosed again."""
        self.rise, self.floor = rise, -np.inf  # a V from which V falls
        self.tree, nodes = Tree.grown(sides)
        low, high, marks = leaves(sides, -rise.half, rise.half, len(rise.half), len(rise.half))
        low, high = low[marks == EMPTY], high[marks == EMPTY]
        self.held = sum(side == HELD for side in sides)
        self.nodes, self.y, self.half = nodes, 0.5 * (low + high), 0.5 * (high - low)
        self.top = np.full(len(nodes), -level)  # upper bounds of V
        self.side = np.full(len(nodes), UNKNOWN)  # to halve, where V is too loose to show that it rises

    @property
    def level(self) -> float:
        """The level that is proven; negative where none is."""
        return -float(self.top.max(initial=-np.inf)) * (1 - 1e-9)

    def run(self, seconds: float) -> bool:
        """Search for some time. Gives whether more time may raise the level."""
        start = self.rise.seconds
        while len(self.top) and self.rise.seconds - start < seconds:
            size = min(BATCH, len(self.top))
            chosen = np.argpartition(-self.top, size - 1)[:size]
            best = chosen[self.top[chosen].argmax()]
            stuck = self.half[best].max() < NARROWEST or self.top[best] < self.floor * (1 - SAME)
            if self.side[best] != UNKNOWN and stuck:
                return False
            new, loose = chosen[self.side[chosen] == UNKNOWN], chosen[self.side[chosen] >= 0]
            if len(new):
                self._enclose(new)
            elif len(loose):
                self._enter(loose, loose, self.side[loose])
            else:
                self._decide(chosen[self.half[chosen].max(1) >= NARROWEST])
        return len(self.top) > 0

    def _enclose(self, at: Numbers) -> None:
        """Bound V in some cells, and drop those that are idle."""
        most, idle, loose, counts = self.rise.enclosed(self.y[at], self.half[at])
        self.top[at], self.side[at] = np.minimum(self.top[at], most), np.where(loose, self._widest(at, counts), TIGHT)
        self._enter(at[idle], at[:0], at[:0])

    def _widest(self, at: Numbers, counts: Array) -> Numbers:
        """The sides of cells that count most."""
        found: Numbers = np.where(counts.max(1, initial=0) > 0, counts.argmax(1), self.half[at].argmax(1))
        return found

    def _enter(self, closed: Numbers, halved: Numbers, side: Numbers) -> None:
        """Halve some of the cells that are not open any more, along their sides."""
        y, half, top = self.y[halved], self.half[halved], self.top[halved]
        rows, move = np.arange(len(y)), np.zeros_like(y)
        half[rows, side] *= 0.5
        move[rows, side] = half[rows, side]
        new = self.tree.decide(self.nodes[halved], side)
        left = np.delete(np.arange(len(self.top)), closed)
        self.nodes, self.y = np.append(self.nodes[left], new), np.concatenate([self.y[left], y - move, y + move])
        self.half, self.top = (
            np.concatenate([part[left], of, of]) for part, of in ((self.half, half), (self.top, top))
        )
        self.side = np.append(self.side[left], np.full(len(new), UNKNOWN))

    def _decide(self, at: Numbers) -> None:
        """Hold some cells, or halve them."""
        low, most, lowest, counts = self.rise.rises(self.y[at], self.half[at])
        held, falls = low > 0, most < 0
        self.floor = max(self.floor, float(lowest[falls].max(initial=-np.inf)))
        self.tree.decide(self.nodes[at[held]], np.full(held.sum(), HELD))
        self.held += int(held.sum())
        self._enter(at, at[~held], self._widest(at, counts)[~held])
