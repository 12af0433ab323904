"""States from which every trajectory of the sampled closed loop enters the proven basin, on a grid of boxes.

A box is proven if its image after some periods lies within boxes that are proven already; the first ones are those
within the proven basin. So every trajectory from a proven box enters the basin after a finite number of periods. Where
nothing more can be proven, all open boxes are halved. `solver.proof.motion` follows a box for a period. The robots of a
spread are followed slice by slice, and a box is proven if it is for every slice.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter1d

from modelgen.arrays import Array
from solver.errors import SolverError
from solver.jobs import Announce
from solver.jobs.engines import Here
from solver.proof import slices
from solver.proof.affine import Linear, Mask, Numbers, parallelotope, rounding, together, upward
from solver.proof.held_loop import HeldLoop
from solver.proof.motion import Images, Step, hashes, policy_of
from solver.proof.quadratic import compiled

BATCH = 1200  # boxes at once
GRID = 512  # boxes a state in the first grid
FINEST = 2048  # and in the last one
SIZES = GRID, 2 * GRID, FINEST
PERIODS = 24  # after which a box waits for its halves
NEAR = 3  # boxes from a proven one beyond which a box is not followed yet
WAYS = 16  # images of a box beyond which it does so, too
IMAGE = np.dtype([(name, np.int64) for name in ("box", "parent", "age", "open")] + [("proven", np.bool_)])
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
def _spanned(spans: Numbers, proven: Mask, strides: Numbers, size: int, wanted: bool) -> Mask:
    """Which spans (N, 2, n) of a flat grid hold a box that is (wanted) or is not proven; none of one outside."""
    count, n = len(spans), spans.shape[2]
    found, at = np.zeros(count, np.bool_), np.zeros(n, np.int64)
    for i in range(count):
        if spans[i, 0, 0] < 0:
            continue
        at[:] = spans[i, 0]
        while not found[i]:
            place = 0
            for axis in range(n):
                place += at[axis] % size * strides[axis]
            found[i] = proven[place] == wanted
            axis = n - 1
            while axis >= 0 and at[axis] == spans[i, 1, axis]:
                at[axis] = spans[i, 0, axis]
                axis -= 1
            if axis < 0:
                break
            at[axis] += 1
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

    def span(self, x: Linear) -> Numbers:
        """First and last indices (N, 2, n) of the boxes that hold each set; first = -1 where there are none."""
        bend = upward(x.bend, len(x.slopes) + 1)
        ends = np.stack([x.middle - bend, x.middle + bend], 1)
        good: Mask = np.all(np.isfinite(ends), (1, 2))
        at = np.floor((np.where(good[:, None, None], ends, 0.0) - self.lower) / self.width + [[-1e-9], [1e-9]])
        turns = np.where(self.around, np.floor(at[:, :1] / self.k) * self.k, 0.0)
        at = at - turns
        good &= (at[:, 0] >= 0).all(1) & (at[:, 1] < np.where(self.around, 2, 1) * self.k).all(1)
        good &= (at[:, 1] - at[:, 0] < self.k).all(1)
        return np.where(good[:, None, None], at, -1).astype(np.int64)

    def near(self) -> Mask:
        """Boxes (k, .., k) that are not more than NEAR boxes from a proven one."""
        found = self.proven
        for axis, around in enumerate(self.around):
            found = maximum_filter1d(found, 2 * NEAR + 1, axis, mode="wrap" if around else "constant")
        return found

    def touching(self, spans: Numbers) -> Mask:
        """Which spans (N, 2, n) hold a proven box."""
        return self._hold(spans, True)

    def inside(self, spans: Numbers) -> Mask:
        """Which spans (N, 2, n) hold proven boxes only."""
        return (spans[:, 0, 0] >= 0) & ~self._hold(spans, False)

    def _hold(self, spans: Numbers, wanted: bool) -> Mask:
        strides = self.k ** np.arange(self.n)[::-1]
        found: Mask = _spanned(spans, self.proven.ravel(), strides, self.k, wanted)
        return found

    def refined(self, k: int) -> Grid:
        """The same set with k boxes a state."""
        proven = self.proven
        for axis in range(self.n):
            proven = proven.repeat(k // self.k, axis)
        return Grid(self.lower, self.upper, self.around, proven)

    def with_boxes(self, found: Sequence[Found]) -> Grid:
        """A grid with others that are proven, as fine as the finest of them."""
        grid = self.refined(max([self.k, *(part.k for part in found)]))
        for part in found:
            wide = grid.k // part.k
            for shift in itertools.product(range(wide), repeat=grid.n):
                grid.proven[tuple((part.at * wide + shift).T)] = True
        return grid


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

    The images of a box are a tree, in which a box is the first image of itself. An image has an image after a period
    for each way of the policy. It is proven when it lies within proven boxes, or when all its images are proven.
    """

    def __init__(self, step: Callable[[Linear], list[Images]], grid: Grid) -> None:
        self.step, self.grid = step, grid
        self.found: list[Found] = []
        self.at = np.argwhere(~grid.proven)
        self.periods = np.zeros(len(self.at), np.int64)  # most periods of a box
        self.images = np.zeros(len(self.at), IMAGE)  # of all boxes, which come first
        self.images["box"] = self.images["parent"] = np.arange(len(self.at))
        self.waiting, self.sets = np.arange(len(self.at)), grid.boxes(self.at)  # images that are not followed yet
        self.rows, self.spans = np.zeros(0, np.int64), np.zeros((0, 2, grid.n), np.int64)  # those that may be proven

    def round(self) -> int:
        """Follow every image of an open box that touches the proven set by one period. Gives their number."""
        box, age = (self.images[name][self.waiting] for name in ("box", "age"))
        going = (np.bincount(box, minlength=len(self.at))[box] <= WAYS) & (age < PERIODS)
        new, old = np.flatnonzero(going & (age == 0)), np.flatnonzero(going & (age > 0))
        going[new] = self.grid.near()[tuple(self.at[box[new]].T)]
        going[old] = self.grid.touching(self.grid.span(self.sets.rows(old)))
        rows, parents, sets = self.waiting[going], [self.rows[:0]], [self.sets.rows(~going)]
        moved = self.sets.rows(going)
        for first in range(0, len(rows), BATCH):
            batch = slice(first, first + BATCH)
            for at, found in self._followed(rows[batch], moved.rows(batch)):
                parents.append(at)
                sets.append(found)
        self.waiting, self.sets = self.waiting[~going], together(sets)
        self._enter(np.concatenate(parents))
        return len(rows)

    def _followed(self, rows: Numbers, x: Linear) -> Iterator[tuple[Numbers, Linear]]:
        """Known images of some images after a period, with the numbers of these."""
        wide = WIDEST * 0.5 * (self.grid.upper - self.grid.lower)
        for at, found, known in self.step(x):
            self.images["open"][rows[at]] += 1
            known = known & (found.bend < wide).all(1)
            yield rows[at[known]], parallelotope(found.rows(known))

    def _enter(self, parents: Numbers) -> None:
        """Append the images of others, by the numbers of these; their sets are the last ones."""
        born, rows = np.zeros(len(parents), IMAGE), len(self.images) + np.arange(len(parents))
        born["parent"], born["box"], born["age"] = parents, self.images["box"][parents], self.images["age"][parents] + 1
        np.maximum.at(self.periods, born["box"], born["age"])
        spans = self.grid.span(self.sets.rows(slice(len(self.waiting), None)))
        self.images, self.waiting = np.append(self.images, born), np.append(self.waiting, rows)
        self.rows, self.spans = np.append(self.rows, rows), np.concatenate([self.spans, spans])

    def sweep(self) -> None:
        """Enter the boxes whose images are proven, until there are no more."""
        while (inside := self.grid.inside(self.spans)).any():
            proven = self.rows[inside]
            while len(proven):
                self.images["proven"][proven] = True
                found = proven[proven < len(self.at)]
                self.grid.proven[tuple(self.at[found].T)] = True
                if len(found):
                    self.found.append(Found(self.grid.k, self.at[found], self.periods[found]))
                parents = self.images["parent"][proven[proven >= len(self.at)]]
                np.subtract.at(self.images["open"], parents, 1)
                parents = np.unique(parents)
                proven = parents[(self.images["open"][parents] == 0) & ~self.images["proven"][parents]]
            left = self._open(self.rows)
            self.rows, self.spans = self.rows[left], self.spans[left]
        left = self._open(self.waiting)
        self.waiting, self.sets = self.waiting[left], self.sets.rows(left)

    def _open(self, rows: Numbers) -> Mask:
        """Which images are not proven, nor are their box and what they are images of."""
        places = rows, self.images["box"][rows], self.images["parent"][rows]
        closed: Mask = np.any([self.images["proven"][at] for at in places], 0)
        return ~closed


