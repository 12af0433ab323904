"""Branch and bound: a property is proven box by box; boxes are halved until it holds in each.

Many boxes are tested at once, the smallest first. Memory stays bounded, and a violation is found early.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.proof.guards import Domain
from modelgen.proof.loops import EnclosedLoop
from modelgen.proof.quantity import Quantity

BOXES = 4096  # tested at once
NARROWEST = 2.0**-40  # of the domain's width; a narrower box is not halved


@dataclass(frozen=True)
class Boxes:
    """Boxes with corners (N, d), and the share (N,) of the domain that each covers."""

    lower: Array
    upper: Array
    share: Array

    def __getitem__(self, index: Any) -> Boxes:
        return Boxes(self.lower[index], self.upper[index], self.share[index])

    def joined(self, other: Boxes) -> Boxes:
        """These boxes, then the others."""
        pairs = (self.lower, other.lower), (self.upper, other.upper), (self.share, other.share)
        return Boxes(*(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class ProofProgress:
    """Progress of a proof by subdivision. It is complete if nothing is left."""

    left: float  # share of the domain that is undecided
    seconds: float
    violation: Array | None = None  # a point (d,) where the property does not hold

    @property
    def complete(self) -> bool:
        """Whether the property is proven on the whole domain."""
        return self.left == 0.0


@dataclass(frozen=True)
class Judgement:
    """The knowledge about a property in boxes."""

    holds: NDArray[np.bool_]  # (N,) in the whole box
    broken: NDArray[np.bool_]  # (N,) at the centre of the box
    boxes: Boxes  # the boxes, possibly shrunk to the part where the property would fail first
    doubt: Array  # (N, d) contribution of each side to the doubt; the side with the largest is halved


Judge = Callable[[Boxes], Judgement]


def subdivide(lower: Array, upper: Array, judge: Judge, seconds: float) -> ProofProgress:
    """Halve boxes until the property holds in all of them, or `seconds` of processor time are over."""
    start = time.process_time()
    waiting = Boxes(lower[None], upper[None], np.ones(1))
    narrowest = NARROWEST * (upper - lower)
    while len(waiting.share) and time.process_time() - start < seconds:
        tested, rest = waiting[-BOXES:], waiting[:-BOXES]
        judgement = judge(tested)
        if judgement.broken.any():
            box = judgement.boxes[judgement.broken]
            middle = (box.lower[0] + box.upper[0]) / 2
            return ProofProgress(float(waiting.share.sum()), time.process_time() - start, middle)
        tested, doubt = judgement.boxes[~judgement.holds], judgement.doubt[~judgement.holds]
        doubt = np.where(tested.upper - tested.lower > narrowest, doubt + 1e-300, -1.0)
        if (doubt.max(axis=1, initial=-1.0) < 0).any():
            break  # a box is too narrow to be halved, so that the proof cannot be completed
        waiting = rest.joined(_halved(tested, doubt.argmax(axis=1)) if len(tested.share) else tested)
    return ProofProgress(float(waiting.share.sum()), time.process_time() - start)


def _halved(boxes: Boxes, side: NDArray[np.int64]) -> Boxes:
    rows = np.arange(len(side))
    middle = (boxes.lower[rows, side] + boxes.upper[rows, side]) / 2
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    upper[rows, side] = middle
    lower[rows, side] = middle
    return Boxes(boxes.lower, upper, boxes.share / 2).joined(Boxes(lower, boxes.upper, boxes.share / 2))


def positive(quantity: Quantity, zero: bool, slack: float = 0.0) -> Judge:
    """Judge of a quantity that must be positive, or not negative if `zero`. A value below -slack violates it.

    The bounds are those of the graph and those of the mean value theorem, f(c) + f'(box) (box - c). If the slope along
    a side has one sign, the minimum is at one end of that side, and the box shrinks to that end.
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


def prove_closed(loop: EnclosedLoop, domain: Domain, seconds: float) -> ProofProgress:
    """The progress of the proof that a loop closes and is regular; the symbols of the domain are its variables."""
    order = [domain.symbols.index(symbol) for symbol in loop.closure.variables]

    def judge(boxes: Boxes) -> Judgement:
        holds, doubt = loop.closes(boxes.lower, boxes.upper)
        return Judgement(holds, np.zeros(len(holds), np.bool_), boxes, doubt)

    return subdivide(domain.lower[order], domain.upper[order], judge, seconds)
