"""What is known of cells of states and parameters: whether the ball of a metric shrinks in each, and where it is open.

In each cell, with the period y -> N y,

    N' N + f (g g' - c^2) <= (1 - rate)^2

as matrices, for a weight f >= 0 and a direction g with |g' y| >= c |y| for all y of the cell (S-procedure).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.arrays import Array
from solver.proof.affine import TINY, Affine, Mask
from solver.proof.held_loop import Frame, HeldLoop
from solver.proof.period import Cells, one_period

HUGE = 1e6  # growth of a cell of which nothing is known
UNKNOWN = 1e3  # excess of a cell of which nothing is known
WIDTH = 0.1  # weight of a side's width by the parts of the bound, in the choice of the side to halve
PORTIONS = 0.25, 0.5, 0.75  # of a cell's margin, as the weight of its narrow cone
THINNEST = 1e-5  # of the ball's radius: the least distance and half width of a cone whose form can be inverted
FACTORS = [0.003 * 2.0**k for k in range(10)]  # weights of a cell's cone in its matrix inequality


@dataclass(frozen=True)
class Judgement:
    """What is known of N cells."""

    holds: Mask
    empty: Mask  # no state of the ball is in the cell
    disturbance: Array  # (N,) norm
    excess: Array  # (N,) of the bound; at most zero where the cell holds
    side: NDArray[np.int64]  # (N,) to halve where it does not


@dataclass(frozen=True)
class Cone:
    """Where the states y of N cells are."""

    empty: Mask  # no state of the ball is in the cell
    ball: Array  # (N, d, d): y' ball y >= 0
    along: Array  # (N, d) unit vectors g
    least: Array  # (N,) of g'y, 0 if nothing is known; the following needs a positive one
    form: Array  # (N, d, d) E: with y = (g + z) g'y and g'z = 0, z' E z <= 1
    bounded: Array  # (N, d, d): another such form that bounds every z

    def spread(self, turned: Array, rest: Array, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Bounds (N, s) of y' turned_k y, and (N,) of y' rest y, by (g'y)^2 for some of the cells."""
        g, turned, rest = self.along[rows], turned[rows], rest[rows]
        inverse = np.linalg.inv(self.bounded[rows] + g[:, :, None] * g[:, None])
        at = np.einsum("nsij,nj->nsi", turned, g)
        straight = np.einsum("nsi,ni->ns", at, g)
        at -= straight[..., None] * g[:, None]
        slanted = np.sqrt(np.maximum(np.einsum("nsi,nij,nsj->ns", at, inverse, at), 0.0))
        wide = inverse - g[:, :, None] * g[:, None]
        bent = wide[:, None] @ turned
        curved = np.sqrt(np.maximum(np.einsum("nsij,nsji->ns", bent, bent), 0.0))
        size = np.abs(g) + np.sqrt(np.maximum(np.diagonal(wide, axis1=1, axis2=2), 0.0))
        loose = np.einsum("ni,nij,nj->n", size, rest, size)
        return np.abs(straight) + 2 * slanted + curved, loose


def judge(loop: HeldLoop, frame: Frame, cells: Cells, radius: float, rate: float, input_error: Array) -> Judgement:
    """What is known of N cells."""
    d = frame.back.shape[1]
    cone = _cone(frame, cells, radius)
    period = one_period(loop, cells, frame, radius, input_error)
    unit = Affine.exact(np.broadcast_to(np.eye(d), period.change.middle.shape), period.change.symbols)
    after = unit + period.change
    square = after.mT @ after  # |y|^2 becomes y' square y
    small = period.known & (square.largest.max((1, 2)) < HUGE)
    square = square.where(small, Affine.exact(np.zeros_like(square.middle), square.symbols))
    rest = square.rest
    allowed = max(1.0 - rate, 0.0) ** 2 - 1e-12
    middle = 0.5 * (square.middle + np.swapaxes(square.middle, 1, 2)) - allowed * np.eye(d)
    turned = 0.5 * (square.slopes + np.swapaxes(square.slopes, 2, 3))
    size: Array = np.asarray(np.linalg.norm(rest, 2, (1, 2)) if d == 1 else np.linalg.eigvalsh(rest)[:, -1])
    upper = middle + _magnitude(turned).sum(1) + size[:, None, None] * np.eye(d)
    excess = _largest(upper)
    for factor in FACTORS:
        excess = np.minimum(excess, _largest(upper + factor * cone.ball))
    parts = np.linalg.norm(turned, axis=(2, 3))
    at = np.flatnonzero((excess > 0) & (cone.least > 0))
    if len(at):
        g = cone.along[at]
        square_g = g[:, :, None] * g[:, None]
        parts[at], loose = cone.spread(turned, rest, at)
        size[at] = loose
        far = (parts[at].sum(1) + loose) * (1 + 1e-9)
        straight = middle[at] + far[:, None, None] * square_g
        margin = -np.einsum("ni,nij,nj->n", g, straight, g)
        beside = square_g - cone.form[at]
        for share in PORTIONS:
            bound = straight + (share * np.maximum(margin, 0.0))[:, None, None] * beside
            excess[at] = np.minimum(excess[at], _largest(bound))
            if cone.form is not cone.bounded:
                for factor in FACTORS[2::2]:
                    excess[at] = np.minimum(excess[at], _largest(bound + factor * cone.ball[at]))
    side = _side(frame, cells, parts, size, middle, cone, small)
    return Judgement(small & (excess <= 0), cone.empty, period.disturbance, np.where(small, excess, UNKNOWN), side)


