"""Branch and bound: a property shown box by box, the boxes of a domain halved until it holds in each.

Boxes are tried many at once, the smallest first, so that memory stays bounded and a gap is found early.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.proof.quantity import Quantity

Array = NDArray[np.float64]

BOXES = 4096  # at once
NARROWEST = 2.0**-40  # of the domain's width: a box below is left


@dataclass(frozen=True)
class Boxes:
    """Boxes with corners (N, d), and the share (N,) of the domain that each stands for."""

    lower: Array
    upper: Array
    share: Array

    def __getitem__(self, index: object) -> Boxes:
        return Boxes(self.lower[index], self.upper[index], self.share[index])  # type: ignore[index]

    def joined(self, other: Boxes) -> Boxes:
        """These, then others."""
        pairs = (self.lower, other.lower), (self.upper, other.upper), (self.share, other.share)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Shown:
    """How far a proof by subdivision came; it is complete where nothing is left."""

    left: float  # share of the domain that is undecided
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether the property is proven on the whole domain."""
        return self.left == 0.0


#: Boxes -> whether the property holds in each (N,); the boxes, perhaps shrunk to where it fails first; and how much
#: each side contributes to the doubt (N, d): the largest is halved, and where none is above zero nothing can be shown.
Judge = Callable[[Boxes], tuple[NDArray[np.bool_], Boxes, Array]]


def subdivided(lower: Array, upper: Array, judge: Judge, seconds: float) -> Shown:
    """Halve boxes until the property holds in all of them, or the time is over."""
    start = time.monotonic()
    left, waiting = 0.0, Boxes(lower[None], upper[None], np.ones(1))
    narrowest = NARROWEST * (upper - lower)
    while len(waiting.share) and time.monotonic() - start < seconds:
        tried, waiting = waiting[-BOXES:], waiting[:-BOXES]
        holds, tried, doubt = judge(tried)
        tried, doubt = tried[~holds], doubt[~holds]
        width = tried.upper - tried.lower
        doubt = np.where(width > narrowest, doubt, -1.0)
        side = doubt.argmax(axis=1)
        stuck = doubt[np.arange(len(side)), side] < 0
        left += float(tried.share[stuck].sum())
        waiting = waiting.joined(_halved(tried[~stuck], side[~stuck]))
        if left:
            break  # nothing will be complete
    return Shown(left + float(waiting.share.sum()), time.monotonic() - start)


def _halved(boxes: Boxes, side: NDArray[np.int64]) -> Boxes:
    rows = np.arange(len(side))
    middle = (boxes.lower[rows, side] + boxes.upper[rows, side]) / 2
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    upper[rows, side] = middle
    lower[rows, side] = middle
    return Boxes(boxes.lower, upper, boxes.share / 2).joined(Boxes(lower, boxes.upper, boxes.share / 2))


def positive(quantity: Quantity, zero: bool) -> Judge:
    """A quantity is positive, or not negative where it may be `zero`.

    Bounds are those of the graph and those of the mean value theorem, f(c) + f'(box) (box - c). Where the slope along a
    side has one sign, the least value is at one end of that side, and the box shrinks to it.
    """

    def judge(boxes: Boxes) -> tuple[NDArray[np.bool_], Boxes, Array]:
        with np.errstate(all="ignore"):
            low, high = quantity.slopes(boxes.lower, boxes.upper)
            upper = np.where(low >= 0, boxes.lower, boxes.upper)
            lower = np.where((high <= 0) & (low < 0), boxes.upper, boxes.lower)
            boxes = Boxes(lower, upper, boxes.share)
            least = quantity.enclosure(lower, upper)[0]
            centre, radius = (lower + upper) / 2, (upper - lower) / 2 * (1 + 1e-15)
            doubt = np.maximum(np.abs(low), np.abs(high)) * radius
            at_centre, most = quantity.enclosure(centre, centre)
            mean = at_centre - doubt.sum(axis=1) * (1 + 1e-14)
            least = np.fmax(least, mean)
        finite = np.where(np.isfinite(doubt), doubt, 1e300 * (radius > 0))
        hopeful = (radius > 0) & ~(most < 0)[:, None]
        return (least >= 0) if zero else (least > 0), boxes, np.where(hopeful, finite + radius * 1e-300, -1.0)

    return judge
