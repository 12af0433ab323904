"""The confidence set as an ellipsoid: what the recordings say where they say something, else the declared bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.identification.identifiability import Directions

Array = NDArray[np.float64]

LEFT = 1e-6  # a direction of unit length with a smaller part in the first parameters has none there
DECLARED = 0.5  # a parameter moved by this share of half its range by directions that are not identified is not either


@dataclass(frozen=True)
class Ellipsoid:
    """All theta with (theta - centre)' P^-1 (theta - centre) <= 1, P = shape; and the boxes it gives."""

    centre: Array  # (p,)
    shape: Array  # (p, p), in the parameters' units
    lower: Array  # (p,)
    upper: Array  # (p,)
    identified: NDArray[np.bool_]  # (p,)
    unidentified: Array  # (p, k), directions in units of half of each range
    exact: NDArray[np.bool_]  # (k,) whether the motion does not depend on the direction at all

    def projected(self, count: int) -> Ellipsoid:
        """On the first `count` parameters; of directions that are not identified, what is left of them there."""
        first = slice(count)
        kept = np.linalg.norm(self.unidentified[first], axis=0) > LEFT
        boxes = self.lower[first], self.upper[first], self.identified[first]
        left = self.unidentified[first][:, kept]
        directions = left / np.linalg.norm(left, axis=0), self.exact[kept]
        return Ellipsoid(self.centre[first], self.shape[first, first], *boxes, *directions)


def ellipsoid(centre: Array, bounds: Array, found: Directions, squared: Array) -> Ellipsoid:
    """squared: (r, r), the set's shape in the seen directions, in units of half ranges; bounds: (p, 2).

    A direction in which the set is as wide as the bounds counts as not identified: its semi-axis leads to the farthest
    bound, as does that of a direction which is not seen. The centre is the fit where the set about it
    stays within the bounds, and else as `_inside` says.
    """
    lower, upper = bounds.T
    half = (upper - lower) / 2
    sizes, vectors = np.linalg.eigh((squared + squared.T) / 2)
    axes = found.seen @ vectors
    wide = sizes >= 1.0 / np.abs(axes).max(axis=0, initial=0.0) ** 2
    known = axes[:, ~wide]
    centre = _inside(centre, bounds, known * np.maximum(sizes[~wide], 0.0) @ known.T, (known**2).sum(axis=1) > 0.5)
    all_axes = np.hstack([axes, found.unseen])
    reach = np.array([_reach(axis, (centre - lower) / half, (upper - centre) / half) for axis in all_axes.T])
    unknown = np.concatenate([wide, np.ones(found.unseen.shape[1], bool)])
    lengths = np.where(unknown, reach, np.sqrt(np.maximum(np.pad(sizes, (0, len(reach) - len(sizes))), 0.0)))
    scaled = all_axes * lengths
    moved = np.sqrt(((scaled * unknown) ** 2).sum(axis=1))
    identified = moved < DECLARED
    width = half * np.sqrt((scaled**2).sum(axis=1))
    return Ellipsoid(
        centre,
        (scaled * half[:, None]) @ (scaled * half[:, None]).T,
        np.where(identified, np.maximum(centre - width, lower), lower),
        np.where(identified, np.minimum(centre + width, upper), upper),
        identified,
        np.hstack([axes[:, wide], found.unseen]),
        np.repeat([False, True], [int(wide.sum()), found.unseen.shape[1]]),
    )


def _inside(fit: Array, bounds: Array, squared: Array, known: NDArray[np.bool_]) -> Array:
    """The centre (p,) for a fit (p,) within bounds (p, 2); squared: (p, p), in units of half ranges. known: (p,), the
    parameters that are not left open.

    Of an interval that a bound cuts off, the truth can only be in the rest. Its middle takes the place of the fit, and
    the other parameters follow as the fit would with that one given. An ellipsoid about a bound, such as no friction,
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


def _reach(axis: Array, down: Array, up: Array) -> float:
    """How far along an axis, on the longer side, the first bound is; down, up: (p,) from the centre to the bounds."""
    sides = [np.where(axis > 0, up, down), np.where(axis > 0, down, up)]
    with np.errstate(divide="ignore"):
        return float(max((side / np.abs(axis)).min() for side in sides))
