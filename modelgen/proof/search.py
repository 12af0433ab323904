"""The search for a violation: samples, local minimisation with exact slopes, bisection of a change of sign."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from modelgen.proof.guards import Domain
from modelgen.proof.quantity import Quantity

Array = NDArray[np.float64]

SAMPLES, STARTS, STEPS = 2048, 16, 200
POLISHES, STEP = 6, 1e-6  # steps of Newton's method, and that of the differences of slopes, beside the domain's width
NEAR = 4e-15  # beside the largest coordinate: the accuracy of a polished minimum
BISECTIONS = 200  # more than the digits of a double


@dataclass(frozen=True)
class Least:
    """The smallest value that was found of a quantity that should be positive."""

    value: float
    point: Array  # (d,)
    refuted: bool  # whether it is zero, to within rounding, or negative, where it may not be
    sign: int = 1  # of the quantity, where either is allowed


def search(
    quantity: Quantity, seconds: float, *, zero: bool = False, either: bool = False, slack: float = 0.0
) -> Least:
    """The least value of a quantity on its domain, as far as it was found in that processor time.

    A value counts as zero where its enclosure within a few roundings of that point contains zero. zero: the quantity
    may be zero and is refuted by a value below -slack alone. either: it may be negative everywhere instead.
    """
    until = time.process_time() + seconds
    points = sampled(quantity.domain)
    values = quantity.values(points)
    known = np.isfinite(values)  # another guard is broken elsewhere
    if not known.any():
        return Least(np.nan, points[0], False)
    points, values = points[known], values[known]
    if either and values.max() < 0:
        found = search(quantity.negated(), seconds, zero=zero, slack=slack)
        return Least(found.value, found.point, found.refuted, -1)
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
        return Least(least, best, bool(high[0] < -slack))
    if least < 0:
        positive = values > 0
        best = root(quantity, best, points[positive][0]) if positive.any() else best
        return Least(0.0 if positive.any() else least, best, True)
    around = NEAR * np.maximum(np.abs(quantity.domain.lower), np.abs(quantity.domain.upper))
    low, _ = quantity.enclosure(best[None] - around, best[None] + around)
    return Least(least, best, bool(low[0] <= 0))


def sampled(domain: Domain) -> Array:
    """Points (N, d): the centre, corners and points within."""
    lower, upper = domain.lower, domain.upper
    random = np.random.default_rng(0)
    shares = random.uniform(size=(SAMPLES, len(lower)))
    shares[0] = 0.5
    shares[1 : SAMPLES // 8] = np.round(shares[1 : SAMPLES // 8])
    points: Array = lower + shares * (upper - lower)
    return points


def _starts(points: Array, order: NDArray[np.int64]) -> Array:
    """Half of the starts are the best samples, the others any."""
    half = STARTS // 2
    chosen: Array = points[np.concatenate([order[:half], order[half :: max(1, len(order) // half)]])]
    return chosen


class _Enough(Exception):
    """Ends a minimisation."""


def _descended(quantity: Quantity, start: Array, until: float, enough: float) -> tuple[Array, float]:
    """The end of L-BFGS-B from a start, in coordinates that run from 0 to 1.

    It ends before at a value below `enough`, and at a step that is not finite.
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
        minimize(objective, (start - lower) / width, jac=True, method="L-BFGS-B", bounds=within, options=options)
    return best


def _polished(quantity: Quantity, point: Array, value: float) -> tuple[Array, float]:
    """Newton's method from a minimum, on the sides of the domain where it is not at an end."""
    lower, upper = quantity.domain.lower, quantity.domain.upper
    for _ in range(POLISHES):
        _, slope = quantity.value_and_slope(point)
        free = np.flatnonzero(~((point <= lower) & (slope >= 0)) & ~((point >= upper) & (slope <= 0)))
        steps = STEP * (upper - lower)[free]
        moves = np.eye(len(point))[free] * steps[:, None]
        beside = [
            (quantity.value_and_slope(point + move)[1], quantity.value_and_slope(point - move)[1]) for move in moves
        ]
        curvature = np.array([(a - b)[free] / (2 * step) for (a, b), step in zip(beside, steps, strict=True)])
        if not len(free) or not np.isfinite(curvature).all():
            break
        moved = point.copy()
        moved[free] -= np.linalg.lstsq(curvature, slope[free], rcond=1e-9)[0]
        moved = np.clip(moved, lower, upper)
        found, _ = quantity.value_and_slope(moved)
        if not found <= value:
            break
        point, value = moved, found
    return point, value


def root(quantity: Quantity, negative: Array, positive: Array) -> Array:
    """The point on a line between two where the quantity is smallest in size: where it changes its sign."""
    ends = [negative, positive]
    for _ in range(BISECTIONS):
        middle = (ends[0] + ends[1]) / 2
        ends[int(quantity.values(middle[None])[0] > 0)] = middle
    return min(ends, key=lambda end: abs(float(quantity.values(end[None])[0])))
