"""Which combinations of parameters the recordings tell apart, and the confidence set as an ellipsoid.

The rank of the sensitivity, scaled by the declared bounds, splits the space into directions that the motion shows and
directions that it does not. Along the latter, the set reaches to the declared bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from modelgen.arrays import Array

RANK = 1e-7  # of the best visible combination: one that shows less is not seen, because the sensitivities are exact
NAMED = 0.05  # a parameter that takes this share of the largest part in a combination is named
EVEN = 6  # digits: parts that agree so far are named in the parameters' order, whatever the rounding

LEFT = 1e-6  # a direction of unit length with a smaller part in the first parameters has none there
DECLARED = 0.5  # a parameter moved by this share of half its range by directions that are not identified is not either


@dataclass(frozen=True)
class Directions:
    """Orthonormal columns in units of half of each parameter's range, so that 1 leads from its middle to a bound.

    Known parameters, such as references, are zero in all of them.
    """

    seen: Array  # (p, r)
    unseen: Array  # (p, p - known - r)
    condition: float  # the largest singular value over the least one of the seen directions


def directions(sensitivity: Array, known: Sequence[int] = ()) -> Directions:
    """Split the space of parameters; sensitivity: (..., p), in standard deviations for half of each range.

    known: indices of parameters that are not sought.
    """
    if known:
        sought = np.delete(np.arange(sensitivity.shape[-1]), known)
        found = directions(sensitivity[..., sought])
        whole = np.eye(sensitivity.shape[-1])[:, sought]
        return Directions(whole @ found.seen, whole @ found.unseen, found.condition)
    _, sizes, rows = np.linalg.svd(np.linalg.qr(sensitivity.reshape(-1, sensitivity.shape[-1]), mode="r"))
    sizes = np.pad(sizes, (0, len(rows) - len(sizes)))
    visible = sizes > RANK * max(float(sizes[0]), 1e-300)
    condition = float(sizes[0] / sizes[visible][-1]) if visible.any() else float("inf")
    return Directions(rows[visible].T, rows[~visible].T, condition)


def readable(basis: Array) -> Array:
    """Columns that span the same space as `basis` (p, k) with more zeros: its reduced echelon form."""
    rows = basis.T.copy()
    for index in range(len(rows)):
        pivot = int(np.abs(rows[index]).argmax())
        rows[index] /= rows[index, pivot]
        others = np.arange(len(rows)) != index
        rows[others] -= np.outer(rows[others, pivot], rows[index])
    return np.asarray((rows / np.abs(rows).max(axis=1, keepdims=True, initial=1e-300)).T)


def deciding(unseen: Array) -> list[int]:
    """As many parameters as there are columns in `unseen` (p, k): with these known, no combination is left open.

    A QR decomposition with pivots chooses them (P. Businger and G. Golub, Numer. Math. 7, 1965).
    """
    return sorted(int(index) for index in qr(unseen.T, mode="r", pivoting=True)[1][: unseen.shape[1]])


def in_words(names: Sequence[str], change: Array, theta: Array) -> str:
    """A direction in words, as parameters that change together; change: (p,) in the parameters' units."""
    share = np.where(theta != 0, change / np.where(theta != 0, theta, 1.0), 0.0)
    as_share = bool((np.abs(share) > 0).all() or (theta[change != 0] != 0).all())
    sizes = share if as_share else change
    order = np.argsort(-np.round(np.abs(sizes) / np.abs(sizes).max(), EVEN), kind="stable")
    sizes = sizes / sizes[order[0]]
    parts = [
        f"{names[index]} {'up' if sizes[index] > 0 else 'down'} by {abs(sizes[index]) * (10 if as_share else 1):.3g}"
        f"{' %' if as_share else ''}"
        for index in order
        if abs(sizes[index]) > NAMED
    ]
    return " with ".join(parts)


