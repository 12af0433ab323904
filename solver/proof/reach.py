"""States from which every trajectory of the sampled closed loop enters the proven basin, on a grid of boxes.

A box is proven if its image after some periods lies within boxes that are proven already; the first ones are those
within the proven basin. So every trajectory from a proven box enters the basin after a finite number of periods. Where
nothing more can be proven, all open boxes are halved. `solver.proof.motion` follows a box for a period. The robots of a
spread are followed slice by slice, and a box is proven if it is for every slice.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelgen.arrays import Array
from solver.errors import SolverError
from solver.proof import slices
from solver.proof.affine import Linear, Mask, Numbers, rounding, upward
from solver.proof.held_loop import HeldLoop
from solver.proof.motion import Images, Step
from solver.proof.outside import parallelotope
from solver.proof.quadratic import compiled
from solver.training.solution import Solution

BATCH = 600  # boxes at once
GRID = 512  # boxes a state in the first grid
FINEST = 2048  # and in the last one
SIZES = GRID, 2 * GRID, FINEST
PERIODS = 24  # after which a box waits for its halves
WAYS = 16  # images of a box beyond which it does so, too
WIDEST = 0.25  # half width of an image, by the domain's, beyond which it is not followed


@dataclass(frozen=True)
class Reach:
    """Result: a grid over the domain, and which of its boxes are proven."""

    lower: Array  # (n,) of the domain
    upper: Array
    proven: Mask  # (k, .., k)
    seconds: float  # processor time
    first: int  # boxes a state of the grid whose boxes within the ellipsoid are the first proven ones
    slices: list[list[Found]]  # the others for each slice of robots, in the order in which they were proven

    @property
    def share(self) -> float:
        """Proven share of the domain's volume."""
        return float(self.proven.mean())

    def to_json(self) -> dict[str, Any]:
        """Content of `solver prove --reach --json`; `proven` has a row of 0 and 1 for every box of the first state."""
        rows = ["".join("01"[value] for value in row) for row in self.proven.tolist()]
        ends = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {"share": self.share, "seconds": self.seconds} | ends | {"proven": rows}

    def claim(self) -> dict[str, Any]:
        """The boxes as a part of a file (`solver.proof`)."""
        slices = [
            [[part.k, *np.hstack([part.periods[:, None], part.at]).ravel().tolist()] for part in found]
            for found in self.slices
        ]
        return {"first": self.first, "seconds": self.seconds, "slices": slices}


@compiled
def _share(span: Numbers, table: Numbers, strides: Numbers) -> Array:
    """Share (N,) of the boxes of each span (N, 2, n) that a flat table of sums counts."""
    n, found = span.shape[2], np.zeros(len(span))
    for i in range(len(span)):
        if span[i, 0, 0] < 0:
            continue
        total = 0
        for corner in range(1 << n):
            at, sign = 0, 1
            for axis in range(n):
                if corner >> axis & 1:
                    at += (span[i, 1, axis] + 1) * strides[axis]
                else:
                    at, sign = at + span[i, 0, axis] * strides[axis], -sign
            total += sign * table[at]
        count = 1
        for axis in range(n):
            count *= span[i, 1, axis] + 1 - span[i, 0, axis]
        found[i] = total / count
    return found


class Grid:
    """Boxes of a domain, k a state, some of which are proven."""

    def __init__(self, lower: Array, upper: Array, around: Mask, proven: Mask) -> None:
        self.lower, self.upper, self.around, self.proven = lower, upper, around, proven
        self.k, self.n = len(proven), proven.ndim
        self.width = (upper - lower) / self.k

    def boxes(self, at: Numbers) -> Linear:
        """Boxes of indices (N, n)."""
        half = upward(0.5 * self.width + rounding(np.abs(self.lower) + np.abs(self.upper), 8))
        slopes = np.zeros((self.n, len(at), self.n))
        slopes[range(self.n), :, range(self.n)] = half[:, None]
        return Linear(self.lower + (at + 0.5) * self.width, slopes, np.zeros((len(at), self.n)))

    def span(self, x: Linear, known: Mask) -> Numbers:
        """First and last indices (N, 2, n) of the boxes that hold each set; first = -1 where there are none."""
        bend = upward(x.bend, len(x.slopes) + 1)
        ends = np.stack([x.middle - bend, x.middle + bend], 1)
        good = known & np.isfinite(ends).all((1, 2))
        at = np.floor((np.where(good[:, None, None], ends, 0.0) - self.lower) / self.width + [[-1e-9], [1e-9]])
        turns = np.where(self.around, np.floor(at[:, :1] / self.k) * self.k, 0.0)
        at = at - turns
        good &= (at[:, 0] >= 0).all(1) & (at[:, 1] < np.where(self.around, 2, 1) * self.k).all(1)
        good &= (at[:, 1] - at[:, 0] < self.k).all(1)
        return np.where(good[:, None, None], at, -1).astype(np.int64)

    def table(self) -> Numbers:
        """Sums of the proven boxes below every corner, with angles twice."""
        sums = self.proven.astype(np.int64)
        for axis in range(self.n):
            sums = np.concatenate([sums, sums], axis) if self.around[axis] else sums
        for axis in range(self.n):
            sums = sums.cumsum(axis)
        return np.pad(sums, [(1, 0)] * self.n)

    def share(self, span: Numbers, table: Numbers) -> Array:
        """Proven share (N,) of the boxes of each span."""
        strides = np.array(table.strides) // table.itemsize
        found: Array = _share(span, table.ravel(), strides)
        return found

    def halved(self) -> Grid:
        """The same set on a grid of half the width."""
        proven = self.proven
        for axis in range(self.n):
            proven = proven.repeat(2, axis)
        return Grid(self.lower, self.upper, self.around, proven)