def _side(
    frame: Frame, cells: Cells, parts: Array, rest: Array, middle: Array, cone: Cone, known: Mask
) -> NDArray[np.int64]:
    """The side (N,) of each cell that widens its bound most: parts (N, s) of the symbols, which the rest (N,) grows
    with, and those of its cone."""
    r, m = frame.argument.T.shape
    half = 0.5 * (cells.upper - cells.lower)
    parts = parts * (1 + rest / np.maximum(parts.sum(1), TINY))[:, None]
    score = np.zeros_like(half)
    score[:, [*range(r), *(r + cells.varied(r))]] = parts[:, : parts.shape[1] - m]
    share = np.abs(frame.argument)[None] * half[:, None, :r]  # (N, m, r) of the chords' symbols
    share /= np.maximum(share.sum(2, keepdims=True), TINY)
    score[:, :r] += (share * parts[:, parts.shape[1] - m :, None]).sum(1)
    narrow = cone.least > 0
    beside = (middle @ cone.along[..., None])[..., 0]
    beside -= (beside * cone.along).sum(1, keepdims=True) * cone.along
    turn = 2 * np.abs(beside @ frame.basis) * half[:, :r] / np.maximum(cone.least, TINY)[:, None]
    score[:, :r] += np.where(narrow[:, None], turn, 0.0)
    wide = half[:, :r] / np.maximum(half[:, :r].max(1, keepdims=True), TINY)
    score[:, :r] = np.where(known[:, None], score[:, :r] + WIDTH * wide * score.max(1, keepdims=True), wide)
    chosen: NDArray[np.int64] = np.where(half > 0, score, -1.0).argmax(1)
    return chosen


def _cone(frame: Frame, cells: Cells, radius: float) -> Cone:
    """Where the states y of each cell are: their share z in the frame's basis, and what it leaves open."""
    basis = frame.basis
    d, r = basis.shape
    low, high = cells.lower[:, :r], cells.upper[:, :r]
    nearest = np.clip(0.0, low, high)
    size = np.linalg.norm(nearest, axis=1) * (1 - 1e-12)
    cosine = size / radius * (1 - 1e-12)
    direction = (nearest / np.maximum(size, TINY)[:, None]) @ basis.T
    ball = direction[:, :, None] * direction[:, None] - (cosine**2)[:, None, None] * np.eye(d)
    # the narrow cone about the cell's middle
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * (1 + 1e-14)
    along = middle / np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), TINY)
    least = (along * middle).sum(1) - (np.abs(along) * half).sum(1) - 1e-12 * radius
    least = np.where(least > THINNEST * radius, least, 0.0)
    turned = np.abs(np.eye(r) - along[:, :, None] * along[:, None])
    beside = np.maximum((turned @ half[..., None])[..., 0], THINNEST * radius) + 1e-12 * radius
    across = (basis.T - (along[:, :, None] * along[:, None]) @ basis.T) / beside[..., None]
    form = bounded = (across.mT @ across) * (np.maximum(least, TINY)[:, None, None] ** 2 / r)
    if r < d:
        far = np.maximum(radius / np.maximum(least, 1e-6 * radius), 1.0 + 1e-6) ** 2 - 1.0
        free = np.eye(d) - basis @ basis.T
        bounded = 0.5 * (form + free / far[:, None, None])
    return Cone(cosine > 1.0, ball, along @ basis.T, least, form, bounded)


def _largest(forms: Array) -> Array:
    """Upper bounds (N,) of the largest eigenvalues of symmetric matrices (N, d, d)."""
    bound: Array = np.linalg.eigvalsh(forms)[:, -1] + 1e-14 * np.linalg.norm(forms, axis=(1, 2))
    return bound


def _magnitude(matrices: Array) -> Array:
    """The absolute values (..., d, d) of symmetric matrices: the same eigenvectors, no negative eigenvalue."""
    values, vectors = np.linalg.eigh(0.5 * (matrices + np.swapaxes(matrices, -1, -2)))
    size: Array = (vectors * np.abs(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    return size