@dataclass(frozen=True)
class Ellipsoid:
    """All theta with (theta - centre)' P^-1 (theta - centre) <= 1, P = shape, and the interval of each parameter."""

    centre: Array  # (p,)
    shape: Array  # (p, p), in the parameters' units
    lower: Array  # (p,)
    upper: Array  # (p,)
    identified: NDArray[np.bool_]  # (p,)
    unidentified: Array  # (p, k), directions in units of half of each range
    exact: NDArray[np.bool_]  # (k,) whether the motion does not depend on the direction at all

    def projected(self, count: int) -> Ellipsoid:
        """The projection on the first `count` parameters, with the part there of directions that are not identified."""
        first = slice(count)
        kept = np.linalg.norm(self.unidentified[first], axis=0) > LEFT
        boxes = self.lower[first], self.upper[first], self.identified[first]
        left = self.unidentified[first][:, kept]
        directions = left / np.linalg.norm(left, axis=0), self.exact[kept]
        return Ellipsoid(self.centre[first], self.shape[first, first], *boxes, *directions)


def ellipsoid(centre: Array, bounds: Array, visible: Directions, squared: Array) -> Ellipsoid:
    """The set about a fit `centre` (p,) within bounds (p, 2).

    squared: (r, r), the set's shape in the seen directions, in units of half ranges. A direction in which the set is as
    wide as the bounds counts as not identified. Along such directions, and along unseen ones, the set reaches no
    farther than it must to hold the box of the bounds. The centre is the fit where the set about it stays within the
    bounds; `_inside` gives it in any other case.
    """
    lower, upper = bounds.T
    half = (upper - lower) / 2
    sizes, vectors = np.linalg.eigh((squared + squared.T) / 2)
    axes = visible.seen @ vectors
    wide = sizes >= 1.0 / np.abs(axes).max(axis=0, initial=0.0) ** 2
    known = axes[:, ~wide]
    centre = _inside(centre, bounds, known * np.maximum(sizes[~wide], 0.0) @ known.T, (known**2).sum(axis=1) > 0.5)
    all_axes = np.hstack([axes, visible.unseen])
    unknown = np.concatenate([wide, np.ones(visible.unseen.shape[1], bool)])
    lengths = np.sqrt(np.concatenate([np.maximum(sizes, 0.0), np.full(visible.unseen.shape[1], np.inf)]))
    room = np.maximum(centre - lower, upper - centre) / half
    farthest = room @ np.abs(all_axes)
    moved = np.sqrt(((all_axes * np.minimum(lengths, farthest)) ** 2)[:, unknown].sum(axis=1))
    identified = moved < DECLARED
    # Two ellipsoids hold a box of k sides: with axes the square root of k times as long, and the ball to its corners.
    holding = np.minimum(farthest * np.sqrt(unknown.sum()), np.linalg.norm(room))
    lengths[unknown] = np.minimum(lengths, holding)[unknown]
    scaled = all_axes * lengths
    width = half * np.sqrt((scaled**2).sum(axis=1))
    return Ellipsoid(
        centre,
        (scaled * half[:, None]) @ (scaled * half[:, None]).T,
        np.where(identified, np.maximum(centre - width, lower), lower),
        np.where(identified, np.minimum(centre + width, upper), upper),
        identified,
        np.hstack([axes[:, wide], visible.unseen]),
        np.repeat([False, True], [int(wide.sum()), visible.unseen.shape[1]]),
    )


def _inside(fit: Array, bounds: Array, squared: Array, known: NDArray[np.bool_]) -> Array:
    """The centre (p,) for a fit (p,) within bounds (p, 2); squared: (p, p), in units of half ranges. known: (p,), the
    parameters that are not left open.

    Where a bound cuts off a part of an interval, the truth is in the rest. The middle of the rest takes the place of
    the fit, and the other parameters follow as in a fit at this value. An ellipsoid about a bound, such as no friction,
    would leave a training no room.
    """
    lower, upper = bounds.T
    half = (upper - lower) / 2
    width = np.sqrt(np.diag(squared))
    cut = [np.maximum(width - room / half, 0.0) for room in (fit - lower, upper - fit)]
    at = np.flatnonzero((cut[0] != cut[1]) & known & (width > LEFT))
    moves = ((cut[0] - cut[1]) / 2)[at]
    follow = squared[:, at] @ np.linalg.pinv(squared[np.ix_(at, at)], hermitian=True)
    return np.asarray(np.clip(fit + half * (follow @ moves), lower, upper))
