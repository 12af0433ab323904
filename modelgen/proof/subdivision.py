"""Branch and bound: a property shown box by box, the boxes of a domain halved until it holds in each.

Boxes are tried many at once, the smallest first, so that memory stays bounded and a gap is found early.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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

    def __getitem__(self, index: Any) -> Boxes:
        return Boxes(self.lower[index], self.upper[index], self.share[index])

    def joined(self, other: Boxes) -> Boxes:
        """These, then others."""
        pairs = (self.lower, other.lower), (self.upper, other.upper), (self.share, other.share)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class Shown:
    """How far a proof by subdivision came; it is complete where nothing is left."""

    left: float  # share of the domain that is undecided
    seconds: float
    violation: Array | None = None  # a point (d,) where the property does not hold

    @property
    def complete(self) -> bool:
        """Whether the property is proven on the whole domain."""
        return self.left == 0.0


@dataclass(frozen=True)
class Judgement:
    """What is known of a property in boxes."""

    holds: NDArray[np.bool_]  # (N,) in the whole box
    broken: NDArray[np.bool_]  # (N,) it does not hold at the centre of the box
    boxes: Boxes  # the boxes, perhaps shrunk to where the property fails first
    doubt: Array  # (N, d) what each side contributes to the doubt: the largest is halved


Judge = Callable[[Boxes], Judgement]


def subdivided(lower: Array, upper: Array, judge: Judge, seconds: float) -> Shown:
    """Halve boxes until the property holds in all of them, or that processor time is over."""
    start = time.process_time()
    waiting = Boxes(lower[None], upper[None], np.ones(1))
    narrowest = NARROWEST * (upper - lower)
    while len(waiting.share) and time.process_time() - start < seconds:
        tried, rest = waiting[-BOXES:], waiting[:-BOXES]
        found = judge(tried)
        if found.broken.any():
            box = found.boxes[found.broken]
            return Shown(float(waiting.share.sum()), time.process_time() - start, (box.lower[0] + box.upper[0]) / 2)
        tried, doubt = found.boxes[~found.holds], found.doubt[~found.holds]
        doubt = np.where(tried.upper - tried.lower > narrowest, doubt + 1e-300, -1.0)
        if (doubt.max(axis=1, initial=-1.0) < 0).any():
            break  # nothing will be complete
        waiting = rest.joined(_halved(tried, doubt.argmax(axis=1)) if len(tried.share) else tried)
    return Shown(float(waiting.share.sum()), time.process_time() - start)


def _halved(boxes: Boxes, side: NDArray[np.int64]) -> Boxes:
    rows = np.arange(len(side))
    middle = (boxes.lower[rows, side] + boxes.upper[rows, side]) / 2
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    upper[rows, side] = middle
    lower[rows, side] = middle
    return Boxes(boxes.lower, upper, boxes.share / 2).joined(Boxes(lower, boxes.upper, boxes.share / 2))


def positive(quantity: Quantity, zero: bool, slack: float = 0.0) -> Judge:
    """A quantity is positive, or not negative where it may be `zero`; it is broken by a value below -`slack`.

    Bounds are those of the graph and those of the mean value theorem, f(c) + f'(box) (box - c). Where the slope along a
    side has one sign, the least value is at one end of that side, and the box shrinks to it.
    """

    def judge(boxes: Boxes) -> Judgement:
        with np.errstate(all="ignore"):
            low, high = quantity.slopes(boxes.lower, boxes.upper)
            upper = np.where(low >= 0, boxes.lower, boxes.upper)
            lower = np.where((high <= 0) & (low < 0), boxes.upper, boxes.lower)
            least = quantity.enclosure(lower, upper)[0]
            centre, radius = (lower + upper) / 2, (upper - lower) / 2 * (1 + 1e-15)
            doubt = np.maximum(np.abs(low), np.abs(high)) * radius
            at_centre, most = quantity.enclosure(centre, centre)
            least = np.fmax(least, at_centre - doubt.sum(axis=1) * (1 + 1e-14))
            holds = (least >= 0) if zero else (least > 0)
            broken = (most < -slack) if zero else (most <= 0)
        return Judgement(holds, broken, Boxes(lower, upper, boxes.share), np.nan_to_num(doubt, nan=1e300, posinf=1e300))

    return judge
