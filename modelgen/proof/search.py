"""The search for a violation: samples, local minimisation with exact slopes, bisection of a sign change."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from modelgen.arrays import Array
from modelgen.proof.guards import Domain
from modelgen.proof.quantity import Quantity

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
        minimize(objective, (start - lower) / width, jac=True, method="L-BFGS-B", bounds=within, options=options)
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