def reaching(
    run: str | Path,
    loop: HeldLoop,
    shape: Array,
    spread: Sequence[float],
    input_error: float,
    seconds: float,
    before: dict[str, Any] | None = None,
    generated: str | None = None,
    executor: Executor | None = None,
    announce: Announce = lambda _: None,
    keep: Callable[[Callable[[], Reach]], None] = lambda _: None,
) -> tuple[list[Future[Any]], Callable[[], Reach]]:
    """States that are proven to enter the basin {e: e' shape e <= 1} within `seconds` of processor time.

    Returns the searches of slices, which wait for their turn, and the states by those that are finished.

    spread: (p,) share by which parameters may differ. A robot's may change within a slice in every period. before: the
    claim of a search that goes on. executor: searches the slices, see `solver.jobs.engines.workers`; by default this
    process. announce: receives a line for each slice. keep: receives the states when a slice is finished.

    Raises SolverError for robots of other than two states and one input, and for a run that has changed.
    """
    n = len(loop.around)
    if n != 2:
        raise SolverError(f"{loop.robot.name} has {n} states; --reach cuts two states into boxes, not more")
    if (~np.isfinite(loop.bound)).any():
        raise SolverError("a state of this robot has no limit, so that its domain has no volume")
    parts, place = slices(spread), executor or Here()
    known = [[] for _ in parts] if before is None else before["slices"]
    every, times = [[Found.of(group, n) for group in groups] for groups in known], [0.0] * len(parts)
    jobs: list[Future[tuple[list[Found], float, float]]] = []

    def reached() -> Reach:
        for k, job in enumerate(jobs):
            if job.done() and not job.cancelled() and job.exception() is None:
                every[k], _, times[k] = job.result()
        spent, grid = sum(times) + (before["seconds"] if before else 0.0), in_all_slices(loop, shape, every)
        return Reach(grid.lower, grid.upper, grid.proven, spent, GRID, list(every))

    def finished(name: str, job: Future[tuple[list[Found], float, float]]) -> None:
        if not job.cancelled() and job.exception() is None:
            _, share, spent = job.result()
            announce(f"{name}: {100 * share:.3g} % of the domain in {spent:.0f} s")
            keep(reached)

    which = run, generated, *hashes(run, loop)
    for k, robots in enumerate(parts):
        job = place.submit(searched, which, shape, robots, input_error, every[k], seconds / len(parts))
        jobs.append(job)
        job.add_done_callback(partial(finished, f"slice {k + 1} of {len(parts)}"))
    return jobs, reached


