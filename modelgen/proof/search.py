"""Branch and bound: a property is proven box by box; boxes are halved until it holds in each.

Many boxes are tested at once, the smallest first. Memory stays bounded, and a violation is found early.

A violation is searched for by samples, local minimisation with exact slopes, bisection of a sign change.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from modelgen.arrays import Array
from modelgen.proof.guards import Domain, Quantity
from modelgen.proof.loops import EnclosedLoop

BOXES = 4096  # tested at once
STEEPEST = 1e250  # in place of a slope that does not exist
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
    a side has one sign, the minimum is at one end of that side, and the box shrinks to that end. Neither holds in a box
    in which the quantity may jump.
    """
    signs = quantity.graph.of_kind([quantity.node], "sign")

    def judge(boxes: Boxes) -> Judgement:
        with np.errstate(all="ignore"):
            jumps = quantity.within.changing(signs, boxes.lower, boxes.upper)[:, None]
            low, high = quantity.slopes(boxes.lower, boxes.upper)
            upper = np.where((low >= 0) & ~jumps, boxes.lower, boxes.upper)
            lower = np.where((high <= 0) & (low < 0) & ~jumps, boxes.upper, boxes.lower)
            least = quantity.enclosure(lower, upper)[0]
            centre, radius = (lower + upper) / 2, (upper - lower) / 2 * (1 + 1e-15)
            doubt = np.maximum(np.abs(low), np.abs(high)) * radius
            doubt = np.where(jumps, STEEPEST * radius, doubt)
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


SAMPLES, STARTS, STEPS = 2048, 16, 200
POLISHES, STEP = 6, 1e-6  # steps of Newton's method; step of its differences of slopes, relative to the domain's width
NEAR = 4e-15  # accuracy of a polished minimum, relative to the largest coordinate
BISECTIONS = 200  # more than the digits of a double


@dataclass(frozen=True)
class Minimum:
    """The smallest value found of a quantity that should be positive."""

    value: float
    point: Array  # (d,)
    refuted: bool  # whether the value violates the property, to within rounding
    sign: int = 1  # of the quantity, if either sign is allowed


def search(
    quantity: Quantity, seconds: float, *, zero: bool = False, either: bool = False, slack: float = 0.0
) -> Minimum:
    """The smallest value of a quantity on its domain that is found within `seconds` of processor time.

    A value counts as zero if its enclosure within a few roundings of the point contains zero. zero: the quantity may be
    zero; only a value below -slack refutes it. either: the quantity may be negative everywhere instead.
    """
    until = time.process_time() + seconds
    points = sampled(quantity.domain)
    values = quantity.values(points)
    known = np.isfinite(values)  # a value that is not finite violates another guard
    if not known.any():
        return Minimum(np.nan, points[0], False)
    points, values = points[known], values[known]
    if either and values.max() < 0:
        minimum = search(quantity.negated(), seconds, zero=zero, slack=slack)
        return Minimum(minimum.value, minimum.point, minimum.refuted, -1)
    order = np.argsort(values)
    best, least = points[order[0]], float(values[order[0]])
    for start in _starts(points, order):
        if (least < 0 and not zero) or time.process_time() > until:
            break
        point, value = _descended(quantity, start, until, -np.inf if zero else 0.0)
        if value < least:
            best, least = point, value
    if np.isfinite(least) and not (least < 0 and not zero):
        best, least = _polished(quantity, best, least)
    if zero:
        _, high = quantity.enclosure(best[None], best[None])
        return Minimum(least, best, bool(high[0] < -slack))
    if least < 0:
        positive = values > 0
        best = root(quantity, best, points[positive][0]) if positive.any() else best
        return Minimum(0.0 if positive.any() else least, best, True)
    around = NEAR * np.maximum(np.abs(quantity.domain.lower), np.abs(quantity.domain.upper))
    low, _ = quantity.enclosure(best[None] - around, best[None] + around)
    return Minimum(least, best, bool(low[0] <= 0))


def sampled(domain: Domain) -> Array:
    """Points (N, d): the centre, corners, and points inside."""
    lower, upper = domain.lower, domain.upper
    random = np.random.default_rng(0)
    shares = random.uniform(size=(SAMPLES, len(lower)))
    shares[0] = 0.5
    shares[1 : SAMPLES // 8] = np.round(shares[1 : SAMPLES // 8])
    points: Array = lower + shares * (upper - lower)
    return points


def _starts(points: Array, order: NDArray[np.int64]) -> Array:
    """Start points (STARTS, d): half of them are the best samples, the others are spread over all ranks."""
    half = STARTS // 2
    chosen: Array = points[np.concatenate([order[:half], order[half :: max(1, len(order) // half)]])]
    return chosen


class _Enough(Exception):
    """Ends a minimisation."""


def _descended(quantity: Quantity, start: Array, until: float, enough: float) -> tuple[Array, float]:
    """The end (point, value) of L-BFGS-B from a start, in coordinates from 0 to 1.

    It stops early at a value below `enough`, and at a value that is not finite.
    """
    lower, width = quantity.domain.lower, quantity.domain.upper - quantity.domain.lower
    best: tuple[Array, float] = start, np.inf

    def objective(share: Array) -> tuple[float, Array]:
        nonlocal best
        point = np.clip(lower + share * width, lower, lower + width)
        value, slope = quantity.value_and_slope(point)
        if not np.isfinite(value) or not np.isfinite(slope).all() or time.process_time() > until:
            raise _Enough
        if value < best[1]:
            best = point, value
        if value < enough:
            raise _Enough
        return value, slope * width

    options = {"maxiter": STEPS, "ftol": 0.0, "gtol": 0.0}
    within = [(0.0, 1.0)] * len(start)
    with contextlib.suppress(_Enough):
        begin = (start - lower) / width
        scipy.optimize.minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=within, options=options)
    return best


def _polished(quantity: Quantity, point: Array, value: float) -> tuple[Array, float]:
    """Newton's method from a minimum, in the coordinates that are not at a bound."""
    lower, upper = quantity.domain.lower, quantity.domain.upper
    for _ in range(POLISHES):
        _, slope = quantity.value_and_slope(point)
        free = np.flatnonzero(~((point <= lower) & (slope >= 0)) & ~((point >= upper) & (slope <= 0)))
        steps = STEP * (upper - lower)[free]
        moves = np.eye(len(point))[free] * steps[:, None]
        sides = [
            (quantity.value_and_slope(point + move)[1], quantity.value_and_slope(point - move)[1]) for move in moves
        ]
        curvature = np.array([(a - b)[free] / (2 * step) for (a, b), step in zip(sides, steps, strict=True)])
        if not len(free) or not np.isfinite(curvature).all():
            break
        moved = point.copy()
        moved[free] -= np.linalg.lstsq(curvature, slope[free], rcond=1e-9)[0]
        moved = np.clip(moved, lower, upper)
        moved_value, _ = quantity.value_and_slope(moved)
        if not moved_value <= value:
            break
        point, value = moved, moved_value
    return point, value


def root(quantity: Quantity, negative: Array, positive: Array) -> Array:
    """The point between two where the quantity changes its sign, by bisection."""
    ends = [negative, positive]
    for _ in range(BISECTIONS):
        middle = (ends[0] + ends[1]) / 2
        ends[int(quantity.values(middle[None])[0] > 0)] = middle
    return min(ends, key=lambda end: abs(float(quantity.values(end[None])[0])))
