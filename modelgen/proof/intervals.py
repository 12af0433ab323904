"""Interval arithmetic on a graph: enclosures of its nodes over many boxes at once, with bounds rounded outward.

IEEE 754 rounds sums, products, quotients and square roots correctly; other functions are accurate to a few units in the
last place. A bound of exactly zero stays zero, so that squares are never negative. If an argument leaves the domain of
a root or logarithm, the enclosure covers the part inside; a separate guard proves that no part is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from modelgen.arrays import Array
from modelgen.program.graph import Graph, Node

Interval = tuple[Array, Array]  # lower and upper bounds, of one shape

EXACT, LIBRARY = 1.2e-16, 2e-15  # relative errors: half a unit in the last place, nine units
TURN, HALF = 2 * np.pi, np.pi / 2
SLACK = 1e-9  # rad: an extremum of a sine this close to an interval counts as inside


def enclosures(graph: Graph, roots: Sequence[Node], inputs: Sequence[Node], lower: Array, upper: Array) -> Interval:
    """Bounds (N, roots) of nodes over boxes. lower, upper: bounds (N, inputs) of the input nodes."""
    count = len(lower)
    lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
    values: dict[Node, Interval] = {node: (lower[:, k], upper[:, k]) for k, node in enumerate(inputs)}
    with np.errstate(all="ignore"):
        for node in graph.reachable(roots):
            if node in values:
                continue
            operation = graph.operations[node]
            arguments = operation.arguments
            if operation.kind == "constant":
                values[node] = (np.float64(operation.value), np.float64(operation.value))  # type: ignore[assignment]
            elif operation.kind == "mul" and arguments[0] == arguments[1]:
                values[node] = _square(values[arguments[0]])
            else:
                values[node] = RULES[operation.kind](*(values[argument] for argument in arguments))
    ends = [[np.broadcast_to(values[root][end], count) for root in roots] for end in (0, 1)]
    if not roots:
        return np.empty((count, 0)), np.empty((count, 0))
    return np.stack(ends[0], axis=1), np.stack(ends[1], axis=1)


def product(a: Interval, b: Interval) -> Interval:
    """The products of all numbers of two intervals."""
    ends = [a[i] * b[j] for i in (0, 1) for j in (0, 1)]
    # an infinite end means numbers without bound, each of which times 0 is 0
    ends = [np.where(np.isnan(end), 0.0, end) for end in ends]
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    return _rounded(low, high, EXACT)


def total(a: Interval, b: Interval) -> Interval:
    """The sums of all numbers of two intervals."""
    return _rounded(a[0] + b[0], a[1] + b[1], EXACT)


def _rounded(low: Array, high: Array, relative: float) -> Interval:
    low, high = low - relative * np.abs(low), high + relative * np.abs(high)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _square(a: Interval) -> Interval:
    ends = a[0] ** 2, a[1] ** 2
    inside = (a[0] <= 0) & (a[1] >= 0)
    return _rounded(np.where(inside, 0.0, np.minimum(*ends)), np.maximum(*ends), EXACT)


def _quotient(a: Interval, b: Interval) -> Interval:
    pole = (b[0] <= 0) & (b[1] >= 0)
    reciprocal = _rounded(1 / b[1], 1 / b[0], EXACT)
    low, high = product(a, reciprocal)
    return np.where(pole, -np.inf, low), np.where(pole, np.inf, high)


def _wave(function: Callable[[Array], Array], least: float, most: float) -> Callable[..., Interval]:
    """A sine or cosine with its minimum -1 at `least` and its maximum 1 at `most`, periodic in 2 pi."""

    def rule(a: Interval) -> Interval:
        ends, bounds = (function(a[0]), function(a[1])), []
        for at, extreme, end in ((least, -1.0, np.minimum(*ends)), (most, 1.0, np.maximum(*ends))):
            inside = np.floor((a[1] + SLACK - at) / TURN) >= np.ceil((a[0] - SLACK - at) / TURN)
            bounds.append(np.where(inside | ~np.isfinite(a[1] - a[0]), extreme, end))
        low, high = _rounded(bounds[0], bounds[1], LIBRARY)
        return np.maximum(low, -1.0), np.minimum(high, 1.0)

    return rule


def _rising(
    function: Callable[[Array], Array], least: float = -np.inf, most: float = np.inf
) -> Callable[..., Interval]:
    """An increasing function, defined between `least` and `most`."""

    def rule(a: Interval) -> Interval:
        return _rounded(function(np.clip(a[0], least, most)), function(np.clip(a[1], least, most)), LIBRARY)

    return rule


def _magnitude(a: Interval) -> Interval:
    ends = np.abs(a[0]), np.abs(a[1])
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, np.minimum(*ends)), np.maximum(*ends)


def _hyperbolic_cosine(a: Interval) -> Interval:
    low, high = _magnitude(a)
    return _rounded(np.cosh(low), np.cosh(high), LIBRARY)


def _arccosine(a: Interval) -> Interval:
    return _rounded(np.arccos(np.clip(a[1], -1, 1)), np.arccos(np.clip(a[0], -1, 1)), LIBRARY)


def _power(a: Interval, exponent: Interval) -> Interval:
    """A power with a constant exponent that is not an integer, of a positive argument."""
    low, high = (np.power(np.maximum(end, 0.0), exponent[0]) for end in a)
    return _rounded(np.minimum(low, high), np.maximum(low, high), LIBRARY)


def _angle(y: Interval, x: Interval) -> Interval:
    """atan2. Precise unless the interval meets the seam y = 0, x <= 0; otherwise any angle."""
    right, (low, high) = x[0] > 0, _rising(np.arctan)(_quotient(y, x))
    side = np.where(y[0] > 0, HALF, np.where(y[1] < 0, -HALF, np.nan))  # above or below the seam
    turned = _rising(np.arctan)(_quotient(x, y))
    beside = _rounded(side - turned[1], side - turned[0], LIBRARY)
    sure, widest = ~np.isnan(side), np.pi * (1 + LIBRARY)
    return (
        np.where(right, low, np.where(sure, beside[0], -widest)),
        np.where(right, high, np.where(sure, beside[1], widest)),
    )


#: Kind of operation -> rule. The product of a node with itself is handled as a square before.
RULES: dict[str, Callable[..., Interval]] = {
    "add": total,
    "sub": lambda a, b: total(a, (-b[1], -b[0])),
    "mul": product,
    "div": _quotient,
    "negative": lambda a: (-a[1], -a[0]),
    "solution": lambda a: a,
    "sin": _wave(np.sin, -HALF, HALF),
    "cos": _wave(np.cos, np.pi, 0.0),
    "asin": _rising(np.arcsin, -1, 1),
    "acos": _arccosine,
    "atan": _rising(np.arctan),
    "sinh": _rising(np.sinh),
    "cosh": _hyperbolic_cosine,
    "tanh": _rising(np.tanh),
    "exp": _rising(np.exp),
    "log": _rising(np.log, 0.0),
    "log1p": _rising(np.log1p, -1.0),
    "sqrt": _rising(np.sqrt, 0.0),
    "abs": _magnitude,
    "sign": lambda a: (np.sign(a[0]), np.sign(a[1])),
    "atan2": _angle,
    "pow": _power,
    "minimum": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "maximum": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
}