def _first(loop: HeldLoop, shape: Array) -> Grid:
    """The grid whose boxes within the ellipsoid are proven."""
    lower, upper = loop.domain
    return Grid(lower, upper, loop.around, within(lower, upper, loop.target, shape, GRID))


def in_all_slices(loop: HeldLoop, shape: Array, every: Sequence[Sequence[Found]]) -> Grid:
    """The grid of the boxes that are proven for every slice, with those within the ellipsoid."""
    grids = [_first(loop, shape).with_boxes(found) for found in every]
    finest = max(grid.k for grid in grids)
    proven = np.logical_and.reduce([grid.refined(finest).proven for grid in grids])
    return Grid(*loop.domain, loop.around, proven)


def searched(
    which: tuple[str | Path, str | None, str, str],
    shape: Array,
    robots: Sequence[tuple[float, float]],
    input_error: float,
    found: list[Found],
    seconds: float,
) -> tuple[list[Found], float, float]:
    """Boxes of a slice of robots that are proven in `seconds`, those of `found` first; their share, and the time."""
    start = time.process_time()
    policy = policy_of(*which, patched=True)
    step, grid = Step(policy, robots, input_error), _first(policy.loop, shape).with_boxes(found)
    found = list(found)
    while True:
        search = Search(step, grid)
        while (moved := search.round()) and time.process_time() - start < seconds:
            search.sweep()
        search.sweep()
        found += search.found
        spent = time.process_time() - start
        if moved or spent >= seconds or grid.k >= FINEST or grid.proven.all():
            return found, float(grid.proven.mean()), spent
        grid = grid.refined(2 * grid.k)


def within(lower: Array, upper: Array, target: Array, shape: Array, k: int) -> Mask:
    """Boxes (k, .., k) of a domain that are within {e' shape e < 1}, by their corners."""
    ticks = [np.linspace(low, high, k + 1) for low, high in zip(lower, upper, strict=True)]
    e = np.stack(np.meshgrid(*ticks, indexing="ij"), -1) - target
    inside: Mask = np.einsum("...i,ij,...j->...", e, shape, e) < 1 - 1e-9
    for axis in range(len(target)):
        inside = np.logical_and(np.take(inside, range(k), axis), np.take(inside, range(1, k + 1), axis))
    return inside