@dataclass(frozen=True)
class Found:
    """Boxes of a grid that are proven, once all that were found before are."""

    k: int  # boxes a state
    at: Numbers  # (N, n) indices
    periods: Numbers  # (N,) after one of which, at most, they are within those

    @classmethod
    def of(cls, group: list[int], n: int) -> Found:
        """A group of a claim. Raises SolverError for one outside the domain."""
        k, rows = group[0], np.array(group[1:], np.int64).reshape(-1, n + 1)
        if k not in SIZES or (rows[:, 1:] < 0).any() or (rows[:, 1:] >= k).any():
            raise SolverError("the proof is wrong: a box is outside the domain")
        return cls(k, rows[:, 1:], rows[:, 0])


class Search:
    """Backward fixed point on one grid.

    An image of a box becomes several where the policy has several ways. The box is proven when each of them is within
    proven boxes, now or in an earlier period.
    """

    def __init__(self, step: Callable[[Linear], list[Images]], grid: Grid) -> None:
        self.step, self.grid = step, grid
        self.found: list[Found] = []
        self.at = np.argwhere(~grid.proven)
        count = len(self.at)
        self.open, self.periods = (
            np.ones(count, np.int64),
            np.zeros(count, np.int64),
        )  # images, and most periods, of a box
        self.box, self.image = np.arange(count), grid.boxes(self.at)  # of every image
        self.age, self.ended, self.lost = np.zeros(count, np.int64), np.zeros(count, bool), np.zeros(count, bool)
        near = grid.span(self.image, np.ones(count, bool))
        room = np.minimum(np.maximum(near + np.array([[-3], [3]]), 0), np.where(grid.around, 2 * grid.k, grid.k) - 1)
        self.near = room
        self.rows, self.spans = np.zeros(0, np.int64), np.zeros((0, 2, grid.n), np.int64)  # images in each period

    def round(self) -> int:
        """Follow every image of an open box that touches the proven set by one period. Gives their number."""
        table = self.grid.table()
        touching = np.where(self.age == 0, self.grid.share(self.near, table)[self.box], 0.0)
        touching[self.rows] = self.grid.share(self.spans, table)  # in the last period, as later ones overwrite
        going = ~self.ended & ~self.lost & (self.open[self.box] > 0) & (self.open[self.box] <= WAYS)
        rows = np.flatnonzero(going & (touching > 0) & (self.age < PERIODS))
        moved, born = [(self.rows, self.spans)], list[tuple[Numbers, Linear]]()
        for first in range(0, len(rows), BATCH):
            self._follow(rows[first : first + BATCH], moved, born)
        self.rows, self.spans = (np.concatenate(parts) for parts in zip(*moved, strict=True))
        self._enter(born)
        return len(rows)

    def _follow(self, rows: Numbers, moved: list[tuple[Numbers, Numbers]], born: list[tuple[Numbers, Linear]]) -> None:
        """Move some images by a period; those with several ways end, and others are born of them (`_enter`)."""
        wide = WIDEST * 0.5 * (self.grid.upper - self.grid.lower)
        images = self.step(self.image.rows(rows))
        ways = np.bincount(np.concatenate([at for at, _, _ in images]), minlength=len(rows))
        self.lost[rows[ways == 0]] = True
        self.ended[rows[ways > 1]] = True
        np.add.at(self.open, self.box[rows[ways > 1]], ways[ways > 1] - 1)
        for at, x, known in images:
            known = known & (x.bend < wide).all(1)
            self.lost[rows[at[~known]]] = True
            at, x = at[known], parallelotope(x.rows(known))
            np.maximum.at(self.periods, self.box[rows[at]], self.age[rows[at]] + 1)
            for alone in (True, False):
                here = (ways[at] == 1) == alone
                leaf, y = rows[at[here]], x.rows(here)
                if alone:
                    self.image.put(leaf, y)
                    self.age[leaf] += 1
                else:
                    first = len(self.box) + sum(len(parents) for parents, _ in born)
                    born.append((leaf, y))
                    leaf = first + np.arange(len(leaf))
                moved.append((leaf, self.grid.span(y, np.ones(len(leaf), bool))))

    def _enter(self, born: list[tuple[Numbers, Linear]]) -> None:
        """Append images that were born of others: numbers (K,) of these, and the images."""
        if not born:
            return
        parents, old = np.concatenate([parents for parents, _ in born]), self.image
        self.box, none = np.concatenate([self.box, self.box[parents]]), np.zeros(len(parents), bool)
        self.age = np.concatenate([self.age, self.age[parents] + 1])
        self.ended, self.lost = np.concatenate([self.ended, none]), np.concatenate([self.lost, none])
        images = [old, *(image for _, image in born)]
        self.image = Linear(
            np.concatenate([image.middle for image in images]),
            np.concatenate([image.slopes for image in images], 1),
            np.concatenate([image.rest for image in images]),
        )

    def sweep(self) -> None:
        """Enter the boxes whose images are proven, until there are no more."""
        while (inside := self.grid.share(self.spans, self.grid.table()) == 1.0).any():
            leaves = np.unique(self.rows[inside])
            leaves = leaves[~self.ended[leaves]]
            self.ended[leaves] = True
            np.subtract.at(self.open, self.box[leaves], 1)
            boxes = np.unique(self.box[leaves])
            found = boxes[self.open[boxes] == 0]
            self.grid.proven[tuple(self.at[found].T)] = True
            if len(found):
                self.found.append(Found(self.grid.k, self.at[found], self.periods[found]))
            left = ~self.ended[self.rows] & (self.open[self.box[self.rows]] > 0)
            self.rows, self.spans = self.rows[left], self.spans[left]


