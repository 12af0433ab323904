"""Confidence set: which combinations of parameters the recordings show, and how far the truth may be from the fit.

The rank of the sensitivity, scaled by the declared bounds, splits the space into directions that the motion shows and
directions that it does not. Along the latter, the set reaches to the declared bounds.

Textbook standard errors take residuals for independent. Those of a real robot are not, because its model is not exact.
The covariance H^-1 (sum of g g') H^-1 (K.-Y. Liang and S. Zeger, "Longitudinal data analysis using generalized linear
models", Biometrika 73, 1986) sums the scores g over blocks that are longer than the residual's correlation. A fit has
small residuals in the block that says most, so that the sum is too small where few blocks say much: each g is divided
by the share of the information that the other blocks have (R. Bell and D. McCaffrey, "Bias reduction in standard errors
for linear regression with multi-stage samples", Survey Methodology 28, 2002; their jackknife).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.special import fdtri

from modelgen.arrays import Array
from modelgen.errors import ModelError
from modelgen.identification.fit import Settled, bends, weights
from modelgen.identification.windows import Windows

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


LEVEL = 0.95
UNCORRELATED = 0.1  # the residual's correlation has ended where it is below this
LONGER = 3  # times that a block is longer than the correlation


@dataclass(frozen=True)
class Scores:
    """Gradient of the loss (N, r) and its curvature (N, r, r) of every window, in the seen directions."""

    gradient: Array
    curvature: Array


def scores(settled: Settled, scale: Array) -> Scores:
    """Scores by the columns of scale (p, r), in the parameters' units. The loss is `soft_l1`, as in the fit."""
    J = settled.sensitivity @ scale
    weight = weights(settled.residuals, robust=True)
    return Scores(
        np.einsum("kwi,kwi,kwia->wa", weight, settled.residuals, J, optimize=True),
        np.einsum("kwia,kwi,kwib->wab", J, bends(settled.residuals, robust=True), J, optimize=True),
    )


def moved(before: Array, after: Array) -> float:
    """Squared change of residuals (K, N, n), weighted by the curvature of the loss.

    Where motions are linear in theta, this is the change of theta in the metric of the curvature. It is zero for a
    change of theta that moves nothing.
    """
    return float((bends(before, robust=True) * (after - before) ** 2).sum())


def correlation_seconds(windows: Windows, residuals: Array) -> float:
    """The first lag at which the residual's correlation is below UNCORRELATED, the longest of all sensors."""
    longest = 0
    for index in range(residuals.shape[2]):
        products = np.zeros(residuals.shape[0] * residuals.shape[1])
        for recording in np.unique(windows.recording):
            which = windows.recording == recording
            known = ~np.isnan(windows.measured[:, which, index])
            series = residuals[:, which, index].T[known.T]
            power = np.abs(np.fft.rfft(series, 2 * len(series) + 1)) ** 2
            products[: len(series)] += np.fft.irfft(power, 2 * len(series) + 1)[: len(series)]
        if products[0] > 0:
            longest = max(longest, int((products < UNCORRELATED * products[0]).argmax()))
    return longest * windows.period


def blocks(windows: Windows, correlation: float) -> NDArray[np.intp]:
    """The block of every window (N,): neighbours in one recording, together longer than the correlation (s)."""
    size = max(1, math.ceil(LONGER * correlation / windows.seconds - 1e-9))
    block, count = np.zeros(len(windows.recording), np.intp), 0
    for recording in np.unique(windows.recording):
        which = np.flatnonzero(windows.recording == recording)
        parts = max(1, len(which) // size)
        block[which] = count + np.arange(len(which)) * parts // len(which)
        count += parts
    return block


def folds(windows: Windows) -> NDArray[np.intp]:
    """The fold of every window (N,), at most 10: whole recordings, or quarters of it if there is only one."""
    count = int(windows.recording.max()) + 1
    if count == 1:
        return np.arange(len(windows.recording)) * 4 // len(windows.recording)
    return windows.recording % min(count, 10)


def covariance(scored: Scores, block: NDArray[np.intp]) -> Array:
    """Cluster-robust covariance (r, r) of the fit, residuals being in standard deviations. Raises ModelError where the
    blocks are too few."""
    count, size = int(block.max()) + 1, scored.gradient.shape[1]
    if count < size + 2:
        raise ModelError(
            f"the recordings hold {count} stretches that are longer than the correlation of the residual, and show "
            f"{size} combinations of parameters. A confidence set needs at least {size + 2} stretches. "
            f"Record longer, or more often."
        )
    curvature = np.zeros((count, size, size))
    np.add.at(curvature, block, scored.curvature)
    whole = curvature.sum(axis=0)
    # The change of the fit without each block.
    away = np.einsum("bij,bj->bi", np.linalg.pinv(whole - curvature, hermitian=True), _sums(scored.gradient, block))
    # Few blocks may seem to agree by chance: in no direction is the fit known better than with independent residuals.
    root = np.linalg.cholesky(whole)
    sizes, vectors = np.linalg.eigh(root.T @ away.T @ away @ root * (count - 1) / count)
    columns = np.linalg.solve(root.T, vectors)
    return np.asarray((columns * np.maximum(sizes, 1.0)) @ columns.T)


def _sums(gradient: Array, block: NDArray[np.intp]) -> Array:
    """Sum of the gradients in every block, (B, r)."""
    return np.stack([np.bincount(block, column) for column in gradient.T], axis=1)


def _spread(gradient: Array, block: NDArray[np.intp]) -> Array:
    """The sum over blocks of g g', (r, r)."""
    sums = _sums(gradient, block)
    return np.asarray(sums.T @ sums)


def inflation(scored: Scores, block: NDArray[np.intp], fold: NDArray[np.intp], changes: Sequence[float]) -> float:
    """Ratio of the mean square change of held-out predictions to the change that independent blocks explain.

    changes: for every fold, how far the fit without it has `moved` its predictions. At least 1, so that the set is
    never narrower than by the blocks.
    """
    whole = scored.curvature.sum(axis=0)
    expected = 0.0
    for index in range(len(changes)):
        held = fold == index
        curvature = scored.curvature[held].sum(axis=0)
        inverse = np.linalg.pinv(whole - curvature, hermitian=True)  # the rest may see less
        _, own = np.unique(block[held], return_inverse=True)
        expected += float(np.trace(curvature @ inverse @ _spread(scored.gradient[held], own) @ inverse))
    return max(1.0, sum(changes) / expected) if expected > 0 else 1.0


def quantile(size: int, count: int) -> float:
    """Squared radius of the set in which the truth lies with probability LEVEL: Hotelling's T^2 of `count` blocks."""
    return float(size * (count - 1) / (count - size) * fdtri(size, count - size, LEVEL))
