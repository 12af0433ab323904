"""Which combinations of parameters the recordings tell apart: the rank of the sensitivity, scaled by the bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

Array = NDArray[np.float64]

RANK = 1e-7  # a combination seen less than this, beside the one seen best, is not seen: the sensitivities are exact
NAMED = 0.05  # a parameter that takes this share of the largest part in a combination is named
EVEN = 6  # digits: parts that agree so far are named in the parameters' order, whatever the rounding


@dataclass(frozen=True)
class Directions:
    """Orthonormal columns in units of half of each parameter's range, so that 1 leads from its middle to a bound."""

    seen: Array  # (p, r)
    unseen: Array  # (p, p - r)
    condition: float  # the largest singular value over the least one of the seen directions


def directions(sensitivity: Array) -> Directions:
    """Split the space of parameters; sensitivity: (..., p), in standard deviations for half of each range."""
    _, sizes, rows = np.linalg.svd(np.linalg.qr(sensitivity.reshape(-1, sensitivity.shape[-1]), mode="r"))
    sizes = np.pad(sizes, (0, len(rows) - len(sizes)))
    seen = sizes > RANK * max(float(sizes[0]), 1e-300)
    condition = float(sizes[0] / sizes[seen][-1]) if seen.any() else float("inf")
    return Directions(rows[seen].T, rows[~seen].T, condition)


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

    They are those of a QR decomposition with pivots, whose rows are farthest from dependent (P. Businger and G. Golub,
    Numer. Math. 7, 1965).
    """
    return sorted(int(index) for index in qr(unseen.T, mode="r", pivoting=True)[1][: unseen.shape[1]])


def in_words(names: Sequence[str], change: Array, theta: Array) -> str:
    """One direction as parts of parameters that change together; change: (p,) in the parameters' units."""
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
