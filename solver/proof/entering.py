"""Independent check that boxes enter a proven basin: the boxes of a claim and their order.

`networks` bounds V by its own formula, `sampled_loop` one period of motion, with balls of many numbers at once. A box
whose image is not within earlier boxes is halved along every state and followed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from solver.errors import SolverError
from solver.proof import Equations, slices
from solver.proof.balls import Array, Mask
from solver.proof.jets import Sloped
from solver.proof.sampled_loop import SampledLoop

BATCH = 4000  # sets at once
DEEPEST = 8  # halvings of a box: none of 14 000 boxes needs more than two
LATE = 1 << 30  # place in the order of a box that is not proven
FINEST = 1 << 13  # boxes a state
WIDEST = 0.25  # share of the domain beyond which an image is not followed

#: A function and its arguments in some calls to their results, in order.
Calls = Callable[[Callable[..., Any], list[tuple[Any, ...]]], Iterator[Any]]


@dataclass(frozen=True)
class Entering:
    """Result for the boxes of a claim."""

    boxes: int
    checked: int
    holds: bool  # whether all checked ones enter the set
    share: float  # of the domain, that all boxes and the set cover
    seconds: float


def entering(
    proof: dict[str, Any],
    equations: Equations,
    checkpoint: Path,
    claim: dict[str, Any],
    one_of: int,
    seed: int,
    calls: Calls,
) -> Callable[[], Entering]:
    """Check of a random one of `one_of` boxes of a claim, or of all with 1, by a call for each slice.

    It is the result of the function that is returned once all slices wait for their turn. Raises SolverError where a
    box is outside the domain, and for robots or networks that the check does not know.
    """
    about, reach = {name: value for name, value in proof.items() if name != "claims"}, claim["reach"]
    same = about, equations, checkpoint, claim["shape"], reach["first"], one_of, seed
    parts = calls(_slice, [(*same, *each) for each in zip(slices(claim["spread"]), reach["slices"], strict=True)])

    def collected() -> Entering:
        total, checked, holds, proven, seconds = zip(*parts, strict=True)
        return Entering(sum(total), sum(checked), all(holds), float(reduce(_both, proven).mean()), sum(seconds))

    return collected


@np.errstate(all="ignore")  # nothing is known of a wide set, and what is not finite is not shown
def _slice(
    about: dict[str, Any],
    equations: Equations,
    checkpoint: Path,
    shape: list[list[float]],
    first: int,
    one_of: int,
    seed: int,
    robots: tuple[tuple[float, float], ...],
    groups: list[list[int]],
) -> tuple[int, int, bool, Mask, float]:
    """Numbers of boxes of a slice and of the checked ones, whether these hold, which are proven, and the time."""
    start = time.process_time()
    boxes = ClaimedBoxes(SampledLoop(about, equations, checkpoint, robots), shape, first, groups)
    chosen = np.random.default_rng(seed).random(len(boxes.rows)) < 1 / one_of
    rows = boxes.rows[chosen] if chosen.any() else boxes.rows[:1]
    holds = boxes.verify(rows)
    return len(boxes.rows), len(rows), holds, boxes.order < LATE, time.process_time() - start


def _both(a: Mask, b: Mask) -> Mask:
    """Boxes that are in two grids, of which one may be finer."""
    size = max(len(a), len(b))
    for axis in range(a.ndim):
        a, b = (np.repeat(part, size // part.shape[axis], axis) for part in (a, b))
    return a & b


class ClaimedBoxes:
    """The boxes of a slice, in the order in which they are said to enter the set. Raises SolverError for none.

    shape: (n, n) of the set. first: boxes a state of the first grid. groups: as in a file.
    """

    def __init__(self, loop: SampledLoop, shape: list[list[float]], first: int, groups: list[list[int]]) -> None:
        n = len(loop.target)
        self.around, self.loop = loop.around, loop
        self.lower, self.upper = loop.lower, loop.upper
        parts = [(group[0], np.array(group[1:], np.int64).reshape(-1, n + 1)) for group in groups]
        finest = max([first, *(k for k, _ in parts)])
        for k, rows in [(first, np.zeros((0, n + 1), np.int64)), *parts]:
            periods, at = rows[:, 0], rows[:, 1:]
            if not 0 < k <= FINEST or finest % k or (at < 0).any() or (at >= k).any() or (periods < 1).any():
                raise SolverError("the proof is wrong: a box is outside the domain, or after no period")
        self.order = np.full((finest,) * n, LATE)
        ticks = [np.linspace(a, b, first + 1) for a, b in zip(self.lower, self.upper, strict=True)]
        e = np.stack(np.meshgrid(*ticks, indexing="ij"), -1) - loop.target
        inside = np.einsum("...i,ij,...j->...", e, np.array(shape), e) < 1 - 1e-9
        for axis in range(n):  # all corners of a box are in the ellipsoid
            inside = np.take(inside, range(first), axis) & np.take(inside, range(1, len(ticks[0])), axis)
        self._enter(first, np.argwhere(inside), 0)
        for number, (k, rows) in enumerate(parts):
            self._enter(k, rows[:, 1:], number + 1)
        place = np.repeat(np.arange(len(parts)) + 1, [len(rows) for _, rows in parts])
        sizes = np.repeat([k for k, _ in parts], [len(rows) for _, rows in parts])
        every = np.concatenate([np.zeros((0, n + 1), np.int64), *(rows for _, rows in parts)])
        self.rows = np.column_stack([place, sizes, every])  # group, boxes a state, periods, indices

    def _enter(self, k: int, at: NDArray[np.int64], place: int) -> None:
        wide = len(self.order) // k
        for shift in product(range(wide), repeat=at.shape[1]):
            cells = tuple((at * wide + shift).T)
            self.order[cells] = np.minimum(self.order[cells], place)

    def verify(self, rows: NDArray[np.int64]) -> bool:
        """Whether the images of some boxes lie within earlier ones."""
        rows = rows[np.argsort(rows[:, 2], kind="stable")]
        width, depth = (self.upper - self.lower) / rows[:, 1:2], np.zeros(len(rows), np.int64)
        low, shifts = self.lower + rows[:, 3:] * width, list(product((0, 1), repeat=len(self.lower)))
        while len(rows):
            last = max(len(rows) - BATCH, 0)
            left = last + np.flatnonzero(~self._entered(low[last:], width[last:], rows[last:]))
            if (depth[left] == DEEPEST).any():
                return False
            halves, parts = 0.5 * width[left], np.concatenate([np.arange(last), *[left] * len(shifts)])
            low = np.concatenate([low[:last], *(low[left] + halves * shift for shift in shifts)])
            width = np.concatenate([width[:last], *[halves] * len(shifts)])
            rows, depth = rows[parts], depth[parts]
            depth[last:] += 1
        return True

    def _entered(self, low: Array, width: Array, rows: NDArray[np.int64]) -> Mask:
        """Which boxes (N, n) are within earlier ones after one of their periods."""
        n, count = low.shape[1], len(low)
        half, done, at = 0.5 * width * (1 + 1e-9), np.zeros(count, bool), np.arange(count)
        x = [Sloped(low[:, i] + 0.5 * width[:, i], np.zeros((0, count)), half[:, i]) for i in range(n)]
        for k in range(int(rows[:, 2].max())):
            x, inside = self.loop.after([number.opened(i, n) for i, number in enumerate(x)])
            ends = np.array([[number.range.low, number.range.high] for number in x])  # (n, 2, N)
            spans = (ends - self.lower[:, None, None]) / ((self.upper - self.lower) / len(self.order))[:, None, None]
            spans = np.floor(spans + np.array([-1e-9, 1e-9])[:, None])
            inside &= np.isfinite(spans).all((0, 1)) & (spans[:, 1] - spans[:, 0] < WIDEST * len(self.order)).all(0)
            for j in np.flatnonzero(inside):
                done[at[j]] = self._is_earlier(spans[:, :, j].astype(np.int64), rows[at[j], 0])
            going = np.flatnonzero(inside & ~done[at] & (rows[at, 2] > k + 1))
            if not len(going):
                break
            at, x = at[going], [number.rows(going) for number in x]
        return done

    def _is_earlier(self, span: NDArray[np.int64], place: int) -> bool:
        size = len(self.order)
        ranges = [np.arange(first, last + 1) for first, last in span]
        if any((r[0] < 0 or r[-1] >= size) and not wraps for r, wraps in zip(ranges, self.around, strict=True)):
            return False
        return bool((self.order[np.ix_(*(r % size for r in ranges))] < place).all())
