"""From recordings to parameters with a confidence set: fit, directions seen, refits without each fold, ellipsoid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from modelgen.errors import ModelError
from modelgen.identification.confidence import (
    blocks,
    correlation_seconds,
    covariance,
    folds,
    inflation,
    moved,
    quantile,
    scores,
)
from modelgen.identification.ellipsoid import Ellipsoid, ellipsoid
from modelgen.identification.fit import Fit, Progress, fit, fit_windows
from modelgen.identification.forecast import Bands, bands, forecasts
from modelgen.identification.identifiability import directions
from modelgen.identification.model import Model
from modelgen.identification.radii import Radii, radii
from modelgen.identification.recordings import Recording
from modelgen.identification.starts import settle
from modelgen.identification.windows import Windows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """One fold: recordings that a fit did not see, and the root mean square of its residuals there."""

    recordings: tuple[int, ...]
    error: Array  # (n,), NaN where not measured
    error_of_all: Array  # (n,) of the fit to all recordings, in the same windows
    windows: Windows
    residuals: Array  # (K, N, n) of the fit that did not see them, in the states' units, zero where not measured
    theta: Array  # (p,) of that fit


@dataclass(frozen=True)
class Identified:
    """All that the recordings say."""

    model: Model
    whole: Ellipsoid  # of the robot's parameters and the effects
    radii: Radii
    condition: float
    residual: Array  # (n,) root mean square, NaN where not measured
    correlation: float  # s
    blocks: int
    inflation: float
    held_out: tuple[HeldOut, ...]
    windows: Windows
    residuals: Array  # (K, N, n) of the fit to all, in the states' units, zero where not measured
    theta: Array  # (p,) the robot's parameters and the effects
    deviations: Array  # (n,) of the residuals; 1 where a state is not measured
    bands: Bands | None  # about the motion predicted; None where no recording is long enough

    @property
    def ellipsoid(self) -> Ellipsoid:
        """The set of the robot's parameters alone, whatever the effects are."""
        return self.whole.projected(len(self.model.robot.parameter_names))


def identify(model: Model, recordings: Sequence[Recording], seconds: float, progress: Progress) -> Identified:
    """Fit windows of `seconds`. progress: told what is computed.

    Raises ModelError for a robot without parameters and for recordings that are too short or do not depend on any.
    """
    if not model.robot.parameter_names:
        raise ModelError(
            f"`{model.robot.name}` has no parameters to identify: all of them are fixed in its model file."
        )
    bounds = model.bounds
    half = (bounds[:, 1] - bounds[:, 0]) / 2
    windows, found = fit(model, recordings, seconds, progress)
    seen = directions(found.settled.sensitivity * half)
    if not seen.seen.shape[1]:
        raise ModelError("the recorded motion depends on no parameter. Record a motion in which the robot moves.")
    scored = scores(found.settled, half[:, None] * seen.seen)
    correlation = correlation_seconds(windows, found.settled.residuals)
    block, fold = blocks(windows, correlation), folds(windows)
    C = covariance(scored, block)
    held, changes = [], []
    refits, began = int(fold.max()) + 1, time.monotonic()
    for index in range(refits):
        left = (time.monotonic() - began) / index * (refits - index) if index else 0.0
        about = f", about {left:.0f} s left" if left >= 1.0 else ""
        progress(f"refit {index + 1} of {refits}, without what it is tested on{about}")
        one, change = _held_out(model, windows, found, fold == index)
        held.append(one)
        changes.append(change)
    factor = inflation(scored, block, fold, changes)
    count = int(block.max()) + 1
    whole, own = (
        ellipsoid(found.theta, bounds, seen, C * factor * quantile(len(C), count)),
        len(model.robot.parameter_names),
    )
    progress("predictions of held-out motion")
    shape = whole.shape[:own, :own]
    ahead = [forecasts(model, recordings, each.theta, found.deviations, shape, each.windows) for each in held]
    return Identified(
        model,
        whole,
        radii(model, windows, found),
        seen.condition,
        _error(windows, found.settled.residuals * found.deviations),
        correlation,
        count,
        factor,
        tuple(held),
        windows,
        found.settled.residuals * found.deviations,
        found.theta,
        found.deviations,
        bands(ahead),
    )


def _held_out(model: Model, windows: Windows, whole: Fit, out: NDArray[np.bool_]) -> tuple[HeldOut, float]:
    """Fit without some windows; how well that predicts them, and how far the predictions have moved."""
    refit = fit_windows(
        model, windows.chosen(~out), whole.theta, whole.settled.starts[~out], whole.deviations, robust=True
    )
    hidden = windows.chosen(out)
    predicted = settle(model, hidden, whole.settled.starts[out], refit.theta, whole.deviations, robust=True)
    residuals = predicted.residuals * whole.deviations
    change = moved(whole.settled.residuals[:, out], predicted.residuals)
    error_of_all = _error(hidden, whole.settled.residuals[:, out] * whole.deviations)
    owners = tuple(int(each) for each in np.unique(hidden.recording))
    return HeldOut(owners, _error(hidden, residuals), error_of_all, hidden, residuals, refit.theta), change


def _error(windows: Windows, residuals: Array) -> Array:
    """Root mean square of residuals (K, N, n) in the states' units, (n,); NaN where nothing was measured."""
    count = (~np.isnan(windows.measured)).sum(axis=(0, 1))
    return np.where(count > 0, np.sqrt((residuals**2).sum(axis=(0, 1)) / np.maximum(count, 1)), np.nan)