def prove_reach(
    solution: Solution,
    loop: HeldLoop,
    shape: Array,
    spread: Sequence[float],
    input_error: float,
    seconds: float,
    before: dict[str, Any] | None = None,
) -> Reach:
    """States that are proven to enter the basin {e: e' shape e <= 1} within `seconds` of processor time.

    spread: (p,) share by which parameters may differ. A robot's may change within a slice in every period. before: the
    claim of a search that goes on.

    Raises SolverError for robots of other than two states and one input.
    """
    around = np.array([state.continuous for state in loop.robot.metadata.states])
    if len(around) != 2:
        raise SolverError(f"{loop.robot.name} has {len(around)} states; --reach cuts two states into boxes, not more")
    if (~np.isfinite(loop.bound)).any():
        raise SolverError("a state of this robot has no limit, so that its domain has no volume")
    lower, upper = np.where(around, -np.pi, loop.target - loop.bound), np.where(around, np.pi, loop.target + loop.bound)
    parts, known, start = slices(spread), [[]] if before is None else before["slices"], time.process_time()
    known = known if before is not None else known * len(parts)
    grids, every = list[Grid](), list[list[Found]]()
    for k, (robots, groups) in enumerate(zip(parts, known, strict=True)):
        grid = Grid(lower, upper, around, within(lower, upper, loop.target, shape, GRID))
        found = [Found.of(group, len(around)) for group in groups]
        until = start + seconds * (k + 1) / len(parts)
        grids.append(_searched(Step(solution, loop, robots, input_error), grid, found, until))
        every.append(found)
    finest = max(grid.k for grid in grids)
    for k, grid in enumerate(grids):
        while grid.k < finest:
            grid = grid.halved()
        grids[k] = grid
    spent = time.process_time() - start + (before["seconds"] if before else 0.0)
    return Reach(lower, upper, np.logical_and.reduce([grid.proven for grid in grids]), spent, GRID, every)


def _searched(step: Step, grid: Grid, found: list[Found], until: float) -> Grid:
    """The grid of all boxes that are proven until a processor time. found: those that are known, and then new ones."""
    for part in found:
        while grid.k < part.k:
            grid = grid.halved()
        wide = grid.k // part.k
        for shift in itertools.product(range(wide), repeat=grid.n):
            grid.proven[tuple((part.at * wide + shift).T)] = True
    while True:
        search = Search(step, grid)
        while (moved := search.round()) and time.process_time() < until:
            search.sweep()
        search.sweep()
        found += search.found
        if moved or time.process_time() >= until or grid.k >= FINEST or grid.proven.all():
            return grid
        grid = grid.halved()


def within(lower: Array, upper: Array, target: Array, shape: Array, k: int) -> Mask:
    """Boxes (k, .., k) of a domain that are within {e' shape e < 1}, by their corners."""
    ticks = [np.linspace(low, high, k + 1) for low, high in zip(lower, upper, strict=True)]
    e = np.stack(np.meshgrid(*ticks, indexing="ij"), -1) - target
    inside: Mask = np.einsum("...i,ij,...j->...", e, shape, e) < 1 - 1e-9
    for axis in range(len(target)):
        inside = np.logical_and(np.take(inside, range(k), axis), np.take(inside, range(1, k + 1), axis))
    return inside
